"""Pytest without the plugins of this environment, for projects that are healed here.

Each interpreter that runs a project's tests would import them first, and that takes longer than the rest.
"""

import shutil
import venv
from importlib.metadata import distribution
from pathlib import Path

__all__ = ["BARE_PYTEST", "add_pytest", "bare_environment"]

UNUSED = ("langsmith_plugin", "schemathesis", "hypothesispytest", "anyio", "asyncio", "xdist", "timeout")
BARE_PYTEST = " ".join(["python -m pytest -q", *(f"-p no:{name}" for name in UNUSED)])
NEEDED = ("iniconfig", "packaging", "pluggy", "pygments", "pytest")


def bare_environment(folder: Path) -> Path:
    """Make an environment with pytest and no more; for where a screen shows the plain command."""
    venv.create(folder, symlinks=True)
    add_pytest(next(folder.glob("lib/python*/site-packages")))
    return folder


def add_pytest(site: Path) -> None:
    """Copy pytest and what it needs, with what was compiled of it, from the environment that tests."""
    for name in NEEDED:
        for file in distribution(name).files or ():
            if ".." not in file.parts:
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(str(file.locate()), site / file)
