"""Trial processes inside the sandbox, in the project's interpreter: Python 3.8, the standard library and
pytest.

In the sandbox this package has the name `suture_trials`. Code under test runs in the same processes and could
forge their reports, so they only order and filter candidates. The trusted suite decides the verdict.
"""
