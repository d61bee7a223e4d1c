"""The test command of projects that are healed here, without the plugins of this environment.

Each interpreter that runs a project's tests would import them first, and that takes longer than the rest.
"""

__all__ = ["BARE_PYTEST"]

UNUSED = ("langsmith_plugin", "schemathesis", "hypothesispytest", "anyio", "asyncio", "xdist", "timeout")
BARE_PYTEST = " ".join(["python -m pytest -q", *(f"-p no:{name}" for name in UNUSED)])
