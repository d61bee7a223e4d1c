"""The failure once more, in the sandbox: which tests fail, whether the code is at fault, which are new."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from suture.core.records import Candidate, Task, Verdict
from suture.core.settings import Settings
from suture.errors import UsageError
from suture.interfaces.ci.commits import Checkout, base_files
from suture.judge import (
    Suite,
    Triage,
    check_candidate,
    prepare_suite,
    shows_endless_loops,
    triage,
    triage_of_tests,
)
from suture.sandbox import Sandbox, discover_programs

MOST_LEFT_OUT = 500
"""Tests that are left out by name: each is an argument of the test command."""
STILL_FAILS = ("failed", "error", "timeout")


@dataclass(frozen=True, kw_only=True)
class Reproduced:
    """What the tests say of the code as it is.

    Attributes:
        suite: The tests, ready to run.
        verdict: How they end; `None` where one of them cannot end, so that they were not run.
        triage: Which failing tests are no fault of the code's.
    """

    suite: Suite
    verdict: Verdict | None
    triage: Triage


async def reproduce(task: Task, root: Path, sandbox: Sandbox, settings: Settings) -> Reproduced:
    """Run the tests once, and look into those that fail.

    Raises:
        UsageError: The test command cannot start, or there are no tests.
        SandboxError: The wall failed.
    """
    interpreter = discover_programs(root, os.environ, task.language, settings.sandbox.python)
    endless = shows_endless_loops(task.files)
    suite = await prepare_suite(task, sandbox, settings.sandbox, interpreter, run=not endless)
    if endless and (found := await triage_of_tests(suite)).cause:
        return Reproduced(suite=suite, verdict=None, triage=found)
    verdict = await check_candidate(Candidate(files={}, origin="user"), suite)
    found = await triage(suite, verdict) if verdict.failed else Triage()
    return Reproduced(suite=suite, verdict=verdict, triage=found)


async def old_failures(reproduced: Reproduced, checkout: Checkout) -> frozenset[str]:
    """The failing tests that fail at the base too; only they are run there.

    A test that the base does not have, or whose file is not in it, is new.

    Raises:
        SandboxError: The wall failed.
    """
    command, verdict = reproduced.suite.command, reproduced.verdict
    if command is None or verdict is None or not verdict.failed:
        return frozenset()
    files = base_files(checkout, reproduced.suite.task.files)
    at_base = command.on(files)
    try:
        await at_base.collect()
    except UsageError:  # no such tests there, or no way to run them: all that fail are new
        return frozenset()
    outcomes = await at_base.run_some(files, verdict.failed)
    return verdict.failed & {one.check_id for one in outcomes if one.status in STILL_FAILS}


def without(command: tuple[str, ...], tests: frozenset[str]) -> tuple[str, ...]:
    """A pytest command that leaves some tests out."""
    return (*command, *(f"--deselect={test}" for test in sorted(tests)))


def left_out_of(command: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A command as it was before `without`, and the tests that it leaves out."""
    words = [word for word in command if not word.startswith("--deselect=")]
    return tuple(words), tuple(word.removeprefix("--deselect=") for word in command if word not in words)
