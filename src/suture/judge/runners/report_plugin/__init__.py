"""The pytest plugin that runs inside the sandbox, in the user's own interpreter and pytest.

It needs Python 3.8, the standard library and pytest only. It is installed there under another package name,
and code under test runs in the same process.
"""
