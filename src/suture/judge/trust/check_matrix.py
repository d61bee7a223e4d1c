"""Run every generated check on every candidate in the sandbox, within limits."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from suture.core.records import Candidate, Check, CheckStatus, Verdict
from suture.judge.suite import Suite
from suture.judge.tuning import CHECK_BATCH, MAX_CHECK_TIMEOUTS
from suture.judge.verdicts import check_candidate

GIVEN = ("user", "visible")
"""Provenances of checks that are right by definition."""


@dataclass(frozen=True, kw_only=True)
class MatrixLimits:
    """Limits of running the matrix.

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
