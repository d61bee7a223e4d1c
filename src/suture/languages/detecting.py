"""The test command of a project whose user gave none."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from suture.errors import UsageError
from suture.records import Language

PYTEST: Mapping[str, bytes] = {
    "pytest.ini": b"",
    ".pytest.ini": b"",
    "pytest.toml": b"",
    ".pytest.toml": b"",
    "pyproject.toml": b"[tool.pytest",
    "tox.ini": b"[pytest]",
    "setup.cfg": b"[tool:pytest]",
}
"""Files that configure pytest, and what must stand in them."""
TEST_CASE = re.compile(rb"^class \w+\(.*TestCase\b.*\):", re.MULTILINE)
NOT_UNITTEST = re.compile(rb"^(?:async )?def test|^\s*(?:import|from) pytest\b", re.MULTILINE)
NO_SCRIPT = "no test specified"
"""What `npm init` writes in the place of a test script."""
RUNNERS = ("npm", "yarn", "pnpm")


@dataclass(frozen=True, kw_only=True)
class DetectedCommand:
    """A test command that was found.

    Attributes:
        command: The argument vector.
        language: Of the code that it tests.
        why: How it was found, in words for people.
    """

    command: tuple[str, ...]
    language: Language
    why: str


def detect_command(
    files: Mapping[str, bytes], python_tests: Collection[str], has_pytest: Callable[[], bool]
) -> DetectedCommand | None:
    """The test command of a project; `None` where there is nothing to go by.

    Args:
        files: The project's files.
        python_tests: Those of them that are tests in Python.
        has_pytest: Whether the project's Python has pytest; asked only where unittest would do.

    Raises:
        UsageError: It is tested in more than one language.
    """
    found = [
        *_python(files, python_tests, has_pytest),
        *_javascript(files),
        *_go(files),
    ]
    if len(found) > 1:
        candidates = " or ".join(f"`{' '.join(one.command)}` ({one.why})" for one in found)
        raise UsageError(
            f"the project is tested in more than one language: {candidates}",
            remedy='say which: --test "COMMAND"',
        )
    return found[0] if found else None


def _python(
    files: Mapping[str, bytes], tests: Collection[str], has_pytest: Callable[[], bool]
) -> Iterator[DetectedCommand]:
    settings = next((name for name, mark in PYTEST.items() if name in files and mark in files[name]), "")
    if not settings and not tests:
        return
    pytest = ("python", "-m", "pytest", "-q")
    cases = [name for name in tests if TEST_CASE.search(files[name])]
    if settings:
        yield DetectedCommand(command=pytest, language="python", why=f"{settings} configures pytest")
    elif not cases or any(NOT_UNITTEST.search(files[name]) for name in tests):
        yield DetectedCommand(command=pytest, language="python", why=f"{min(tests)} is a test in Python")
    elif has_pytest():
        why = "the tests are unittest's; pytest runs them too, and reports each by itself"
        yield DetectedCommand(command=pytest, language="python", why=why)
    else:
        why = "the tests are unittest's, and the project's Python has no pytest"
        command = ("python", "-m", "unittest", *_discovery(files, cases))
        yield DetectedCommand(command=command, language="python", why=why)


def _discovery(files: Mapping[str, bytes], cases: Collection[str]) -> tuple[str, ...]:
    """Where unittest must look: by itself it enters packages only."""
    folders = {PurePosixPath(name).parts[0] if "/" in name else "" for name in cases}
    if len(folders) != 1 or "" in folders:
        return ("discover",)
    folder = folders.pop()
    return ("discover", "-s", folder, *(("-t", ".") if f"{folder}/__init__.py" in files else ()))


def _javascript(files: Mapping[str, bytes]) -> Iterator[DetectedCommand]:
    script = _scripts(files).get("test", "")
    if script.strip() and NO_SCRIPT not in script:
        yield DetectedCommand(
            command=("npm", "test"), language="javascript", why="package.json has a test script"
        )


def _go(files: Mapping[str, bytes]) -> Iterator[DetectedCommand]:
    if "go.mod" in files and any(name.endswith("_test.go") for name in files):
        yield DetectedCommand(command=("go", "test", "./..."), language="go", why="go.mod names a Go module")


def scripts_run_by(command: Collection[str], files: Mapping[str, bytes]) -> tuple[str, ...]:
    """The scripts of `package.json` that a command runs, as lines for a shell; they decide what it says.

    Args:
        command: The argument vector.
        files: The project's files.
    """
    words = {part for word in command for part in word.split()}
    if not any(PurePosixPath(word).name in RUNNERS for word in words):
        return ()
    run = {"test", *words}
    wanted = {f"{before}{name}" for name in run for before in ("pre", "", "post")}
    return tuple(script for name, script in _scripts(files).items() if name in wanted)


def _scripts(files: Mapping[str, bytes]) -> dict[str, str]:
    try:
        package = json.loads(files.get("package.json", b"{}"))
    except (ValueError, RecursionError):
        return {}
    scripts = package.get("scripts") if isinstance(package, dict) else None
    pairs = scripts.items() if isinstance(scripts, dict) else ()
    return {name: script for name, script in pairs if isinstance(script, str)}
