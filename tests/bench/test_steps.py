"""Candidate steps read from a ledger: their costs, and which of them was the best so far."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from suture.bench.running.candidate_steps import load_candidate_files, read_steps, sum_run_totals
from suture.core.ledger import Event, RunFolder
from suture.core.records import Candidate, CheckOutcome, Counterexample, Verdict


class LedgerBuilder:
    """Builds the events of a ledger."""

    def __init__(self, folder: Path) -> None:
        self.folder = RunFolder(folder)
        self.events: list[Event] = []

    def append(self, kind: str, /, **data: Any) -> None:
        number = len(self.events)
        self.events.append(Event(seq=number, time_s=1000.0 + number, kind=kind, data=data))

    def call(self, tokens: int, *, branch: int | None = None, step: int = 0, role: str = "coder") -> None:
        branch_fields = {} if branch is None else {"branch": branch, "step": step}
        cost = {"completion_tokens": tokens, "prompt_tokens": 10, "money": 0.5, "seconds": 2.0}
        self.append("model.called", role=role, prompt="p", replayed=False, **cost, **branch_fields)

    def propose(self, name: str, *, branch: int = 0, step: int = 0) -> None:
        candidate = Candidate(files={"solution.py": name}, origin="sample")
        blob = self.folder.save_record(candidate)
        self.append(
            "candidate.proposed", candidate=name, blob=blob, origin="sample", branch=branch, step=step
        )

    def check(self, name: str, passed: int, failed: int, *, exception: str = "", **fields: int) -> None:
        outcomes = [CheckOutcome(check_id=f"p{n}", status="passed") for n in range(passed)]
        failure = Counterexample(check_id="f", exception=exception)
        outcomes += [CheckOutcome(check_id="f", status="failed", counterexample=failure)] * failed
        verdict = Verdict(candidate=name, outcomes=tuple(outcomes), evidence="split")
        blob = self.folder.save_record(verdict)
        self.append(
            "candidate.checked",
            candidate=name,
            passed=passed,
            failed=failed,
            verdict=blob,
            seconds=1.0,
            **fields,
        )

    def finish(self, best: str) -> None:
        self.append(
            "run.finished",
            outcome="healed",
            reason={"code": "checks_pass"},
            best=best,
            confidence=0.9,
            warnings=[],
            result="r",
        )


@pytest.fixture
def ledger(tmp_path: Path) -> LedgerBuilder:
    return LedgerBuilder(tmp_path)


def list_best_steps(ledger: LedgerBuilder) -> list[tuple[str, int]]:
    """Return the candidates that became the best, with their completion tokens."""
    return [
        (step.candidate, step.completion_tokens) for step in read_steps(ledger.events) if step.is_best_so_far
    ]


def test_a_draw_costs_all_earlier_draws_of_its_round(ledger: LedgerBuilder) -> None:
    """A smaller cap would have drawn only the first of them, whichever reply arrived first."""
    ledger.append("run.started")
    for branch, tokens in ((1, 200), (0, 100), (2, 400)):
        ledger.call(tokens, branch=branch)
    for branch in (2, 0, 1):
        ledger.propose(f"c{branch}", branch=branch)
    ledger.check("c2", 3, 0, branch=1, step=0)
    ledger.check("c0", 1, 2, branch=0, step=0)
    ledger.check("c1", 2, 1, branch=2, step=0)

    steps = read_steps(ledger.events)

    assert [(step.candidate, step.completion_tokens, step.prompt_tokens, step.calls) for step in steps] == [
        ("c0", 100, 10, 1),
        ("c1", 300, 20, 2),
        ("c2", 700, 30, 3),
    ]
    assert [step.is_best_so_far for step in steps] == [True, True, True]
    assert [step.claimed for step in steps] == [False, False, True]


def test_failed_replies_count_for_the_next_candidate(ledger: LedgerBuilder) -> None:
    ledger.append("run.started")
    ledger.call(100, branch=0, step=0)
    ledger.append("move.failed", kind="MalformedReply", message="no code", branch=0, step=0)
    ledger.append("moves.decided", round=1, best=None, moves=[{"kind": "sample"}])
    ledger.call(50, branch=0, step=1)
    ledger.propose("a", branch=0, step=1)
    ledger.check("a", 1, 0)
    ledger.call(30, branch=0, step=1, role="critic")

    ledger.finish(best="a")

    assert list_best_steps(ledger) == [("a", 150)]
    assert sum_run_totals(ledger.events)["completion_tokens"] == 180


def test_only_a_better_candidate_without_regression_becomes_the_best(ledger: LedgerBuilder) -> None:
    ledger.append("run.started")
    ledger.check("base", 2, 1, exception="mod.OddError: no")
    ledger.append("moves.decided", round=0, best="base", moves=[{"kind": "sample"}])
    ledger.call(10, branch=0, step=0)
    ledger.propose("breaks", step=0)
    ledger.check("breaks", 3, 0)
    ledger.append("candidate.regressed", candidate="breaks", checks=["p1"])
    ledger.append("moves.decided", round=1, best="base", moves=[{"kind": "sample"}])
    ledger.call(10, branch=0, step=1)
    ledger.propose("equal", step=1)
    ledger.check("equal", 2, 1)
    ledger.append("moves.decided", round=2, best="base", moves=[{"kind": "sample"}])

    steps = read_steps(ledger.events)

    assert [(step.candidate, step.is_best_so_far, step.claimed) for step in steps] == [
        ("base", True, False),
        ("breaks", False, False),
        ("equal", False, False),
    ]
    assert (steps[0].origin, steps[0].round, steps[0].completion_tokens) == ("user", -1, 0)


def test_the_choice_of_the_run_decides_the_best_candidate(ledger: LedgerBuilder) -> None:
    """A tournament may choose another passing candidate, which the user would get from then on."""
    ledger.append("run.started")
    for branch in (0, 1):
        ledger.call(100, branch=branch)
        ledger.propose(f"c{branch}", branch=branch)
        ledger.check(f"c{branch}", 2, 0)
    ledger.call(40, role="critic")

    ledger.finish(best="c1")

    assert list_best_steps(ledger) == [("c0", 100), ("c1", 240)]


def test_a_best_candidate_that_was_never_checked_is_ignored(ledger: LedgerBuilder) -> None:
    """Certification may reduce a change, but the benchmark grades what the run has checked."""
    ledger.append("run.started")
    ledger.call(100, branch=0)
    ledger.propose("c")
    ledger.check("c", 1, 0)
    ledger.finish(best="smaller")
    assert list_best_steps(ledger) == [("c", 100)]


def test_candidate_files_and_run_totals_are_read(ledger: LedgerBuilder) -> None:
    ledger.append("run.started")
    ledger.call(100, branch=0)
    ledger.propose("print(1)")
    ledger.check("print(1)", 0, 1)

    (step,) = read_steps(ledger.events)

    assert load_candidate_files(step, ledger.folder, ledger.events) == {"solution.py": "print(1)"}
    assert sum_run_totals(ledger.events) == {
        "completion_tokens": 100,
        "prompt_tokens": 10,
        "calls": 1,
        "cost_usd": 0.5,
        "seconds": 3.0,
        "model_s": 2.0,
        "checks_s": 1.0,
        "prompts": {"coder": "p"},
    }
