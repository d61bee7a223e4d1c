"""Finding the files that a candidate must not write, because they could change the verdict."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Mapping
from pathlib import PurePosixPath

from suture.core.records import Candidate, VerdictNote
from suture.judge.runners.pytest_runner import PLUGIN
from suture.judge.runners.run_inputs import find_test_data
from suture.judge.suite import Suite
from suture.project.languages import LANGUAGES, is_source
from suture.project.layout_changes import changes_only_layout
from suture.project.mixed_files import keeps_tests
from suture.project.workspace import (
    DEFAULT_PROTECTED,
    decode_text,
    is_protected,
    overlay_candidate,
)


def find_protected_paths(paths: Iterable[str], suite: Suite) -> tuple[str, ...]:
    """Return those of some paths that no candidate may write, sorted."""
    files, mixed = suite.task.files, suite.mixed_files
    unchanged = {path: decode_text(files[path]) if path in mixed else "" for path in paths}
    return find_protected_files(unchanged, suite)


def find_protected_files(candidate_files: Mapping[str, str], suite: Suite) -> tuple[str, ...]:
    """Return the candidate's paths that could change the verdict, sorted.

    A file that contains both code and tests is one of them only if the candidate changes what decides in it.

    Args:
        candidate_files: Path -> text, such as `Candidate.files`.
        suite: The suite that judges the candidate.
    """
    task = suite.task
    globs = task.protected or DEFAULT_PROTECTED
    all_paths = {*task.files, *task.modules, *map(posixpath.normpath, candidate_files)}
    # In languages other than Python, files that are not source code may configure the test runner.
    only_sources = not LANGUAGES[task.language].parsed and task.project is None
    opened = suite.command.opened_data if suite.command else ()
    test_data = find_test_data(map(posixpath.normpath, candidate_files), task, suite.test_files, opened)
    shadowing = _find_shadowing_files(candidate_files, suite)
    refused = []
    for path in candidate_files:
        normal_path = posixpath.normpath(path)
        if _is_tidied(normal_path, candidate_files[path], suite):
            continue
        may_change_verdict = (
            (bool(task.writable) and not is_protected(path, task.writable))
            or (only_sources and not is_source(normal_path, task.language))
            or is_protected(path, globs)
            or normal_path in test_data
            or normal_path in shadowing
            or _lies_in_a_file(normal_path, all_paths)
        )
        is_requested = normal_path in task.modules or is_dependency_file(normal_path, candidate_files, suite)
        changes_tests = normal_path in suite.test_files
        if normal_path in suite.mixed_files:
            old_text = decode_text(task.files[normal_path])
            changes_tests = not keeps_tests(old_text, candidate_files[path], normal_path)
        if changes_tests or (may_change_verdict and not is_requested):
            refused.append(path)
    return tuple(sorted(refused))


def _is_tidied(path: str, text: str, suite: Suite) -> bool:
    """Whether a candidate only changes the layout or unused imports of a file that a linter or formatter reports.

    Tests may change in this way, because they decide as before.
    """
    if path not in find_tidiable_files(suite) or is_protected(path, suite.task.user_protected):
        return False
    return changes_only_layout(path, decode_text(suite.task.files[path]), text)


def find_tidiable_files(suite: Suite) -> frozenset[str]:
    """Return the files that a linter or formatter reports. Of tests among them, a candidate may change the layout."""
    reported = suite.diagnostics.reported_files if suite.diagnostics else frozenset[str]()
    return reported & suite.task.files.keys()


def _find_shadowing_files(candidate_files: Mapping[str, str], suite: Suite) -> frozenset[str]:
    """Return the new files that an import would load in place of what it loads without them.

    A new `json.py` in the project's root would replace the standard library's module. The reporting plugin, which
    receives the key, counts in every folder.
    """
    new = [path for path in map(posixpath.normpath, candidate_files) if path not in suite.task.files]
    if not new:
        return frozenset()
    lookup = suite.module_lookup
    shadowing = {path for path in new if PLUGIN in path.replace(".", "/").split("/")}
    for facts in LANGUAGES.values():
        shadowing.update(facts.find_shadowing_files(new, lookup))
    return frozenset(shadowing)


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
