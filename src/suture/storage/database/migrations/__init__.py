"""Alembic migrations of the database, run by `suture.storage.database.store`. A released version never changes."""
