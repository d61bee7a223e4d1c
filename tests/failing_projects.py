"""Projects with failing tests for the search, made from parts that a test provides."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import cast

from suture.core.records import CheckOutcome, CheckStatus, Language
from suture.judge.runners.test_command import TestCommand
from suture.search import FailingProject, SearchLimits, SearchResult, find_repairs


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


def make_python_project(
    command: TestCommand,
    texts: Mapping[str, str],
    failing: Collection[str] = (),
    statuses: Mapping[str, str] | None = None,
    tests: Sequence[str] = (),
) -> FailingProject:
    """Return a Python project for the search.

    Args:
        command: A collected pytest command.
        failing: Ids of the tests that fail.
        statuses: Id of a test -> its status; by default that of the failing tests only.
        tests: Sources of the tests; by default those that the command has.
    """
    known = statuses or dict.fromkeys(failing, "failed")
    outcomes = [
        CheckOutcome(check_id=test, status=cast(CheckStatus, status)) for test, status in known.items()
    ]
    files = {path: b"" for path in command.test_files}
    files |= {f"test_{number}.py": text.encode() for number, text in enumerate(tests)}
    return make_failing_project(
        command, files, texts, *outcomes, argv=("python", "-m", "pytest"), language="python"
    )


async def search_python(
    command: TestCommand,
    texts: Mapping[str, str],
    failing: Collection[str],
    limits: SearchLimits,
    statuses: Mapping[str, str] | None = None,
) -> SearchResult:
    """Search a Python project for repairs."""
    return await find_repairs(make_python_project(command, texts, failing, statuses), limits)
