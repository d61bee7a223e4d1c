"""The database of all runs: projections of ledgers, memories, and what machines share.

All of it can be rebuilt from the ledgers (docs/runs.md). This package knows no graph state and no running
loop. Importing it is cheap: `store` needs SQLAlchemy and is imported when a database is opened.
"""

from suture.storage.checkpoints.checkpointer import open_checkpointer
from suture.storage.database.run_sharing import checkpoint_location, fetch_shared_run, share_run

__all__ = ["checkpoint_location", "fetch_shared_run", "open_checkpointer", "share_run"]
