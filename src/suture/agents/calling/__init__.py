"""The model calls of a run. Each is reserved in the budget first, and recorded before its reply is used."""
