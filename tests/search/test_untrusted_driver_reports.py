"""Trials by tree-sitter drivers when the sandbox fails or a project forges the driver's report lines."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, cast

import pytest

from failing_projects import make_failing_project
from suture.core.records import CheckOutcome, Counterexample
from suture.errors import SandboxError
from suture.judge.runners.test_command import TestCommand
from suture.judge.trials.drivers.driver_protocol import DRIVERS_BY_RUNNER
from suture.judge.trials.drivers.driver_trials import DriverTrials
from suture.judge.trials.trial_records import Proposal
from suture.mutation import apply_edits
from suture.mutation.edits import Edit
from suture.search import find_repairs
from suture.search.localisation.fault_ranking import score_named_lines
from suture.search.search_records import SearchLimits

NAME = "a.test.js::adds"
TEXTS = {"a.js": "exports.add = (a, b) => a - b;\n"}
FILES = {path: text.encode() for path, text in TEXTS.items()}
FAILED = CheckOutcome(check_id=NAME, status="failed")
STOPPED = CheckOutcome(
    check_id="npx jest",
    status="error",
    counterexample=Counterexample(
        check_id="npx jest",
        call="",
        exception="the time limit was reached though no test failed",
        code="time_limit",
    ),
)
CHANGE = Proposal(
    path="a.js", edits=(Edit(start=26, end=27, text="+"),), label="a sign", score=1.0, operators=("sign",)
)


class FailingSandboxCommand:
    """A command whose sandbox fails after one run and whose helper program reports the given lines."""

    test_files: tuple[str, ...] = ()
    has_services = False

    def __init__(self, *reports: object) -> None:
        self.report_text = "\n".join(map(json.dumps, reports)).encode()
        self.runs = 0

    async def run_selected(
        self, files: Mapping[str, bytes], tests: Collection[str], wall_s: float | None = None
    ) -> tuple[CheckOutcome, ...]:
        self.runs += 1
        if self.runs > 1:
            raise SandboxError("the sandbox is gone")
        return (FAILED,)

    async def run_helper_program(self, *args: Any, **more: Any) -> bytes:
        return self.report_text


class EndlessCommand:
    """A command that ends only if `a.js` adds; its driver reports no test."""

    test_files: tuple[str, ...] = ()
    has_services = False

    def __init__(self, report: Mapping[str, object]) -> None:
        self.report_text = json.dumps({"event": "trial", "number": 0, "passes": False, **report}).encode()
        self.timeouts_s: list[float | None] = []

    async def run_selected(
        self, files: Mapping[str, bytes], tests: Collection[str], wall_s: float | None = None
    ) -> tuple[CheckOutcome, ...]:
        self.timeouts_s.append(wall_s)
        outcomes = (CheckOutcome(check_id=NAME, status="passed"), STOPPED)[
            : 1 if b"+" in files["a.js"] else 2
        ]
        return tuple(outcome for outcome in outcomes if not tests or outcome.check_id in tests)

    async def run_helper_program(self, *args: Any, **more: Any) -> bytes:
        return self.report_text


@pytest.mark.parametrize("before", [(CheckOutcome(check_id=NAME, status="passed"), STOPPED), (STOPPED,)])
@pytest.mark.parametrize(
    "report", [{"timed_out": False, "process_lost": True}, {"failed_test": "", "passed_tests": []}]
)
async def test_a_command_that_never_ends_runs_as_a_whole_if_the_driver_sees_no_test(
    report: Mapping[str, object], before: tuple[CheckOutcome, ...]
) -> None:
    command, limits = EndlessCommand(report), SearchLimits(max_seconds=100.0)
    result = await find_repairs(
        make_failing_project(cast(TestCommand, command), FILES, TEXTS, *before, argv=("npx", "jest")), limits
    )

    assert "exports.add = (a, b) => a + b;\n" in [
        apply_edits(TEXTS["a.js"], p.edits) for p in result.plausible
    ]
    assert set(command.timeouts_s) == {5.0}  # not the long limit of a command that never ends


async def test_a_failing_sandbox_raises_its_own_error() -> None:
    project = make_failing_project(
        cast(TestCommand, FailingSandboxCommand()), FILES, TEXTS, FAILED, argv=("make", "test")
    )
    with pytest.raises(SandboxError, match="the sandbox is gone"):
        await find_repairs(project, SearchLimits())


async def test_forged_report_lines_break_nothing() -> None:
    command = FailingSandboxCommand(
        [1],
        {"event": "baseline", "tests": 7},
        {"event": "baseline", "tests": [7, {"id": NAME, "status": "failed", "lines": [1], "ms": "1e999"}]},
        {"event": "baseline", "tests": [{"id": NAME, "status": "failed", "lines": {"a.js": 3}, "ms": -1}]},
        {"event": "baseline", "tests": [{"id": NAME, "status": "failed", "stack": f"/a.js:{'9' * 5000}"}]},
        {"event": "trial", "number": 0, "passed_tests": [{}, [], NAME], "failed_test": {}},
        {"event": "trial", "number": 0, "passed_tests": 3, "failed_test": NAME},
        {"event": "trial", "number": 9, "passes": True},
        {"event": "trial", "number": "0", "passes": True},
    )
    trials = DriverTrials(
        DRIVERS_BY_RUNNER["node:test"], make_failing_project(cast(TestCommand, command), FILES, TEXTS, FAILED)
    )
    spectrum = await trials.run_baseline(1.0)
    assert spectrum.target_tests == (NAME,)
    assert spectrum.suite_s < 60  # the forged durations are ignored

    assert await trials.run_batch([CHANGE], 10.0) == []
    assert trials.usable


@pytest.mark.parametrize("timed_out", [True, False])
async def test_a_file_that_timed_out_twice_stands_for_its_tests(timed_out: bool) -> None:
    """`node --test --test-timeout=N` reports a file that never ends, and continues."""
    files = {**FILES, "a.test.js": b"", "b.test.js": b""}
    stuck = CheckOutcome(check_id="b.test.js", status="failed")
    baseline = {"event": "baseline", "tests": [{"id": NAME, "status": "passed", "lines": {}, "ms": 1}]}
    command = FailingSandboxCommand(
        baseline,
        {
            "event": "trial",
            "number": 1,
            "passes": False,
            "timed_out": timed_out,
            "process_lost": not timed_out,
        },
    )
    before = (CheckOutcome(check_id=NAME, status="passed"), stuck)

    trials = DriverTrials(
        DRIVERS_BY_RUNNER["node:test"],
        make_failing_project(cast(TestCommand, command), files, TEXTS, *before),
    )

    assert (await trials.run_baseline(1.0)).target_tests == (("b.test.js",) if timed_out else ())


def test_an_overlong_number_is_no_line_number() -> None:
    fact = Counterexample(check_id=NAME, call="", exception=f"Error at a.js:{'9' * 5000}")
    outcome = CheckOutcome(check_id=NAME, status="failed", counterexample=fact)
    _, scores = score_named_lines(TEXTS, (outcome,))
    assert set(scores) == {"a.js"}
