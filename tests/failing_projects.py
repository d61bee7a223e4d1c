"""Projects with failing tests for the search, made from parts that a test provides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from suture.core.records import CheckOutcome, Language
from suture.judge.runners.test_command import TestCommand
from suture.search import FailingProject


def make_failing_project(
    command: TestCommand,
    files: Mapping[str, bytes],
    texts: Mapping[str, str],
    *outcomes: CheckOutcome,
    argv: Sequence[str] = ("node", "--test"),
    language: Language = "javascript",
) -> FailingProject:
    """Return a project for the search from the given parts."""
    return FailingProject(
        command=command, argv=argv, files=files, texts=texts, outcomes=outcomes, language=language
    )
