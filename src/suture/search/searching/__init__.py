"""The search itself: processes made ready, candidates in turns, trials until there is a reason to end.

What comes through is plausible and no more: it is told apart and ranked elsewhere.
"""
