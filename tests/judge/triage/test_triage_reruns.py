"""How often triage runs a command that is not pytest: it runs whole, whatever is asked of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, cast

import pytest

from suture.core.records import CheckOutcome, CheckStatus, Counterexample, Task, Verdict
from suture.core.settings import SandboxSettings
from suture.judge import Suite, triage_failures
from suture.judge.runners.test_command import TestCommand

BOTH = ("a.test.js::adds", "a.test.js::takes away")
TASK = Task(statement="", kind="heal", files={}, test_command=("npx", "jest"), language="javascript")


def ended(status: CheckStatus) -> tuple[CheckOutcome, ...]:
    return tuple(CheckOutcome(check_id=name, status=status) for name in BOTH)


class Command:
    """One whose tests end in the same way each time."""

    is_pytest = False
    run_together_and_isolated = TestCommand.run_together_and_isolated

    def __init__(self, status: CheckStatus) -> None:
        self.status: CheckStatus = status
        self.runs = 0

    async def run_selected(
        self, files: Mapping[str, bytes], tests: Collection[str], wall_s: float | None = None
    ) -> tuple[CheckOutcome, ...]:
        self.runs += 1
        return tuple(one for one in ended(self.status) if one.check_id in tests)


@pytest.mark.parametrize(
    ("status", "seen", "runs", "cause"),
    [
        ("failed", None, 1, None),
        ("failed", BOTH, 0, None),
        ("failed", BOTH[:1], 1, None),
        ("passed", None, 1, "flaky"),
        ("passed", (), 1, "flaky"),
    ],
)
async def test_one_more_run_tells_and_none_where_another_has_told(
    status: CheckStatus, seen: Collection[str] | None, runs: int, cause: str | None
) -> None:
    command = Command(status)
    suite = Suite(
        task=TASK,
        sandbox=cast(Any, None),
        settings=SandboxSettings(),
        command=cast(TestCommand, command),
    )
    base = Verdict(candidate="c", outcomes=ended("failed"), evidence="nonce")

    async def failed_again() -> frozenset[str]:
        return frozenset(seen or ())

    found = await triage_failures(suite, base, None if seen is None else failed_again)
    assert (found.cause, command.runs) == (cause, runs)


async def test_what_took_all_of_its_time_is_not_run_again() -> None:
    command = Command("failed")
    suite = Suite(
        task=TASK,
        sandbox=cast(Any, None),
        settings=SandboxSettings(),
        command=cast(TestCommand, command),
    )
    fact = Counterexample(
        check_id="npx jest", exception="the time limit was reached though no test failed", code="time_limit"
    )
    stopped = CheckOutcome(check_id="npx jest", status="error", counterexample=fact)
    base = Verdict(candidate="c", outcomes=(stopped,), evidence="nonce", wall_s=30.0)
    found = await triage_failures(suite, base)
    assert (found.code_failures, command.runs) == (("npx jest",), 0)
