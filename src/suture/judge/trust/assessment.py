"""Generated checks with the trust that they have earned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from types import MappingProxyType

from suture.core.records import Candidate, Check, Task, Verdict
from suture.judge.extraction.prose_examples import extract_examples
from suture.judge.suite import Suite
from suture.judge.trust.check_claims import contradict
from suture.judge.trust.check_matrix import GIVEN, CandidateRow, MatrixLimits, run_matrix
from suture.judge.trust.prefilter import FilteredChecks, RejectedCheck, filter_checks
from suture.judge.trust.scoring import (
    BehaviourGroups,
    TrustSignals,
    agreement,
    compute_trust,
    compute_uncertainty,
    hear,
)

NOT_TOLD: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class AssessedCheck:
    """A check with its trust, and why it is that much.

    Attributes:
        check: The generated check, with the trust that it has earned.
        reasons: For people, the weightiest first.
        signs: What the trust was computed from.
    """

    check: Check
    reasons: tuple[str, ...]
    signs: TrustSignals


@dataclass(frozen=True, kw_only=True)
class TrustAssessment:
    """What became of generated checks.

    Attributes:
        kept: Those that may be used, the most trusted first. Below the threshold they inform, never decide.
        removed: The others, each with its reason.
        heard: How many candidates' behaviour counted: those that pass anything at all.
        behaviours: How many different ones they showed.
    """

    kept: tuple[AssessedCheck, ...]
    removed: tuple[RejectedCheck, ...]
    heard: int
    behaviours: int

    @property
    def checks(self) -> tuple[Check, ...]:
        """The kept checks with their trust."""
        return tuple(assessed.check for assessed in self.kept)


def given_checks(task: Task) -> tuple[Check, ...]:
    """What is right by definition: the user's and the visible checks, and the examples of the statement."""
    own = tuple(check for check in task.checks if check.provenance in GIVEN)
    return (*own, *extract_examples(task.statement, task.entry_point))


def assess(
    sifted: FilteredChecks, rows: Sequence[CandidateRow], logprobs: Mapping[str, float] = NOT_TOLD
) -> TrustAssessment:
    """Give each check its trust; of checks that contradict each other at most one stays.

    Args:
        sifted: The generated checks that are worth a run.
        rows: What candidates did with them.
        logprobs: Source of a check -> mean natural logarithm of the probability of the tokens of its lines,
            where the model told it.
    """
    voices = hear(rows)
    assessed = [
        _assessed(check, sifted, voices, compute_uncertainty(logprobs.get(check.source)))
        for check in sifted.checks
    ]
    assessed.sort(key=lambda one: -one.check.trust)
    kept: list[AssessedCheck] = []
    removed = list(sifted.removed)
    for one in assessed:
        rivals = [other for other in assessed if other is not one and _rivals(one, other, sifted)]
        better = next((other for other in rivals if other.check.trust >= one.check.trust), None)
        if better is None:
            kept.append(one)
        else:
            reason = f"it contradicts {better.check.id!r}, which has as much trust or more"
            removed.append(RejectedCheck(check=one.check, reason=reason))
    return TrustAssessment(
        kept=tuple(kept), removed=tuple(removed), heard=len(voices.rows), behaviours=len(voices.sets)
    )


async def assess_checks(
    generated: Sequence[Check],
    judged: Sequence[tuple[Candidate, Verdict]],
    suite: Suite,
    *,
    limits: MatrixLimits | None = None,
    logprobs: Mapping[str, float] = NOT_TOLD,
) -> TrustAssessment:
    """Run generated checks on candidates behind the wall, and give each its trust.

    Args:
        generated: Checks that a model wrote, of provenance `spec`, `adversarial` or `property`.
        judged: Diverse candidates, each with its verdict on the given checks.
        suite: The task's checks, ready to run.
        limits: What the runs may use.
        logprobs: See `assess`.

    Raises:
        SandboxError: The wall failed.
    """
    sifted = filter_checks(generated, given_checks(suite.task), suite.task.entry_point)
    rows = await run_matrix(sifted.checks, judged, suite, limits) if sifted.checks else ()
    return assess(sifted, rows, logprobs)


def _assessed(check: Check, sifted: FilteredChecks, voices: BehaviourGroups, unsure: float) -> AssessedCheck:
    votes, sets = agreement(check.id, voices)
    others = [other for other in sifted.checks if other.provenance == check.provenance and other is not check]
    right, wrong = sifted.record.get(check.provenance, (0, 0))
    signs = TrustSignals(
        votes=votes,
        sets=sets,
        author=mean(agreement(other.id, voices)[1] for other in others) if others else 0.0,
        examples=(right - wrong) / (right + wrong + 1),
    )
    ran = [row for row in voices.rows if check.id in row.statuses]
    passing = sum(check.id in row.passed for row in ran)
    reasons = [
        f"{passing} of {len(ran)} candidates that pass the given checks pass it"
        if ran
        else "no candidate that passes the given checks was run on it"
    ]
    if ran and len(voices.sets) > 1:
        reasons.append(f"{(1 + sets) / 2:.0%} of the weight of {len(voices.sets)} behaviours")
    if right or wrong:
        reasons.append(f"its author repeated {right} given checks rightly and {wrong} wrongly")
    if unsure:
        reasons.append("the model was not sure of its words")
    trust = compute_trust(signs, heard=len(ran), unsure=unsure)
    return AssessedCheck(check=replace(check, trust=trust), reasons=tuple(reasons), signs=signs)


def _rivals(one: AssessedCheck, other: AssessedCheck, sifted: FilteredChecks) -> bool:
    left, right = sifted.claims[one.check.id], sifted.claims[other.check.id]
    if left.expected is None or right.expected is None or left.call != right.call:
        return False
    return contradict(left.expected, right.expected)
