"""The split verdict: tests in one sandbox, code in another, and only data between them.

This package owns both ends of that exchange for Python, the host's end for functions of other languages, and
nonce mode for tests that need live objects. No program that runs together with a candidate may decide anything.
"""
