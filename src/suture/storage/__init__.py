"""What outlives a process besides the ledger: checkpoints, the database of all runs, memory, and traces.

The ledgers are the record. The database and the traces are derived from them and can be rebuilt. PostgreSQL,
OpenTelemetry and the Hugging Face hub are optional and imported only when they are used.
"""
