"""Every generated check on every candidate, behind the wall, within bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from suture.core.records import Candidate, Check, CheckStatus, Verdict
from suture.judge.suite import Suite
from suture.judge.verdicts import check_candidate

GIVEN = ("user", "visible")
"""Who writes checks that are right by definition."""
BATCH = 8
"""Checks in one go, after which it is seen who was late."""
MOST_LATE = 2
"""Checks that a candidate may be late in, before it is left alone: others have the same calls to make."""


@dataclass(frozen=True, kw_only=True)
class MatrixLimits:
    """What running the matrix may use.

    Attributes:
        checks: Generated checks that are run; the others stay untried.
        candidates: Candidates that they are run on.
        check_s: Wall-clock seconds of one check, where the settings do not allow less.
        seconds: Wall-clock seconds of the whole.
        at_once: Candidates that run at the same time.
    """

    checks: int = 48
    candidates: int = 10
    check_s: float = 3.0
    seconds: float = 60.0
    at_once: int = 2


@dataclass(frozen=True, kw_only=True)
class CandidateRow:
    """What one candidate did with the checks.

    Attributes:
        candidate: The candidate's hash.
        viable: Whether it passes every given check.
        statuses: Check id -> how it ended; checks that were not run are missing.
    """

    candidate: str
    viable: bool
    statuses: Mapping[str, CheckStatus]

    @property
    def passed(self) -> frozenset[str]:
        """The checks that it passes."""
        return frozenset(check for check, status in self.statuses.items() if status == "passed")


def is_viable(verdict: Verdict) -> bool:
    """Whether a candidate fails none of the given checks; also where there are none."""
    failed = verdict.failed
    return not any(o.check_id in failed for o in verdict.outcomes if o.provenance in GIVEN)


async def run_matrix(
    checks: Sequence[Check],
    judged: Sequence[tuple[Candidate, Verdict]],
    suite: Suite,
    limits: MatrixLimits | None = None,
) -> tuple[CandidateRow, ...]:
    """Run checks on candidates.

    Args:
        checks: The checks; when the time is up the first ones have been run on every candidate.
        judged: Different candidates, each with its verdict on the given checks; viable ones are run first.
        suite: What judged them. Its own checks are not run again.
        limits: The most it may use.

    Raises:
        SandboxError: The wall failed.
    """
    limits = limits or MatrixLimits()
    once = {candidate.hash: (candidate, is_viable(verdict)) for candidate, verdict in judged}
    chosen = sorted(once.values(), key=lambda pair: not pair[1])[: limits.candidates]
    statuses: dict[str, dict[str, CheckStatus]] = {candidate.hash: {} for candidate, _ in chosen}
    wall_s = min(limits.check_s, suite.settings.check_timeout_s)
    gate = asyncio.Semaphore(limits.at_once)

    async def run_one(candidate: Candidate, batch: Sequence[Check]) -> None:
        seen = statuses[candidate.hash]
        if list(seen.values()).count("timeout") >= MOST_LATE:
            return
        part = replace(suite, command=None, task=replace(suite.task, checks=tuple(batch)))
        async with gate:
            verdict = await check_candidate(candidate, part, wall_s=wall_s)
        seen.update({outcome.check_id: outcome.status for outcome in verdict.outcomes})

    wanted = checks[: limits.checks]
    try:
        async with asyncio.timeout(limits.seconds):
            for first in range(0, len(wanted), BATCH):
                batch = wanted[first : first + BATCH]
                runs = (run_one(candidate, batch) for candidate, _ in chosen)
                ended = await asyncio.gather(*runs, return_exceptions=True)
                for fault in filter(None, ended):
                    raise fault
    except TimeoutError:
        pass  # what was not run is not counted
    return tuple(
        CandidateRow(candidate=candidate.hash, viable=viable, statuses=statuses[candidate.hash])
        for candidate, viable in chosen
    )
