"""What a candidate must not write: what could change the verdict stays the task's own."""

from __future__ import annotations

import posixpath
import sys
from collections.abc import Collection, Mapping
from pathlib import PurePosixPath

from suture.core.records import Candidate, Task
from suture.judge.runners.pytest_runner import PLUGIN
from suture.judge.runners.test_dependencies import takes_a_librarys_place
from suture.judge.suite import Suite
from suture.project.languages import LANGUAGES, is_source
from suture.project.workspace import DEFAULT_PROTECTED, is_protected, overlay

OF_PYTEST = frozenset(
    (
        "_pytest",
        "colorama",
        "exceptiongroup",
        "execnet",
        "iniconfig",
        "packaging",
        "pluggy",
        "py",
        "pygments",
        "pytest",
        "setproctitle",
        "tomli",
        "xdist",
    )
)
"""Pytest and what it requires, in all versions since 6; and what pytest-xdist's workers import before it."""


def refused_files(candidate_files: Mapping[str, str], suite: Suite) -> tuple[str, ...]:
    """The paths that a candidate must not write, because they could change the verdict; sorted.

    Args:
        candidate_files: Path -> text, such as `Candidate.files`.
        suite: The suite that judges it.
    """
    task = suite.task
    globs = task.protected or DEFAULT_PROTECTED
    refused = []
    files = {*task.files, *task.modules, *map(posixpath.normpath, candidate_files)}
    for path in candidate_files:
        plain = posixpath.normpath(path)
        elsewhere = bool(task.only) and not is_protected(path, task.only)
        as_text = not LANGUAGES[task.language].parsed and task.project is None
        foreign = as_text and not is_source(plain, task.language)
        guarded = elsewhere or foreign or is_protected(path, globs) or _shadows(plain, task)
        roots = suite.command.interpreter.source_roots if suite.command else ()
        guarded = guarded or takes_a_librarys_place(plain, task.files, suite.libraries, roots)
        guarded = guarded or _lies_in_a_file(plain, files)
        guarded = guarded and not is_made_here(plain, candidate_files, suite)
        if plain in suite.test_files or (guarded and plain not in task.modules):
            refused.append(path)
    return tuple(sorted(refused))


def laid_over(candidate: Candidate, suite: Suite) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """The project with the candidate in it; what could change the verdict stays the task's own."""
    refused = refused_files(candidate.files, suite)
    allowed = {path: text for path, text in candidate.files.items() if path not in refused}
    notes = tuple(f"{path} is protected: the candidate's version was left out" for path in refused)
    return overlay(suite.task.files, allowed), notes


def _lies_in_a_file(path: str, files: Collection[str]) -> bool:
    """Whether a folder of a path is the name of a file: no project can hold both."""
    return any(str(folder) in files for folder in PurePosixPath(path).parents)


def is_made_here(path: str, candidate_files: Mapping[str, str], suite: Suite) -> bool:
    """Whether a file is a lock of ours, or a manifest with what is asked for: handed over with the code.

    Args:
        path: One of the candidate's.
        candidate_files: Path -> text.
        suite: Whose packages count.
    """
    if suite.packages is None or suite.interpreter is None or path not in candidate_files:
        return False
    return suite.packages.allows(path, overlay(suite.task.files, candidate_files), suite.interpreter)


def _shadows(path: str, task: Task) -> bool:
    # A new `json.py` in the project's root would be imported by the test runner in the real one's place; the
    # plugin that reports, which is given the key, also from a folder that the project puts on the path.
    stems = [part.removesuffix(".py") for part in path.split("/")]
    ours = stems[0] in sys.stdlib_module_names or stems[0] in OF_PYTEST or PLUGIN in stems
    return ours and path not in task.files
