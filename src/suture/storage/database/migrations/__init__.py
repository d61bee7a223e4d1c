"""Alembic migrations of the database, run by `suture.storage.database.store`.

A released version never changes. The newest version must create what `suture.storage.database.tables`
declares; a test compares the two.
"""
