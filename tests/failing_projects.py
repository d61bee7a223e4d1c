"""Projects to search in, of parts that a test makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from suture.core.records import CheckOutcome, Language
from suture.judge.runners.test_command import TestCommand
from suture.search import FailingProject


def project_of(
    command: TestCommand,
    files: Mapping[str, bytes],
    texts: Mapping[str, str],
    *outcomes: CheckOutcome,
    argv: Sequence[str] = ("node", "--test"),
    language: Language = "javascript",
) -> FailingProject:
    """A project for a search, with no more than what a test says of it."""
    return FailingProject(
        command=command, argv=argv, files=files, texts=texts, outcomes=outcomes, language=language
    )
