"""Pytest without the plugins of this environment, for the projects that tests heal.

Each interpreter that runs a project's tests would import the plugins first, which takes longer than the tests.
"""

import shutil
import venv
from importlib.metadata import distribution
from pathlib import Path

__all__ = ["BARE_PYTEST", "add_pytest", "bare_environment"]

UNUSED = ("langsmith_plugin", "schemathesis", "hypothesispytest", "anyio", "asyncio", "xdist", "timeout")
# Without the first option, pytest reads the metadata of all installed packages three times, a fifth of a short run. The
# interpreter that is warmed up for several runs knows only the others. The last plugin collects garbage five times.
BARE_PYTEST = " ".join(
    [
        "python -m pytest -q --disable-plugin-autoload",
        *(f"-p no:{name}" for name in (*UNUSED, "unraisableexception")),
    ]
)
NEEDED = ("iniconfig", "packaging", "pluggy", "pygments", "pytest")


def bare_environment(folder: Path) -> Path:
    """Create an environment with only pytest, for tests that show the plain command on a screen."""
    venv.create(folder, symlinks=True)
    add_pytest(next(folder.glob("lib/python*/site-packages")))
    return folder


def add_pytest(site: Path) -> None:
    """Copy pytest and its dependencies, with their bytecode, from the current environment."""
    for name in NEEDED:
        for file in distribution(name).files or ():
            if ".." not in file.parts:
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(str(file.locate()), site / file)
