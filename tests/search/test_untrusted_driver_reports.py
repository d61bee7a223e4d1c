"""Trials in other languages: where the wall fails, and where a project writes what a driver would."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from failing_projects import project_of
from suture.core.records import CheckOutcome, Counterexample
from suture.errors import SandboxError
from suture.judge.runners.test_command import TestCommand
from suture.judge.trials.trial_records import Proposal
from suture.mutation import apply_edits
from suture.mutation.edits import Edit
from suture.search import search_with_tree_sitter
from suture.search.localisation.fault_ranking import score_named_lines
from suture.search.search_records import SearchLimits, SearchResult
from suture.search.tree_sitter.command_trials import try_by_command
from suture.search.tree_sitter.driver_protocol import BY_RUNNER
from suture.search.tree_sitter.driver_trials import DriverTrials

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


class Wall:
    """A command's wall: it fails after one run, and brings back what it is given."""

    def __init__(self, *told: object) -> None:
        self.told = "\n".join(map(json.dumps, told)).encode()
        self.runs = 0

    async def run_selected(
        self, files: Mapping[str, bytes], tests: Collection[str], wall_s: float | None = None
    ) -> tuple[CheckOutcome, ...]:
        self.runs += 1
        if self.runs > 1:
            raise SandboxError("the wall is gone")
        return (FAILED,)

    async def run_helper_program(self, *args: Any, **more: Any) -> bytes:
        return self.told


class Endless:
    """A command that ends where `a.js` adds, and none of whose tests is seen beside it."""

    def __init__(self, told: Mapping[str, object]) -> None:
        self.told = json.dumps({"event": "trial", "number": 0, "passes": False, **told}).encode()
        self.walls: list[float | None] = []

    async def run_selected(
        self, files: Mapping[str, bytes], tests: Collection[str], wall_s: float | None = None
    ) -> tuple[CheckOutcome, ...]:
        self.walls.append(wall_s)
        told = (CheckOutcome(check_id=NAME, status="passed"), STOPPED)[: 1 if b"+" in files["a.js"] else 2]
        return tuple(one for one in told if not tests or one.check_id in tests)

    async def run_helper_program(self, *args: Any, **more: Any) -> bytes:
        return self.told


@pytest.mark.parametrize("before", [(CheckOutcome(check_id=NAME, status="passed"), STOPPED), (STOPPED,)])
@pytest.mark.parametrize(
    "told", [{"timed_out": False, "process_lost": True}, {"failed_test": "", "passed_tests": []}]
)
async def test_where_a_command_never_ends_and_no_test_is_seen_beside_it_it_runs_whole(
    told: Mapping[str, object], before: tuple[CheckOutcome, ...]
) -> None:
    wall, limits = Endless(told), SearchLimits(max_seconds=100.0)
    found = await search_with_tree_sitter(
        project_of(cast(TestCommand, wall), FILES, TEXTS, *before, argv=("npx", "jest")), limits
    )
    assert "exports.add = (a, b) => a + b;\n" in [
        apply_edits(TEXTS["a.js"], p.edits) for p in found.plausible
    ]
    assert set(wall.walls) == {5.0}  # none as long as a command may run that never ends


async def test_a_wall_that_fails_is_told_as_itself() -> None:
    found = SearchResult(texts=TEXTS)
    with pytest.raises(SandboxError, match="the wall is gone"):
        await try_by_command(
            project_of(cast(TestCommand, Wall()), FILES, TEXTS, FAILED),
            [CHANGE, CHANGE],
            found,
            SearchLimits(),
        )


async def test_what_a_project_writes_into_the_report_breaks_nothing() -> None:
    wall = Wall(
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
    trials = DriverTrials(BY_RUNNER["node:test"], project_of(cast(TestCommand, wall), FILES, TEXTS, FAILED))
    spectrum = await trials.run_baseline(1.0)
    assert spectrum.target_tests == (NAME,)
    assert trials.baseline_s < 60  # by which short looks are worth their while, before any long round
    found = SearchResult(texts=TEXTS)
    await trials.try_all([CHANGE], found, SearchLimits())
    assert (found.plausible, found.partial) == ([], [])


@pytest.mark.parametrize("timed_out", [True, False])
async def test_a_file_that_was_late_in_both_stands_for_its_tests(late: bool) -> None:
    """`node --test --test-timeout=N` tells of a file that never ends, and goes on."""
    files = {**FILES, "a.test.js": b"", "b.test.js": b""}
    stuck = CheckOutcome(check_id="b.test.js", status="failed")
    look = {"event": "baseline", "tests": [{"id": NAME, "status": "passed", "lines": {}, "ms": 1}]}
    wall = Wall(
        look, {"event": "trial", "number": 1, "passes": False, "timed_out": late, "process_lost": not late}
    )
    before = (CheckOutcome(check_id=NAME, status="passed"), stuck)
    trials = DriverTrials(BY_RUNNER["node:test"], project_of(cast(TestCommand, wall), files, TEXTS, *before))
    assert (await trials.run_baseline(1.0)).target_tests == (("b.test.js",) if late else ())


def test_a_number_without_end_is_no_line() -> None:
    fact = Counterexample(check_id=NAME, call="", exception=f"Error at a.js:{'9' * 5000}")
    said = CheckOutcome(check_id=NAME, status="failed", counterexample=fact)
    _, scores = score_named_lines(TEXTS, (said,))
    assert set(scores) == {"a.js"}


async def test_what_is_suspicious_does_not_end_the_search_at_once() -> None:
    look = {"event": "baseline", "tests": [{"id": NAME, "status": "failed", "lines": {}, "ms": 1}]}
    wall = Wall(look, {"event": "trial", "number": 0, "passes": True})
    driver = replace(BY_RUNNER["node:test"], round_size=4, parallel=1)
    other = replace(CHANGE, edits=(Edit(start=26, end=27, text="*"),))
    passed = []
    for suspicious in ((), (CHANGE,)):
        trials = DriverTrials(driver, project_of(cast(TestCommand, wall), FILES, TEXTS, FAILED))
        await trials.run_baseline(1.0)
        found = SearchResult(texts=TEXTS)
        await trials.try_all([CHANGE, other], found, SearchLimits(), suspicious.__contains__)
        passed.append(found.plausible)
    assert passed == [[CHANGE], [CHANGE, other]]
