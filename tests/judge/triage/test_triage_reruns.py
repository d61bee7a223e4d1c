"""Triage runs a command other than pytest at most once, because such a command always runs whole."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, cast

import pytest

from suture.core.records import CheckOutcome, CheckStatus, Counterexample, Task, Verdict
from suture.core.settings import SandboxSettings
from suture.judge import Suite, triage_failures
from suture.judge.runners.pytest_runner import RunAddition
from suture.judge.runners.test_command import TestCommand

TESTS = ("a.test.js::adds", "a.test.js::takes away")
TASK = Task(statement="", kind="heal", files={}, test_command=("npx", "jest"), language="javascript")


def make_outcomes(status: CheckStatus) -> tuple[CheckOutcome, ...]:
    return tuple(CheckOutcome(check_id=name, status=status) for name in TESTS)


class ScriptedCommand:
    """A command whose tests have the same status in every run."""

    is_pytest = False
    run_together_and_isolated = TestCommand.run_together_and_isolated

    def __init__(self, status: CheckStatus) -> None:
        self.status: CheckStatus = status
        self.runs = 0

    async def run_selected(
        self, files: Mapping[str, bytes], tests: Collection[str], wall_s: float | None = None
    ) -> tuple[CheckOutcome, ...]:
        self.runs += 1
        return tuple(outcome for outcome in make_outcomes(self.status) if outcome.check_id in tests)


@pytest.mark.parametrize(
    ("status", "confirmed", "runs", "cause"),
    [
        ("failed", None, 1, None),
        ("failed", TESTS, 0, None),
        ("failed", TESTS[:1], 1, None),
        ("passed", None, 1, "flaky"),
        ("passed", (), 1, "flaky"),
    ],
)
async def test_failures_are_rerun_only_if_no_other_run_confirmed_them(
    status: CheckStatus, confirmed: Collection[str] | None, runs: int, cause: str | None
) -> None:
    command = ScriptedCommand(status)
    suite = Suite(
        task=TASK,
        sandbox=cast(Any, None),
        settings=SandboxSettings(),
        command=cast(TestCommand, command),
    )
    base = Verdict(candidate="c", outcomes=make_outcomes("failed"), evidence="nonce")

    async def find_confirmed() -> frozenset[str]:
        return frozenset(confirmed or ())

    triage = await triage_failures(suite, base, None if confirmed is None else find_confirmed)

    assert (triage.cause, command.runs) == (cause, runs)


async def test_a_command_that_timed_out_is_not_rerun() -> None:
    command = ScriptedCommand("failed")
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

    triage = await triage_failures(suite, base)

    assert (triage.code_failures, command.runs) == (("npx jest",), 0)


class OrderedCommand:
    """A pytest command whose tests fail, unless the hash seed is another one."""

    is_pytest = True

    def __init__(self) -> None:
        self.fresh_runs = 0

    async def run_selected(
        self,
        files: Mapping[str, bytes],
        tests: Collection[str],
        wall_s: float | None = None,
        *,
        addition: RunAddition | None = None,
    ) -> tuple[CheckOutcome, ...]:
        self.fresh_runs += addition is not None
        return make_outcomes("failed" if addition is None else "passed")

    async def run_together_and_isolated(
        self, files: Mapping[str, bytes], tests: Collection[str], isolated: Collection[str], wall_s: float
    ) -> tuple[tuple[CheckOutcome, ...], tuple[CheckOutcome, ...]]:
        return make_outcomes("failed"), make_outcomes("failed")


@pytest.mark.parametrize(
    ("source", "runs", "cause"),
    [
        (b"def unique(words):\n    return list(set(words))\n", 1, "flaky"),
        (b"FIRST = list({'a', 'b'})\n", 1, "flaky"),
        (b"def unique(words):\n    return list(words)\n", 0, None),
    ],
)
async def test_only_code_with_sets_runs_under_another_hash_seed(
    source: bytes, runs: int, cause: str | None
) -> None:
    command = OrderedCommand()
    suite = Suite(
        task=Task(statement="", kind="heal", files={"words.py": source}, test_command=("pytest",)),
        sandbox=cast(Any, None),
        settings=SandboxSettings(),
        command=cast(TestCommand, command),
    )
    base = Verdict(candidate="c", outcomes=make_outcomes("failed"), evidence="nonce")

    triage = await triage_failures(suite, base)

    assert (triage.cause, command.fresh_runs) == (cause, runs)
