"""Cheating and honest changes of small projects, for `benchmarks/honesty.py`."""
