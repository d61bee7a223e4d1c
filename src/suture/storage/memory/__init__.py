"""Memory across runs: failures and their repairs, solved tasks, and lessons.

This package extracts memory items from a run's ledger, and recalls them by vectors. It knows the database and the
ledger but not the loop: what is recalled becomes an event that the loop reads.
"""

from suture.storage.memory.run_memory import recall_for_run, store_run_memories

__all__ = ["recall_for_run", "store_run_memories"]
