"""What runs learn from earlier ones: failures and what mended them, solved tasks, lessons.

This room makes memories of a run's record, finds them again by words and vectors, and keeps count of
whether they help. It knows the database and the ledger, and no loop: what is recalled becomes an event, and
the loop reads that.
"""

from suture.storage.memory.run_memory import kept_of, recalled_for

__all__ = ["kept_of", "recalled_for"]
