"""The row that a benchmark stores for each run: everything that reports are computed from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from suture.bench.grading.hidden_checks import Grade
from suture.bench.problem import Regime
from suture.core.records import Origin, Outcome


class RowKey(NamedTuple):
    """What distinguishes the rows of a benchmark."""

    dataset: str
    task: str
    arm: str
    model: str
    cap: int
    seed: int


@dataclass(frozen=True, kw_only=True)
class CandidateStep:
    """A candidate of a run, with what the run had spent when it was proposed.

    Attributes:
        candidate: Content hash of the candidate; the code is in the run folder.
        origin: How it was made; `user` is the given code.
        round: The round that proposed it; -1 for given code.
        completion_tokens: Reply tokens spent so far, including its own.
        passed: Number of visible deciding checks that passed.
        failed: Number of visible deciding checks that did not pass.
        is_best_so_far: Whether it became the best candidate, which the user would get if the run ended here.
        claimed: Whether all visible deciding checks passed, there was at least one, and nothing that worked broke.
        grade: The result of the hidden checks; `None` until it is graded.
    """

    candidate: str
    origin: Origin
    round: int
    completion_tokens: int
    prompt_tokens: int
    calls: int
    seconds: float
    passed: int = 0
    failed: int = 0
    is_best_so_far: bool = False
    claimed: bool = False
    grade: Grade | None = None


@dataclass(frozen=True, kw_only=True)
class BenchmarkRow:
    """The result of one task with one arm, model, cap and seed.

    Attributes:
        problem_hash: Hash of everything that defines the task.
        seed: Number of the independent repetition, from 0.
        cap: Maximum reply tokens that the arm could spend on the task.
        steps: The candidates in order, each with what the run had spent.
        completion_tokens: Tokens of all replies, including those without a candidate.
        cost_usd: Cost in US dollars; `None` if a price is not known.
        model_s: Seconds of waiting for replies; replayed replies count 0.
        checks_s: Seconds of running visible checks.
        prompts: Role -> hash of the prompt file that was used.
        hidden_checks_visible: Whether the loop could see every check that grades it, so that its claim cannot be wrong.
        fault: Why there is no result, such as a failed sandbox; empty if there is one.
        sandbox_failure: How the run's code broke the sandbox, twice with the same replies, while harmless code in
            between and afterwards did not. Such a row counts as wrong. Empty if it did not happen.
        forged: Whether the last candidate passed the visible checks in the run and fails them in another
            sandbox; `None` if it did not pass them, or if that cannot be determined.
    """

    problem: str
    problem_hash: str
    dataset: str
    regime: Regime
    arm: str
    model: str
    seed: int = 0
    cap: int
    run: str
    outcome: Outcome
    confidence: float
    steps: tuple[CandidateStep, ...] = ()
    completion_tokens: int = 0
    prompt_tokens: int = 0
    calls: int = 0
    cost_usd: float | None = None
    seconds: float = 0.0
    model_s: float = 0.0
    checks_s: float = 0.0
    prompts: Mapping[str, str] = field(default_factory=dict)
    hidden_checks_visible: bool = False
    fault: str = ""
    sandbox_failure: str = ""
    forged: bool | None = None

    @property
    def key(self) -> RowKey:
        """What distinguishes the row from the others of its benchmark."""
        return RowKey(self.dataset, self.problem, self.arm, self.model, self.cap, self.seed)

    def best_step(self) -> CandidateStep | None:
        """Return the best candidate that was proposed within the cap, which the user would get."""
        # The last reply of a run may exceed the cap, and what it proposed does not count.
        newest_first = (step for step in reversed(self.steps) if step.completion_tokens <= self.cap)
        return next((step for step in newest_first if step.is_best_so_far), None)

    def first_proposed(self) -> CandidateStep | None:
        """Return the first candidate that the arm proposed; given code does not count."""
        return next((step for step in self.steps if step.origin != "user"), None)

    def solved(self) -> bool | None:
        """Return whether the hidden checks pass on the best candidate; `None` if that is not known."""
        if self.fault:
            return None
        if self.sandbox_failure:
            return False
        step = self.best_step()
        if step is None:
            return False
        if step.grade is None or step.grade.status == "infra":
            return None
        return step.grade.right
