"""Fault localisation: which lines may be at fault, by coverage, tracebacks and exception messages."""
