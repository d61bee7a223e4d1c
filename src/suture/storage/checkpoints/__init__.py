"""LangGraph's checkpoints: in a SQLite file next to the runs, or in PostgreSQL."""
