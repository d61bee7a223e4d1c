"""Which command runs a project's tests in Python."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import PurePosixPath

from suture.languages.language import ProjectSigns

CONFIGURES: Mapping[str, bytes] = {
    "pytest.ini": b"",
    ".pytest.ini": b"",
    "pytest.toml": b"",
    ".pytest.toml": b"",
    "pyproject.toml": b"[tool.pytest",
    "tox.ini": b"[pytest]",
    "setup.cfg": b"[tool:pytest]",
}
"""Files that configure pytest, and what must stand in them."""
STEERING = (
    *("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "setup.cfg", "pyproject.toml"),
    "noxfile.py",
    # What Python runs before anything else.
    *("sitecustomize.py", "usercustomize.py", "sitecustomize/", "usercustomize/", "*.pth"),
    # What pytest loads as a plugin because it looks installed.
    *("*.dist-info/", "*.egg-info/"),
    # Modules in the tree come before the real ones of the same name.
    *("/pytest.py", "/pytest/", "/_pytest/", "/pluggy/", "/unittest.py", "/unittest/"),
    *("requirements*.txt", "constraints*.txt"),
)
"""Files that decide what a test command says, or what it loads."""
TEST_CASE = re.compile(rb"^class \w+\(.*TestCase\b.*\):", re.MULTILINE)
NOT_UNITTEST = re.compile(rb"^(?:async )?def test|^\s*(?:import|from) pytest\b", re.MULTILINE)
PYTEST = ("python", "-m", "pytest", "-q")


def tests_in_python(signs: ProjectSigns) -> tuple[tuple[str, ...], str] | None:
    """Pytest, and unittest only where pytest is not there and not needed."""
    files, tests = signs.files, signs.tests
    settings = next((name for name, mark in CONFIGURES.items() if name in files and mark in files[name]), "")
    if settings:
        return PYTEST, f"{settings} configures pytest"
    if not tests:
        return None
    cases = [name for name in tests if TEST_CASE.search(files[name])]
    if not cases or any(NOT_UNITTEST.search(files[name]) for name in tests):
        return PYTEST, f"{min(tests)} is a test in Python"
    if signs.has_pytest():
        return PYTEST, "the tests are unittest's; pytest runs them too, and reports each by itself"
    why = "the tests are unittest's, and the project's Python has no pytest"
    return ("python", "-m", "unittest", *_discovery(files, cases)), why


def _discovery(files: Mapping[str, bytes], cases: Collection[str]) -> tuple[str, ...]:
    """Where unittest must look: by itself it enters packages only."""
    folders = {PurePosixPath(name).parts[0] if "/" in name else "" for name in cases}
    if len(folders) != 1 or "" in folders:
        return ("discover",)
    folder = folders.pop()
    return ("discover", "-s", folder, *(("-t", ".") if f"{folder}/__init__.py" in files else ()))
