"""What runs in the user's own pytest behind the wall: Python 3.8, the standard library and pytest.

It lies there as a package of another name, and code under test runs in the same process.
"""
