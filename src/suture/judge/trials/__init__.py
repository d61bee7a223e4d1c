"""Trials: run the project's tests on many candidates quickly, in sandboxed processes that stay alive.

This package owns the processes, the baseline run of the unchanged code, and the trials of candidates. Code
under test runs in the same processes and could forge what they report. So trials only order and filter
candidates; the verdict on a candidate comes from the trusted suite. The package must not propose candidates.
"""
