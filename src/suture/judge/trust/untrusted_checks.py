"""Run checks that decide nothing on a result, so that the user learns which of them fail."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from suture.core.records import Candidate, Check, CheckOutcome
from suture.judge.suite import Suite
from suture.judge.trust.assessment import MatrixLimits
from suture.judge.tuning import CHECK_BATCH
from suture.judge.verdicts import check_candidate


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
