"""Briefs of tasks that are written file by file: whole projects, and code in languages that we do not
parse.
"""

from __future__ import annotations

import re

from suture.agents.roles.project_coder import ProjectBrief, render_project_rules
from suture.agents.tuning import MAX_PROJECT_CHARS
from suture.core.records import Candidate, Move, Task
from suture.judge import Suite, find_protected_files
from suture.project.languages import LANGUAGES
from suture.project.workspace import decode_text, is_test_file, overlay_candidate


def is_written_as_files(task: Task) -> bool:
    """Return whether the coder writes whole files: for a project, or in another language than Python."""
    return task.kind == "write" and (task.project is not None or not LANGUAGES[task.language].parsed)


def make_new_project_brief(task: Task, suite: Suite) -> ProjectBrief:
    """Return the brief for a fresh start: what is wanted, and the code that exists already."""
    is_new = task.project is not None and task.project.is_new
    existing = {} if is_new else _select_writable_files(task, Candidate(files={}, origin="user"), suite)
    return ProjectBrief(
        statement=task.statement,
        rules=render_project_rules(task),
        files=existing,
        entry=_required_file(task),
        tests=render_given_tests(task),
        project=frozenset(task.files),
    )


def make_project_repair_brief(
    move: Move, candidate: Candidate, known: ProjectBrief, task: Task, suite: Suite
) -> ProjectBrief:
    """Return the brief for the repair of a failing candidate.

    Args:
        move: The move; it says how to go about the repair.
        candidate: The failing candidate.
        known: A brief with the facts, the output, the history and the refused replies.
        task: The task.
        suite: The tests that decide; it says which files may be written.
    """
    shown = dict(candidate.files)
    if not (task.project and task.project.is_new):
        writable = _select_writable_files(task, candidate, suite)
        shown |= {path: text for path, text in writable.items() if path not in shown}
    return ProjectBrief(
        statement=task.statement,
        rules=render_project_rules(task),
        files=shown,
        entry=_required_file(task),
        tests=render_given_tests(task),
        facts=known.facts,
        output=known.output,
        history=known.history,
        refused=known.refused,
        strategy=move.strategy,
        project=frozenset((*task.files, *candidate.files)),
        is_repair=True,
    )


def _required_file(task: Task) -> str:
    """Return the file that must be written; empty where the project has code already."""
    return task.module if task.project is None or task.project.is_new else ""


def render_given_tests(task: Task) -> str:
    """Return the tests that the user gave with the statement; not the tests of an existing project."""
    asserts = [check.source for check in task.checks if check.provenance == "user"]
    is_new = not task.project or task.project.is_new
    files = [decode_text(content) for path, content in task.files.items() if is_new and is_test_file(path)]
    return "\n".join(text.strip("\n") for text in [*asserts, *files])


def _select_writable_files(task: Task, candidate: Candidate, suite: Suite) -> dict[str, str]:
    """Return the files of an existing project that may change, those that the statement mentions first."""
    files = overlay_candidate(task.files, candidate.files)
    protected = find_protected_files(dict.fromkeys(files, ""), suite)
    words = {word.lower() for word in re.findall(r"[A-Za-z]{3,}", task.statement)}

    def order(path: str) -> tuple[bool, str]:
        return not words & set(re.findall(r"[a-z]{3,}", path.lower())), path

    shown: dict[str, str] = {}
    room_chars = MAX_PROJECT_CHARS
    for path in sorted((p for p in files if p not in protected and not is_test_file(p)), key=order):
        text = decode_text(files[path])
        if b"\0" not in files[path] and len(text) <= room_chars:
            shown[path] = text
            room_chars -= len(text)
    return shown
