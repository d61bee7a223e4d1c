"""What a ledger says of candidates: the cost of each, which led, what a smaller cap would have given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from suture.bench.running.candidate_steps import load_candidate_files, read_steps, sum_run_totals
from suture.core.ledger import Event, RunFolder
from suture.core.records import Candidate, CheckOutcome, Counterexample, Verdict


class Story:
    """A ledger, written down by hand."""

    def __init__(self, folder: Path) -> None:
        self.folder = RunFolder(folder)
        self.events: list[Event] = []

    def tell(self, kind: str, /, **data: Any) -> None:
        number = len(self.events)
        self.events.append(Event(seq=number, time_s=1000.0 + number, kind=kind, data=data))

    def call(self, tokens: int, *, branch: int | None = None, step: int = 0, role: str = "coder") -> None:
        place = {} if branch is None else {"branch": branch, "step": step}
        cost = {"completion_tokens": tokens, "prompt_tokens": 10, "money": 0.5, "seconds": 2.0}
        self.tell("model.called", role=role, prompt="p", replayed=False, **cost, **place)

    def propose(self, name: str, *, branch: int = 0, step: int = 0) -> None:
        candidate = Candidate(files={"solution.py": name}, origin="sample")
        blob = self.folder.save_record(candidate)
        self.tell("candidate.proposed", candidate=name, blob=blob, origin="sample", branch=branch, step=step)

    def judge(self, name: str, passed: int, failed: int, *, exception: str = "", **stamps: int) -> None:
        outcomes = [CheckOutcome(check_id=f"p{n}", status="passed") for n in range(passed)]
        fact = Counterexample(check_id="f", exception=exception)
        outcomes += [CheckOutcome(check_id="f", status="failed", counterexample=fact)] * failed
        verdict = Verdict(candidate=name, outcomes=tuple(outcomes), evidence="split")
        blob = self.folder.save_record(verdict)
        self.tell(
            "candidate.checked",
            candidate=name,
            passed=passed,
            failed=failed,
            verdict=blob,
            seconds=1.0,
            **stamps,
        )

    def finish(self, best: str) -> None:
        self.tell(
            "run.finished",
            outcome="healed",
            reason={"code": "checks_pass"},
            best=best,
            confidence=0.9,
            warnings=[],
            result="r",
        )


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


def led(story: Story) -> list[tuple[str, int]]:
    return [
        (s.candidate, s.completion_tokens) for s in read_steps(story.folder, story.events) if s.is_best_so_far
    ]


def test_the_draws_of_a_round_cost_what_those_before_them_cost(story: Story) -> None:
    """A smaller cap would have drawn the first of them only, whatever came back first."""
    story.tell("run.started")
    for branch, tokens in ((1, 200), (0, 100), (2, 400)):
        story.call(tokens, branch=branch)
    for branch in (2, 0, 1):
        story.propose(f"c{branch}", branch=branch)
    story.judge("c2", 3, 0, branch=1, step=0)
    story.judge("c0", 1, 2, branch=0, step=0)
    story.judge("c1", 2, 1, branch=2, step=0)
    steps = read_steps(story.folder, story.events)
    assert [(s.candidate, s.completion_tokens, s.prompt_tokens, s.calls) for s in steps] == [
        ("c0", 100, 10, 1),
        ("c1", 300, 20, 2),
        ("c2", 700, 30, 3),
    ]
    assert [s.is_best_so_far for s in steps] == [True, True, True]
    assert [s.claimed for s in steps] == [False, False, True]


def test_replies_that_brought_nothing_count_for_those_after_them(story: Story) -> None:
    story.tell("run.started")
    story.call(100, branch=0, step=0)
    story.tell("move.failed", kind="MalformedReply", message="no code", branch=0, step=0)
    story.tell("moves.decided", round=1, best=None, moves=[{"kind": "sample"}])
    story.call(50, branch=0, step=1)
    story.propose("a", branch=0, step=1)
    story.judge("a", 1, 0)
    story.call(30, branch=0, step=1, role="critic")
    story.finish(best="a")
    assert led(story) == [("a", 150)]
    assert sum_run_totals(story.events)["completion_tokens"] == 180


def test_only_a_better_one_takes_the_lead_and_a_regression_loses(story: Story) -> None:
    story.tell("run.started")
    story.judge("base", 2, 1, exception="mod.OddError: no")
    story.tell("moves.decided", round=0, best="base", moves=[{"kind": "sample"}])
    story.call(10, branch=0, step=0)
    story.propose("breaks", step=0)
    story.judge("breaks", 3, 0)
    story.tell("candidate.regressed", candidate="breaks", checks=["p1"])
    story.tell("moves.decided", round=1, best="base", moves=[{"kind": "sample"}])
    story.call(10, branch=0, step=1)
    story.propose("equal", step=1)
    story.judge("equal", 2, 1)
    story.tell("moves.decided", round=2, best="base", moves=[{"kind": "sample"}])
    steps = read_steps(story.folder, story.events)
    assert [(s.candidate, s.is_best_so_far, s.claimed) for s in steps] == [
        ("base", True, False),
        ("breaks", False, False),
        ("equal", False, False),
    ]
    assert (steps[0].origin, steps[0].round, steps[0].completion_tokens, steps[0].error) == (
        "user",
        -1,
        0,
        "OddError",
    )


def test_the_runs_own_choice_has_the_last_word(story: Story) -> None:
    """A tournament may pick another of those that pass: from then on that is what the user would get."""
    story.tell("run.started")
    for branch in (0, 1):
        story.call(100, branch=branch)
        story.propose(f"c{branch}", branch=branch)
        story.judge(f"c{branch}", 2, 0)
    story.call(40, role="critic")
    story.finish(best="c1")
    assert led(story) == [("c0", 100), ("c1", 240)]


def test_a_best_that_was_never_judged_alone_changes_nothing(story: Story) -> None:
    """The proof may make a change smaller; what was judged in the run is what is graded."""
    story.tell("run.started")
    story.call(100, branch=0)
    story.propose("c")
    story.judge("c", 1, 0)
    story.finish(best="smaller")
    assert led(story) == [("c", 100)]


def test_code_and_sums(story: Story) -> None:
    story.tell("run.started")
    story.call(100, branch=0)
    story.propose("print(1)")
    story.judge("print(1)", 0, 1)
    (step,) = read_steps(story.folder, story.events)
    assert load_candidate_files(step, story.folder, story.events) == {"solution.py": "print(1)"}
    assert step.error == "AssertionError"
    assert sum_run_totals(story.events) == {
        "completion_tokens": 100,
        "prompt_tokens": 10,
        "calls": 1,
        "cost_usd": 0.5,
        "seconds": 3.0,
        "model_s": 2.0,
        "checks_s": 1.0,
        "prompts": {"coder": "p"},
    }
