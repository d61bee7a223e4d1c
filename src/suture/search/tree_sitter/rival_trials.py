"""What else stands at the place of a repair, and whether some test runs what it guards."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from functools import partial

from suture.judge.trials.trial_records import Proposal
from suture.mutation.tree_sitter.tree_locations import find_tree_block_stops, find_tree_location
from suture.search.engine.search_clock import LEAST_LINGER_S, LINGER
from suture.search.search_limits import SearchLimits
from suture.search.tree_sitter.driver_trials import DriverTrials
from suture.search.ranking.rivals import LOOK_S, GuardedBlocks, RivalQueue
from suture.search.search_result import SearchResult


async def try_rivals(
    driving: DriverTrials, proposals: Sequence[Proposal], found: SearchResult, limits: SearchLimits
) -> None:
    """Try what else stands at the places of what passed, and what was next in turn.

    Args:
        driving: Makes the trials.
        proposals: All changes, the likeliest first.
        found: What the search found; what passes is added.
        limits: What the search may use.

    Raises:
        SandboxError: The wall failed.
    """
    now_s = time.monotonic() - driving.began_s
    seconds = min(limits.max_seconds - now_s, max(LEAST_LINGER_S, LINGER * (now_s - found.generation_s)))
    waiting = [one for one in proposals if (one.path, one.edits) not in driving.tried]
    rivals = RivalQueue(partial(find_tree_location, driving.language))
    rivals.know(waiting)
    for repair in found.plausible:
        rivals.note(repair, found.texts)
    near = [*iter(rivals.pop, None)][: driving.most_rivals]
    others = [one for one in waiting if one not in near][: driving.most_rivals - len(near)]
    if seconds > driving.round_s and (near or others):
        await driving.try_batch([*near, *others], found, seconds)


async def try_block_stops(driving: DriverTrials, found: SearchResult, limits: SearchLimits) -> None:
    """See what of what repairs guard no test runs.

    Args:
        driving: Makes the trials.
        found: What the search found; it is told.
        limits: What the search may use.

    Raises:
        SandboxError: The wall failed.
    """
    found.plausible.sort(key=lambda proposal: -round(proposal.score, 6))
    find, stops = (
        partial(find_tree_location, driving.language),
        partial(find_tree_block_stops, driving.language),
    )
    guarding = GuardedBlocks(found.plausible, found.texts, find, stops)
    owners = [repair for repair, stopped in guarding.stopped for _ in stopped]
    all_stopped = [one for _, stopped in guarding.stopped for one in stopped]
    seconds = min(LOOK_S, limits.max_seconds - (time.monotonic() - driving.began_s))
    if not all_stopped or seconds < driving.round_s:
        return
    ended = await driving.passing(all_stopped, seconds)
    idle = Counter(id(owners[number]) for number, passes in ended.items() if passes)
    seen = Counter(id(owners[number]) for number in ended)
    for repair, stopped in guarding.stopped:
        if seen[id(repair)] == len(stopped):
            guarding.note(repair, idle[id(repair)])
    found.idle_block_counts = guarding.beyond()
