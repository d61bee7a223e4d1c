"""What outlives a process besides the ledger: the graph's checkpoints.

This room knows no state, no node and no run; what it stores, others can make again from the ledger.
"""

from suture.store.checkpoints import open_checkpointer

__all__ = ["open_checkpointer"]
