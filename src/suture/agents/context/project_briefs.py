"""What the coder is told of a whole project, and of code in a language that we do not parse."""

from __future__ import annotations

import re

from suture.agents.roles.project_coder import ProjectBrief, rules_of
from suture.core.records import Candidate, Move, Task
from suture.judge import Suite
from suture.judge import protected_files as refused_files
from suture.loop.context import RunContext
from suture.loop.policy.attempts import Attempt
from suture.project.languages import LANGUAGES
from suture.project.workspace import is_test_file, overlay, text_of

MOST_SHOWN_CHARS = 24_000
"""Of the files of a project that is there."""


def writes_files(task: Task) -> bool:
    """Whether a task is written file by file, as text: a project, or one in another language than Python."""
    return task.kind == "write" and (task.project is not None or not LANGUAGES[task.language].parsed)


def fresh_brief(context: RunContext, suite: Suite) -> ProjectBrief:
    """What is to be written, and what is there already."""
    task = context.task
    there = (
        {}
        if task.project and task.project.is_new
        else _open_files(task, Candidate(files={}, origin="user"), suite)
    )
    return ProjectBrief(
        statement=task.statement,
        rules=rules_of(task),
        files=there,
        entry=_entry_of(task),
        tests=given_tests(task),
        project=frozenset(task.files),
    )


def mending_brief(
    move: Move, parent: Attempt, known: ProjectBrief, context: RunContext, suite: Suite
) -> ProjectBrief:
    """What a candidate that fails is, and what was seen of it.

    Args:
        move: How to go about it.
        parent: The candidate.
        known: Facts, output, history and refused replies; the rest is filled in here.
        context: The run.
        suite: Says which files may be written.
    """
    task, candidate = context.task, context.candidate(parent.blob)
    shown = dict(candidate.files)
    if not (task.project and task.project.is_new):
        shown |= {p: t for p, t in _open_files(task, candidate, suite).items() if p not in shown}
    return ProjectBrief(
        statement=task.statement,
        rules=rules_of(task),
        files=shown,
        entry=_entry_of(task),
        tests=given_tests(task),
        facts=known.facts,
        output=known.output,
        history=known.history,
        refused=known.refused,
        strategy=move.strategy,
        project=frozenset((*task.files, *candidate.files)),
        mends=True,
    )


def _entry_of(task: Task) -> str:
    """The file that must be written; empty where code is there already."""
    return task.module if task.project is None or task.project.is_new else ""


def given_tests(task: Task) -> str:
    """The tests that a user gave with a statement; those of a project that is there are its own."""
    asserts = [check.source for check in task.checks if check.provenance == "user"]
    new = not task.project or task.project.is_new
    files = [text_of(content) for path, content in task.files.items() if new and is_test_file(path)]
    return "\n".join(text.strip("\n") for text in [*asserts, *files])


def _open_files(task: Task, candidate: Candidate, suite: Suite) -> dict[str, str]:
    """What may be changed of a project that is there: first what the statement speaks of."""
    files = overlay(task.files, candidate.files)
    closed = refused_files(dict.fromkeys(files, ""), suite)
    words = {word.lower() for word in re.findall(r"[A-Za-z]{3,}", task.statement)}

    def spoken_of(path: str) -> tuple[bool, str]:
        return not words & set(re.findall(r"[a-z]{3,}", path.lower())), path

    shown: dict[str, str] = {}
    room = MOST_SHOWN_CHARS
    for path in sorted((p for p in files if p not in closed and not is_test_file(p)), key=spoken_of):
        text = text_of(files[path])
        if b"\0" not in files[path] and len(text) <= room:
            shown[path] = text
            room -= len(text)
    return shown
