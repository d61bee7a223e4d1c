"""Many short runs of a suite: each with a limit that follows from how long the whole of it takes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from suture.checks import Suite, check_candidate
from suture.proof.measures.mutation_testing import NoticedBy
from suture.records import Candidate, Verdict
from suture.workspace import overlay

LEAST_WALL_S = 10.0
"""Seconds for a mutant's run at least, however short the suite's own run was."""
TIMES_AS_LONG = 5
"""A mutant's run may take so many times as long as the suite did: of changed code much never ends."""


async def notices(
    suite: Suite, files: Mapping[str, str], verdict: Verdict, fixed: Collection[str] = ()
) -> NoticedBy:
    """Whether a check that passes on some files fails once they are changed further.

    Tests that the change has mended are asked first, since they run it: where one of them notices, the rest
    need not run. Only those that pass without the others count there.

    Args:
        suite: The task's checks, ready to run.
        files: The change that passes, path -> text over the project's own.
        verdict: The verdict on those files.
        fixed: Ids of the tests that it has mended.

    Raises:
        SandboxError: The wall failed.
    """
    quick = _impatient(suite, verdict)
    first: frozenset[str] = frozenset()
    if quick.command is not None and quick.command.is_pytest and fixed:
        first = await _passing(quick, files, fixed)

    async def noticed(more: Mapping[str, str]) -> bool:
        changed = {**files, **more}
        if first and not first <= await _passing(quick, changed, first):
            return True
        again = await check_candidate(Candidate(files=changed, origin="repair"), quick)
        return not verdict.passed <= again.passed

    return noticed


def _impatient(suite: Suite, verdict: Verdict) -> Suite:
    """The same suite with less patience, for changes of which many never end."""
    wall_s = max(LEAST_WALL_S, TIMES_AS_LONG * verdict.wall_s)
    limits = {
        "test_wall_s": min(suite.settings.test_wall_s, wall_s),
        "check_wall_s": min(suite.settings.check_wall_s, wall_s),
    }
    settings = suite.settings.model_copy(update=limits)
    command = suite.command.within(settings) if suite.command is not None else None
    smoke = replace(suite.smoke, settings=settings) if suite.smoke is not None else None
    calls = replace(suite.calls, settings=settings) if suite.calls is not None else None
    # What is changed further was let run, perhaps by a person. A refusal here would count as noticed, and a
    # verification, which has no scan, would see another score.
    return replace(suite, settings=settings, command=command, smoke=smoke, calls=calls, vet=None)


async def _passing(suite: Suite, files: Mapping[str, str], tests: Collection[str]) -> frozenset[str]:
    """Those of some tests that pass where only they run."""
    assert suite.command is not None
    outcomes = await suite.command.run_some(overlay(suite.task.files, files), tests)
    return frozenset(outcome.check_id for outcome in outcomes if outcome.passed)
