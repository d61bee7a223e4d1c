"""Variable traces: the values of variables, line by line, in a run of a candidate.

This package owns the traced program and the rendering of traces. Traces inform a debugger; code under test
could forge them, so they never decide a verdict.
"""
