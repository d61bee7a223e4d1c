"""The policy: what a run does next, decided by numbers and codes alone.

Nothing here runs code, asks a model, reads a clock or draws a random number.
"""
