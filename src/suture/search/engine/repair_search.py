"""The search as a whole: a file that does not parse is made to parse first, then likely changes are tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from suture.judge.trials.failing_project import FailingProject
from suture.search import tuning
from suture.search.engine.search_engine import search_repairs
from suture.search.engine.syntax_recovery import find_unparsable_file, recover_file
from suture.search.languages.language_adapter import TrialSession
from suture.search.ordering.reverts import Hunk
from suture.search.search_records import SearchLimits, SearchResult


async def find_repairs(
    project: FailingProject,
    limits: SearchLimits,
    hunks: Sequence[Hunk] = (),
    session: TrialSession | None = None,
) -> SearchResult:
    """Search for changes with which all tests pass, also where a file does not parse.

    Args:
        limits: The limits of the search.
        hunks: What changed when the tests began to fail. Reverts of it are tried before anything else.
        session: Trials that were started for this search; they end with it.

    Raises:
        SandboxError: The sandbox failed.
    """
    unparsable = find_unparsable_file(project)
    if unparsable is None:
        return await search_repairs(project, limits, hunks, session)
    if hunks:
        # No operator applies to a file that does not parse, so that this search only reverts changes.
        result = await search_repairs(project, limits, hunks, session)
        remaining = limits.minus(result.seconds, result.tried_count)
        return result if result.plausible else await recover_file(project, unparsable, remaining)
    if session is not None:
        await session.close()  # No test ran in it, because the file does not parse.
    # A line is given if only the runtime rejects the file, for a reason that may not be its syntax.
    is_certain = not unparsable.line
    recovery_s = limits.max_seconds * (1.0 if is_certain else tuning.UNCERTAIN_RECOVERY_SHARE)
    result = await recover_file(project, unparsable, replace(limits, max_seconds=recovery_s))
    remaining = limits.minus(result.seconds, result.tried_count)
    is_over = remaining.max_seconds < tuning.MIN_SEARCH_S or not remaining.max_candidates
    if result.plausible or (result.tried_count and is_certain) or is_over:
        return result
    return await search_repairs(project, remaining)
