"""Many short runs of a suite: each with a limit that follows from how long the whole of it takes."""

from __future__ import annotations

from collections.abc import Mapping

from suture.checks import Suite, check_candidate, prepare_suite
from suture.proof.mutating import NoticedBy
from suture.records import Candidate, Verdict

__all__ = ["impatient", "notices"]

LEAST_WALL_S = 10.0
TIMES_AS_LONG = 5


async def impatient(suite: Suite, verdict: Verdict) -> Suite:
    """The same suite with less patience, for changes of which many never end.

    Args:
        suite: The suite.
        verdict: One of it, on code that passes: how long it takes.

    Raises:
        SandboxError: The wall failed.
    """
    wall_s = max(LEAST_WALL_S, TIMES_AS_LONG * verdict.wall_s)
    limits = {
        "test_wall_s": min(suite.settings.test_wall_s, wall_s),
        "check_wall_s": min(suite.settings.check_wall_s, wall_s),
    }
    interpreter = suite.command.interpreter if suite.command else None
    return await prepare_suite(
        suite.task, suite.sandbox, suite.settings.model_copy(update=limits), interpreter
    )


def notices(suite: Suite, files: Mapping[str, str], verdict: Verdict) -> NoticedBy:
    """Whether a check that passes on some files fails once they are changed further.

    Args:
        suite: The suite.
        files: The change that passes, path -> text over the project's own.
        verdict: Its verdict.
    """

    async def noticed(more: Mapping[str, str]) -> bool:
        again = await check_candidate(Candidate(files={**files, **more}, origin="repair"), suite)
        return not verdict.passed <= again.passed

    return noticed
