"""Files that a candidate must not write, because they could change the verdict."""

from __future__ import annotations

import posixpath
import sys
from collections.abc import Collection, Mapping
from pathlib import PurePosixPath

from suture.core.records import Candidate, Task, VerdictNote
from suture.judge.runners.pytest_runner import PLUGIN
from suture.judge.runners.test_dependencies import shadows_dependency
from suture.judge.suite import Suite
from suture.project.languages import LANGUAGES, is_source
from suture.project.workspace import DEFAULT_PROTECTED, is_protected, overlay_candidate

PYTEST_MODULES = frozenset((
    "_pytest", "colorama", "exceptiongroup", "execnet", "iniconfig", "packaging", "pluggy", "py",
    "pygments", "pytest", "setproctitle", "tomli", "xdist",
))  # fmt: skip
"""Pytest's modules and dependencies in all versions since 6, and what pytest-xdist's workers import early."""


def find_protected_files(candidate_files: Mapping[str, str], suite: Suite) -> tuple[str, ...]:
    """Return the candidate's paths that could change the verdict, sorted.

    Args:
        candidate_files: Path -> text, such as `Candidate.files`.
        suite: The suite that judges the candidate.
    """
    task = suite.task
    globs = task.protected or DEFAULT_PROTECTED
    refused = []
    files = {*task.files, *task.modules, *map(posixpath.normpath, candidate_files)}
    for path in candidate_files:
        plain = posixpath.normpath(path)
        is_unwritable = bool(task.writable) and not is_protected(path, task.writable)
        as_text = not LANGUAGES[task.language].parsed and task.project is None
        is_foreign = as_text and not is_source(plain, task.language)
        is_guarded = is_unwritable or is_foreign or is_protected(path, globs) or _shadows(plain, task)
        roots = suite.command.interpreter.source_roots if suite.command else ()
        is_guarded = is_guarded or shadows_dependency(plain, task.files, suite.libraries, roots)
        is_guarded = is_guarded or _lies_in_a_file(plain, files)
        is_guarded = is_guarded and not is_dependency_file(plain, candidate_files, suite)
        if plain in suite.test_files or (is_guarded and plain not in task.modules):
            refused.append(path)
    return tuple(sorted(refused))


def apply_allowed_files(
    candidate: Candidate, suite: Suite
) -> tuple[dict[str, bytes], tuple[VerdictNote, ...]]:
    """Return the project's files with the candidate's allowed files, and a note on each refused file."""
    refused = find_protected_files(candidate.files, suite)
    allowed = {path: text for path, text in candidate.files.items() if path not in refused}
    notes = tuple(VerdictNote(code="protected_file", subjects=(path,)) for path in refused)
    return overlay_candidate(suite.task.files, allowed), notes


def _lies_in_a_file(path: str, files: Collection[str]) -> bool:
    """Whether a folder of a path has the name of a file, because no project can hold both."""
    return any(str(folder) in files for folder in PurePosixPath(path).parents)


def is_dependency_file(path: str, candidate_files: Mapping[str, str], suite: Suite) -> bool:
    """Whether a file is a lock file of Suture's, or a manifest that asks for allowed packages.

    Such files are delivered with the code.

    Args:
        path: A path of the candidate.
        candidate_files: Path -> text.
        suite: The suite, whose package installer decides.
    """
    if suite.packages is None or suite.interpreter is None or path not in candidate_files:
        return False
    return suite.packages.allows_file(
        path, overlay_candidate(suite.task.files, candidate_files), suite.interpreter
    )


def _shadows(path: str, task: Task) -> bool:
    # The test runner would import a new `json.py` in the project's root instead of the real module. The
    # reporting plugin, which receives the key, could also be shadowed from any folder on the import path.
    stems = [part.removesuffix(".py") for part in path.split("/")]
    ours = stems[0] in sys.stdlib_module_names or stems[0] in PYTEST_MODULES or PLUGIN in stems
    return ours and path not in task.files
