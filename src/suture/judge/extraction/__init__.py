"""Extracting checks from text: asserts, docstring examples, calls with results, and the names that they need.

Nothing is guessed: text that does not clearly state a call and its result becomes no check.
"""
