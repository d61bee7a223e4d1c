"""Replay the claim of a certificate that some tests are flaky: they must also be flaky without the change.

A certificate says nothing about the tests that it calls flaky. A forger could declare flaky a test that the change
breaks for some runs: after other tests, with most hash seeds, or at random. So what such a test shows with the change
it must also show on the unchanged files.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from suture.core.records import Candidate, Verdict
from suture.judge import Suite, check_candidate
from suture.judge.certificates.static_checks import require
from suture.judge.triage import rerun_flaky_tests
from suture.judge.tuning import MAX_FLAKY_COMPLETE_RERUNS, MAX_FLAKY_PROOF_RERUNS
from suture.judge.verdicts import find_weakest_evidence

MAX_NAMED_TESTS = 50
"""Tests called flaky that a claim names. The reader must see all of them, unless they are very many."""


def list_flaky_tests(tests: Collection[str]) -> str:
    """Return the ids of tests as a list for people, with a count of those that are left out."""
    listed = sorted(tests)
    more = f" and {len(listed) - MAX_NAMED_TESTS} more" if len(listed) > MAX_NAMED_TESTS else ""
    return f"{', '.join(listed[:MAX_NAMED_TESTS])}{more}"


async def check_with_flaky_tests(candidate: Candidate, suite: Suite) -> tuple[Verdict, Verdict]:
    """Return (verdict on all tests, the same without those that the suite calls flaky)."""
    complete = await check_candidate(candidate, replace(suite, flaky_tests=frozenset()))
    deciding = suite.leave_out_flaky_tests(complete)
    return complete, replace(deciding, evidence=find_weakest_evidence(deciding.outcomes))


async def require_flaky_tests(
    suite: Suite, after: Mapping[str, bytes], complete_before: Verdict | None, complete_after: Verdict
) -> None:
    """Require that tests which are called flaky are not broken by the change.

    Args:
        suite: The suite, with the packages that the change asks for.
        after: The project's files with the change.
        complete_before: The run of all tests before the change; `None` for new code, which has no flaky tests.
        complete_after: The run of all tests with the change.

    Raises:
        ClaimRefuted: A test never passes with or without the change, or only fails with it.
    """
    tests, command = suite.flaky_tests, suite.command
    if not tests:
        return
    if complete_before is None or command is None:
        require(False, "after", f"called flaky without a run that shows it: {list_flaky_tests(tests)}")
        return
    unchanged = suite.task.files
    broken = await rerun_flaky_tests(tests - complete_after.passed, command, after, passes=True)
    require(not broken, "after", f"called flaky, and never passes: {list_flaky_tests(broken)}")
    steady = await rerun_flaky_tests(tests - complete_before.passed, command, unchanged, passes=True)
    detail = "called flaky, and never passes without the change"
    require(not steady, "after", f"{detail}: {list_flaky_tests(steady)}")
    unproven = tests - complete_before.failed
    unproven -= await rerun_flaky_tests(unproven - complete_after.failed, command, after, passes=False)
    unproven = await rerun_flaky_tests(
        unproven, command, unchanged, passes=False, max_runs=MAX_FLAKY_PROOF_RERUNS
    )
    unproven = await rerun_flaky_tests(
        unproven,
        command,
        unchanged,
        passes=False,
        max_runs=MAX_FLAKY_COMPLETE_RERUNS,
        among_all=True,
    )
    detail = "called flaky, and fails only with the change"
    require(not unproven, "after", f"{detail}: {list_flaky_tests(unproven)}")
