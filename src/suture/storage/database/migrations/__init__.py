"""How the tables came to be, version by version; run by Alembic through `suture.storage.database.store`.

A version that was released is never changed. The newest one makes what `suture.storage.database.tables` says.
"""
