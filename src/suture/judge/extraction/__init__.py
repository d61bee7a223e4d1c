"""Checks read out of text: plain asserts, examples in docstrings, and the names that they need."""
