"""LangGraph's checkpoints: in a SQLite file beside the runs, or in PostgreSQL."""
