"""What outlives a process besides the ledger: the graph's checkpoints, and a database of all runs.

The database's tables are projections of the ledgers (see docs/store.md), so all of it can be made again. This
room knows no state, no node and no run that goes on. Nothing heavy is imported with it: the database is
opened by `suture.storage.database.store`, which needs SQLAlchemy.
"""

from suture.storage.checkpoints.checkpointer import open_checkpointer
from suture.storage.database.run_sharing import checkpoint_place, fetched, sharing

__all__ = ["checkpoint_place", "fetched", "open_checkpointer", "sharing"]
