"""What a benchmark keeps of one task under one arm: all that a table is computed from, and no text of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from suture.bench.grading.hidden_checks import Grade
from suture.bench.problem import Regime
from suture.core.records import Origin, Outcome


@dataclass(frozen=True, kw_only=True)
class Step:
    """One candidate of a run, in the order in which they were judged.

    Attributes:
        candidate: Its content hash; the code lies in the run's folder.
        origin: How it came to be; `user` is the code that was given.
        round: The loop's round that proposed it; -1 for given code.
        generated: Tokens of replies that were spent when it was there, its own included.
        prompted: Tokens of prompts likewise.
        calls: Model calls likewise.
        seconds: Since the run began.
        passed: Visible deciding checks that passed.
        failed: Those that did not.
        leads: Whether it was now the best under the trusted order: what the user would get if it ended here.
        claimed: Whether every visible deciding check passed, and there was one.
        error: The class of its first failure on the visible checks, such as `AssertionError`; empty where it
            has none.
        grade: What the hidden checks say; `None` until it was graded.
    """

    candidate: str
    origin: Origin
    round: int
    generated: int
    prompted: int
    calls: int
    seconds: float
    passed: int = 0
    failed: int = 0
    leads: bool = False
    claimed: bool = False
    error: str = ""
    grade: Grade | None = None


@dataclass(frozen=True, kw_only=True)
class WeighedTest:
    """A test that a role wrote in a run, and what it was worth.

    Attributes:
        trust: In [0, 1], as the run weighed it last.
        decided: Whether it ever reached the threshold, and so had a say.
        right: Whether the reference passes it; `None` where that could not be found out.
    """

    trust: float
    decided: bool
    right: bool | None


@dataclass(frozen=True, kw_only=True)
class Row:
    """One task, one arm, one model, one cap, one seed.

    Attributes:
        problem: The task's id.
        problem_hash: Of everything that decides what the task is.
        dataset: The data set's name, such as `humaneval`.
        regime: What the loop could see of the checks.
        arm: The name of the recipe that is measured.
        model: `provider:model`.
        seed: Which of several independent repetitions, from 0.
        cap: The most tokens of replies that the arm could spend on the task.
        run: The run's id, which names its folder.
        outcome: How the run ended.
        confidence: The result's, in [0, 1].
        steps: The candidates in order, each with what it had cost.
        generated: Tokens of all replies, also those that brought no candidate.
        prompted: Tokens of all prompts.
        calls: Calls of a model, a count.
        money: US dollars; `None` where the price is not known.
        seconds: The run's wall-clock time.
        model_s: Of it, waiting for replies; a replayed reply counts nothing.
        checks_s: Of it, running visible checks.
        prompts: Hashes of the prompt files that were used, role -> hash.
        tests: The generated tests that were weighed; none where the arm writes none.
        shown: Whether the loop could see every check that grades it, so that no claim of it can be wrong.
        fault: Why there is no number for this task (the wall failed, say); empty where there is one.
        felled: How its code brought the wall down in the run, and again in a second one with the same replies
            while harmless code between them and after did not; such a row is wrong. Empty where it did not.
        forged: Whether its last candidate passed the visible checks in the run and fails them behind another
            wall; `None` where it did not pass them, or that cannot be told.
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
    steps: tuple[Step, ...] = ()
    generated: int = 0
    prompted: int = 0
    calls: int = 0
    money: float | None = None
    seconds: float = 0.0
    model_s: float = 0.0
    checks_s: float = 0.0
    prompts: Mapping[str, str] = field(default_factory=dict)
    tests: tuple[WeighedTest, ...] = ()
    shown: bool = False
    fault: str = ""
    felled: str = ""
    forged: bool | None = None

    def leader(self) -> Step | None:
        """What the user would get: the best candidate that was there within the cap."""
        return next((s for s in reversed(self.steps) if s.leads and s.generated <= self.cap), None)

    def first_proposed(self) -> Step | None:
        """The first candidate that the arm proposed; given code is not one."""
        return next((step for step in self.steps if step.origin != "user"), None)

    def solved(self) -> bool | None:
        """Whether the hidden checks pass on that candidate; `None` where that is not known."""
        if self.fault:
            return None
        if self.felled:
            return False
        step = self.leader()
        if step is None:
            return False
        if step.grade is None or step.grade.standing == "infra":
            return None
        return step.grade.right
