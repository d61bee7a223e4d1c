"""Trust in generated checks, derived from how candidates behave under them.

The idea that independently written programs and tests vouch for each other is CodeT's (arXiv 2207.10397):
candidates that pass the same set of checks agree, and a set weighs its candidates times its checks. The
weight of each signal was fitted on recorded tests and answers (see docs/loop.md, benchmarks/trust.py).

The outcomes of all generated checks on all candidates form a matrix, one row for each candidate.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import mean
from types import MappingProxyType

from suture.core.records import Candidate, Check, CheckOutcome, CheckStatus, Task, Verdict
from suture.judge.extraction.prose_examples import extract_examples
from suture.judge.suite import Suite
from suture.judge.trust.check_filter import FilteredChecks, RejectedCheck, contradict, filter_checks
from suture.judge.tuning import CHECK_BATCH, MAX_CHECK_TIMEOUTS
from suture.judge.verdicts import check_candidate

GIVEN = ("user", "visible")
"""Provenances of checks that are right by definition."""


@dataclass(frozen=True, kw_only=True)
class MatrixLimits:
    """Limits of the runs that fill the matrix.

    Attributes:
        check_timeout_s: Wall-clock seconds of one check, unless the settings allow less.
        concurrency: Candidates that run at the same time.
    """

    checks: int = 48
    candidates: int = 10
    check_timeout_s: float = 3.0
    timeout_s: float = 60.0
    concurrency: int = 2


@dataclass(frozen=True, kw_only=True)
class CandidateRow:
    """The outcomes of the checks on one candidate.

    Attributes:
        viable: Whether it passes every given check.
        statuses: Check id -> status; checks that did not run are missing.
    """

    candidate: str
    viable: bool
    statuses: Mapping[str, CheckStatus]

    @property
    def passed(self) -> frozenset[str]:
        """Ids of the checks that pass."""
        return frozenset(check for check, status in self.statuses.items() if status == "passed")


def is_viable(verdict: Verdict) -> bool:
    """Return whether a candidate fails none of the given checks."""
    failed = verdict.failed
    return not any(outcome.check_id in failed for outcome in verdict.outcomes if outcome.provenance in GIVEN)


async def run_matrix(
    checks: Sequence[Check],
    judged: Sequence[tuple[Candidate, Verdict]],
    suite: Suite,
    limits: MatrixLimits | None = None,
) -> tuple[CandidateRow, ...]:
    """Run checks on candidates.

    Args:
        checks: The checks, in order of importance: when the time is up, the first ones ran on every
            candidate.
        judged: Different candidates with their verdicts on the given checks; viable ones run first.
        suite: The suite that judged them. Its own checks do not run again.
    """
    limits = limits or MatrixLimits()
    distinct = {candidate.hash: (candidate, is_viable(verdict)) for candidate, verdict in judged}
    chosen = sorted(distinct.values(), key=lambda pair: not pair[1])[: limits.candidates]
    statuses: dict[str, dict[str, CheckStatus]] = {candidate.hash: {} for candidate, _ in chosen}
    wall_s = min(limits.check_timeout_s, suite.settings.check_timeout_s)
    slots = asyncio.Semaphore(limits.concurrency)

    async def run_batch(candidate: Candidate, batch: Sequence[Check]) -> None:
        candidate_statuses = statuses[candidate.hash]
        if list(candidate_statuses.values()).count("timeout") >= MAX_CHECK_TIMEOUTS:
            return
        batch_suite = replace(suite, command=None, task=replace(suite.task, checks=tuple(batch)))
        async with slots:
            verdict = await check_candidate(candidate, batch_suite, wall_s=wall_s)
        candidate_statuses.update({outcome.check_id: outcome.status for outcome in verdict.outcomes})

    limited_checks = checks[: limits.checks]
    try:
        async with asyncio.timeout(limits.timeout_s):
            for start in range(0, len(limited_checks), CHECK_BATCH):
                batch = limited_checks[start : start + CHECK_BATCH]
                runs = (run_batch(candidate, batch) for candidate, _ in chosen)
                # All runs of the batch end before the first fault is raised.
                results = await asyncio.gather(*runs, return_exceptions=True)
                for fault in filter(None, results):
                    raise fault
    except TimeoutError:
        pass  # checks that did not run do not count
    return tuple(
        CandidateRow(candidate=candidate.hash, viable=viable, statuses=statuses[candidate.hash])
        for candidate, viable in chosen
    )


NO_LOGPROBS: Mapping[str, float] = MappingProxyType({})
MAX_TRUST_BY_CANDIDATES = {0: 0.15, 1: 0.85}
"""Number of candidates that ran the check -> maximum trust. One program and one test that agree may share one
mistake of one model. Chosen by judgement; not measured."""
INTERCEPT = 0.1
WEIGHTS = {"votes": 2.1, "sets": 1.15, "author": 0.7, "examples": 0.5}
"""Fitted weights. The log odds that a check is right are `INTERCEPT` plus the weighted sum of its signals."""
MIN_SURE_LOGPROB = -0.25
"""Mean natural logarithm of the token probabilities at which the model counts as sure. Not fitted."""
LOG_ODDS_PER_NAT = 2.0
"""Amount by which each further nat per token lowers the log odds. Not fitted; it can only lower the trust."""


@dataclass(frozen=True, kw_only=True)
class BehaviourGroups:
    """The candidates that count, grouped by behaviour.

    Attributes:
        rows: The candidates that pass the given checks and at least one generated check.
        sets: Set of passed checks -> its weight: the number of candidates times the number of checks.
    """

    rows: tuple[CandidateRow, ...]
    sets: Mapping[frozenset[str], int]


@dataclass(frozen=True, kw_only=True)
class TrustSignals:
    """What speaks for a check, or against it if negative.

    Attributes:
        votes: Logarithm of (candidates that pass it + 0.5) / (candidates that do not + 0.5).
        sets: In [-1, 1]: the share of the behaviours' weight that passes it, minus the share that does not.
        author: In [-1, 1]: the mean of `sets` over the author's other checks.
        examples: In (-1, 1): (given checks that the author repeated - contradicted) / (their number + 1).
    """

    votes: float = 0.0
    sets: float = 0.0
    author: float = 0.0
    examples: float = 0.0


def group_by_behaviour(rows: Sequence[CandidateRow]) -> BehaviourGroups:
    """Group the viable candidates that pass any check; code that passes nothing is only broken."""
    viable = tuple(row for row in rows if row.viable and row.passed)
    sets: dict[frozenset[str], int] = {}
    for row in viable:
        sets[row.passed] = sets.get(row.passed, 0) + len(row.passed)
    return BehaviourGroups(rows=viable, sets=sets)


def compute_agreement(check: str, groups: BehaviourGroups) -> tuple[float, float]:
    """Return the signals `votes` and `sets` of one check."""
    ran = [row for row in groups.rows if check in row.statuses]
    passing = sum(check in row.passed for row in ran)
    votes = math.log((passing + 0.5) / (len(ran) - passing + 0.5))
    total_weight = sum(groups.sets.values())
    if not ran or not total_weight:
        return votes, 0.0
    share = sum(weight for passed, weight in groups.sets.items() if check in passed) / total_weight
    return votes, 2 * share - 1


def compute_uncertainty(mean_logprob: float | None) -> float:
    """Return by how many nats per token the model was less sure than `MIN_SURE_LOGPROB`; 0 if unknown."""
    return 0.0 if mean_logprob is None else max(0.0, MIN_SURE_LOGPROB - mean_logprob)


def compute_trust(signals: TrustSignals, *, candidates: int, uncertainty: float = 0.0) -> float:
    """Return a trust in [0, 1].

    Args:
        candidates: Number of viable candidates that the check ran on.
    """
    values = asdict(signals)
    weighted_sum = sum((weight * values[name] for name, weight in WEIGHTS.items()), 0.0)
    log_odds = INTERCEPT + weighted_sum - LOG_ODDS_PER_NAT * uncertainty
    trust = 1 / (1 + math.exp(-max(-30.0, min(30.0, log_odds))))  # clamped, so that `exp` never overflows
    return round(min(trust, MAX_TRUST_BY_CANDIDATES.get(candidates, 1.0)), 4)


@dataclass(frozen=True, kw_only=True)
class AssessedCheck:
    """A generated check with its trust.

    Attributes:
        reasons: Why the trust is that high, for people, the most important first.
        failed_on: Hashes of the candidates that fail it, whether or not they count.
    """

    check: Check
    reasons: tuple[str, ...]
    signals: TrustSignals
    failed_on: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TrustAssessment:
    """The assessment of generated checks.

    Attributes:
        kept: The usable checks, the most trusted first. Below the threshold they inform, and never decide.
        candidates: Number of candidates whose behaviour counted.
        behaviours: Number of different behaviours among them.
    """

    kept: tuple[AssessedCheck, ...]
    removed: tuple[RejectedCheck, ...]
    candidates: int
    behaviours: int

    @property
    def checks(self) -> tuple[Check, ...]:
        """The usable checks with their trust."""
        return tuple(assessed.check for assessed in self.kept)


def get_given_checks(task: Task) -> tuple[Check, ...]:
    """Return the checks that are right by definition: user, visible, and the examples of the statement."""
    checks = tuple(check for check in task.checks if check.provenance in GIVEN)
    return (*checks, *extract_examples(task.statement, task.entry_point))


def assess_matrix(
    filtered: FilteredChecks, rows: Sequence[CandidateRow], logprobs: Mapping[str, float] = NO_LOGPROBS
) -> TrustAssessment:
    """Compute the trust of each check; of checks that contradict each other at most one stays.

    Args:
        logprobs: Source of a check -> mean natural logarithm of its token probabilities, if the model
            reported it.
    """
    groups = group_by_behaviour(rows)
    all_assessed = [
        _assess_check(check, filtered, groups, compute_uncertainty(logprobs.get(check.source)))
        for check in filtered.checks
    ]
    all_assessed = [
        replace(
            assessed,
            failed_on=tuple(
                row.candidate
                for row in rows
                if row.statuses.get(assessed.check.id, "passed") not in ("passed", "skipped")
            ),
        )
        for assessed in all_assessed
    ]
    all_assessed.sort(key=lambda assessed: -assessed.check.trust)
    kept: list[AssessedCheck] = []
    removed = list(filtered.removed)
    for assessed in all_assessed:
        check = assessed.check
        better = next(
            (
                other.check
                for other in all_assessed
                if other is not assessed
                and other.check.trust >= check.trust
                and _contradicts(assessed, other, filtered)
            ),
            None,
        )
        if better is None:
            kept.append(assessed)
        else:
            removed.append(RejectedCheck(check=check, code="contradicts_generated", subject=better.id))
    return TrustAssessment(
        kept=tuple(kept), removed=tuple(removed), candidates=len(groups.rows), behaviours=len(groups.sets)
    )


async def assess_checks(
    generated: Sequence[Check],
    judged: Sequence[tuple[Candidate, Verdict]],
    suite: Suite,
    *,
    limits: MatrixLimits | None = None,
    logprobs: Mapping[str, float] = NO_LOGPROBS,
) -> TrustAssessment:
    """Run generated checks on candidates in the sandbox, and compute the trust of each.

    Args:
        generated: Checks that a model wrote, of provenance `spec`, `adversarial` or `property`.
        judged: Different candidates with their verdicts on the given checks.
        logprobs: See `assess_matrix`.
    """
    filtered = filter_checks(generated, get_given_checks(suite.task), suite.task.entry_point)
    rows = await run_matrix(filtered.checks, judged, suite, limits) if filtered.checks else ()
    return assess_matrix(filtered, rows, logprobs)


def _assess_check(
    check: Check, filtered: FilteredChecks, groups: BehaviourGroups, uncertainty: float
) -> AssessedCheck:
    votes, sets = compute_agreement(check.id, groups)
    others = [
        other for other in filtered.checks if other.provenance == check.provenance and other is not check
    ]
    right, wrong = filtered.record.get(check.provenance, (0, 0))
    signals = TrustSignals(
        votes=votes,
        sets=sets,
        author=mean(compute_agreement(other.id, groups)[1] for other in others) if others else 0.0,
        examples=(right - wrong) / (right + wrong + 1),
    )
    ran = [row for row in groups.rows if check.id in row.statuses]
    passing = sum(check.id in row.passed for row in ran)
    reasons = [
        f"{passing} of {len(ran)} candidates that pass the given checks pass it"
        if ran
        else "no candidate that passes the given checks ran it"
    ]
    if ran and len(groups.sets) > 1:
        reasons.append(f"{(1 + sets) / 2:.0%} of the weight of {len(groups.sets)} behaviours")
    if right or wrong:
        reasons.append(f"its author repeated {right} given checks and contradicted {wrong}")
    if uncertainty:
        reasons.append("the model was not sure of it")
    trust = compute_trust(signals, candidates=len(ran), uncertainty=uncertainty)
    return AssessedCheck(check=replace(check, trust=trust), reasons=tuple(reasons), signals=signals)


def _contradicts(assessed: AssessedCheck, other: AssessedCheck, filtered: FilteredChecks) -> bool:
    left, right = filtered.claims[assessed.check.id], filtered.claims[other.check.id]
    if left.expected is None or right.expected is None or left.call != right.call:
        return False
    return contradict(left.expected, right.expected)


async def run_untrusted_checks(
    checks: Sequence[Check], candidate: Candidate, suite: Suite, limits: MatrixLimits | None = None
) -> tuple[CheckOutcome, ...]:
    """Return the outcomes of checks on one candidate; when the time is up, those of the first checks.

    Args:
        suite: The suite that judged the candidate. Its own checks do not run again.
        limits: As for the assessment of the checks' trust.

    Raises:
        SandboxError: The sandbox failed.
    """
    limits = limits or MatrixLimits()
    wall_s = min(limits.check_timeout_s, suite.settings.check_timeout_s)
    outcomes: list[CheckOutcome] = []
    limited_checks = checks[: limits.checks]
    try:
        async with asyncio.timeout(limits.timeout_s):
            for start in range(0, len(limited_checks), CHECK_BATCH):
                batch = tuple(limited_checks[start : start + CHECK_BATCH])
                batch_suite = replace(suite, command=None, task=replace(suite.task, checks=batch))
                verdict = await check_candidate(candidate, batch_suite, wall_s=wall_s)
                outcomes += verdict.outcomes
    except TimeoutError:
        pass  # Checks that did not run are not reported.
    return tuple(outcomes)
