"""What runs behind the wall, in the project's own interpreter: Python 3.8, the standard library and pytest.

It lies there as a package of another name, `suture_trials`.
Code under test runs in these processes, so what they say only orders and sorts out candidates; the verdict is
the trusted suite's.
"""
