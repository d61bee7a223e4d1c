"""Finding the files that a candidate must not write, because they could change the verdict."""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Collection, Mapping
from pathlib import PurePosixPath

from suture.core.records import Candidate, Task, VerdictNote
from suture.judge.runners.pytest_runner import PLUGIN
from suture.judge.runners.test_dependencies import shadows_dependency
from suture.judge.suite import Suite
from suture.project.languages import LANGUAGES, detect_file_languages, is_source
from suture.project.workspace import (
    DEFAULT_PROTECTED,
    decode_text,
    is_protected,
    is_test_file,
    overlay_candidate,
)

PYTEST_MODULES = frozenset((
    "_pytest", "colorama", "exceptiongroup", "execnet", "iniconfig", "packaging", "pluggy", "py",
    "pygments", "pytest", "setproctitle", "tomli", "xdist",
))  # fmt: skip
"""Pytest's modules and dependencies in all versions since 6, and what pytest-xdist's workers import early."""

STRING_LITERAL = re.compile(r"""["']([^"'\n]{1,200})["']""")
"""A string that may be a path. The maximum length is chosen by judgement; not measured."""


def find_protected_files(candidate_files: Mapping[str, str], suite: Suite) -> tuple[str, ...]:
    """Return the candidate's paths that could change the verdict, sorted.

    Args:
        candidate_files: Path -> text, such as `Candidate.files`.
        suite: The suite that judges the candidate.
    """
    task = suite.task
    globs = task.protected or DEFAULT_PROTECTED
    roots = suite.command.interpreter.source_roots if suite.command else ()
    all_paths = {*task.files, *task.modules, *map(posixpath.normpath, candidate_files)}
    # In other languages than Python, files that are no source code may configure the test runner.
    only_sources = not LANGUAGES[task.language].parsed and task.project is None
    test_data = _find_test_data(candidate_files, suite)
    refused = []
    for path in candidate_files:
        normal_path = posixpath.normpath(path)
        may_change_verdict = (
            (bool(task.writable) and not is_protected(path, task.writable))
            or (only_sources and not is_source(normal_path, task.language))
            or is_protected(path, globs)
            or normal_path in test_data
            or _shadows_test_machinery(normal_path, task)
            or shadows_dependency(normal_path, task.files, suite.libraries, roots)
            or _lies_in_a_file(normal_path, all_paths)
        )
        is_requested = normal_path in task.modules or is_dependency_file(normal_path, candidate_files, suite)
        if normal_path in suite.test_files or (may_change_verdict and not is_requested):
            refused.append(path)
    return tuple(sorted(refused))


def _find_test_data(candidate_files: Mapping[str, str], suite: Suite) -> frozenset[str]:
    """Return the changed files that are no source code and that the tests name, such as expected results.

    A file is named by a string in a test that is its name or that of a folder it lies in. Of a package's own
    data only the file's name counts, because words such as `data` are also keys. Files that the user allowed by
    name (`--only`) are left out.
    """
    task = suite.task
    data = {
        path
        for path in map(posixpath.normpath, candidate_files)
        if path in task.files
        and not detect_file_languages((path,))
        and not (task.writable and is_protected(path, task.writable))
    }
    if not data or task.kind != "heal":  # that only a repair is restricted is by judgement
        return frozenset()
    named = {
        part
        for path, content in task.files.items()
        if (path in suite.test_files or is_test_file(path)) and detect_file_languages((path,))
        for literal in STRING_LITERAL.findall(decode_text(content))
        for part in literal.split("/")
    }
    packages = {posixpath.dirname(path) for path in task.files if path.endswith("/__init__.py")}

    def is_named(path: str) -> bool:
        folders = [str(folder) for folder in PurePosixPath(path).parents]
        names = {path} if packages.intersection(folders) else {path, *folders}
        return any(posixpath.basename(name) in named for name in names)

    return frozenset(filter(is_named, data))


def apply_allowed_files(
    candidate: Candidate, suite: Suite
) -> tuple[dict[str, bytes], tuple[VerdictNote, ...]]:
    """Return the project's files with the candidate's allowed files, and a note on each refused file."""
    refused = find_protected_files(candidate.files, suite)
    allowed = {path: text for path, text in candidate.files.items() if path not in refused}
    notes = tuple(VerdictNote(code="protected_file", subjects=(path,)) for path in refused)
    return overlay_candidate(suite.task.files, allowed), notes


def _lies_in_a_file(path: str, files: Collection[str]) -> bool:
    """Whether a file has the name of a folder of the path; no project can contain both."""
    return any(str(folder) in files for folder in PurePosixPath(path).parents)


def is_dependency_file(path: str, candidate_files: Mapping[str, str], suite: Suite) -> bool:
    """Whether a file is a lock file that Suture wrote, or a manifest that asks for allowed packages.

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


def _shadows_test_machinery(path: str, task: Task) -> bool:
    """Whether a new file would be imported in place of the standard library, pytest or the reporting plugin.

    Python imports a `json.py` in the project's root instead of the real module. The reporting plugin, which
    receives the key, could be shadowed from any folder on the import path.
    """
    names = [part.removesuffix(".py") for part in path.split("/")]
    shadows = names[0] in sys.stdlib_module_names or names[0] in PYTEST_MODULES or PLUGIN in names
    return shadows and path not in task.files
