"""Coverage of a change: which statements it touched, and which of them the tests run.

This package counts and names. What the numbers are worth is decided by `suture.judge.confidence`.
"""
