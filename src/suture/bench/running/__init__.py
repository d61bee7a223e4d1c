"""Runs of a benchmark, from its plan to its rows; each task is run through the front door and then graded."""
