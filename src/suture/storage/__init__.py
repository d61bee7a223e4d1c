"""What outlives a process besides the ledger: the database, checkpoints, memory and tracing."""
