"""The policy: what a run does next, decided by numbers and codes alone.

Nothing in this package runs code, asks a model, reads a clock or draws a random number.
"""
