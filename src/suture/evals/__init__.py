"""Measuring: problems with hidden tests, runs at equal budget, and what the numbers can bear.

Hidden checks are opened here and nowhere else, and only after a run has ended.
"""
