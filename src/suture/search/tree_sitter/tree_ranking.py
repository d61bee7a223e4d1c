"""Ranks plausible repairs in JavaScript, TypeScript and Go, and tries their rivals and guarded blocks."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

from suture.judge.trials.trial_records import Proposal
from suture.mutation.tree_sitter.tree_locations import find_tree_block_stops, find_tree_location
from suture.project.languages import LANGUAGES
from suture.search import tuning
from suture.search.ranking.repair_scoring import PlausibleRepairs, RankingMethods, rank_repairs
from suture.search.ranking.rivals import GuardedBlocks, RivalQueue
from suture.search.search_records import FailingProject, SearchLimits, SearchResult, change_key
from suture.search.tree_sitter.driver_trials import DriverTrials
from suture.search.tree_sitter.tampering_signs import collect_tree_literals, find_tree_warnings
from suture.search.tree_sitter.tree_calls import answer_calls, render_answer


async def rank_tree_repairs(
    result: SearchResult,
    project: FailingProject,
    tests: Mapping[str, str],
    *,
    seed: int = 0,
    seconds: float = tuning.COMPILED_COMPARE_S,
) -> PlausibleRepairs:
    """Return plausible repairs, one for each behaviour, and calls that distinguish them.

    Args:
        result: The result of the search.
        project: The project.
        tests: Path -> text of the tests.
        seed: Seed of the generated inputs.
        seconds: Wall-clock seconds for calling the repairs with these inputs, at most `COMPILED_COMPARE_S` or
            `COMPARE_S`.

    Raises:
        SandboxError: The sandbox failed.
    """
    proposals = result.plausible[: tuning.MAX_COMPARED_REPAIRS]
    if not proposals:
        return PlausibleRepairs()
    language = project.language
    driver = LANGUAGES[language].calls
    max_s = tuning.COMPILED_COMPARE_S if driver is not None and driver.compiles else tuning.COMPARE_S
    answers = await answer_calls(proposals, result, project, tests, seed=seed, seconds=min(seconds, max_s))
    literals = collect_tree_literals(tests.items(), language)
    methods = RankingMethods(
        find_warnings=lambda path, before, after: find_tree_warnings(before, after, path, language, literals),
        # Only expressions in Python are evaluated to measure a distance.
        distance_factor=lambda path, before, edits, after: 1.0,
        render_answer=partial(render_answer, language),
    )
    return await rank_repairs(result, proposals, answers, methods)


async def try_rivals(
    trials: DriverTrials, proposals: Sequence[Proposal], result: SearchResult, limits: SearchLimits
) -> None:
    """Try the other changes at the locations of plausible repairs, and the next ones in order.

    Args:
        proposals: All single changes, the likeliest first.
        result: The result of the search, to which repairs are added.

    Raises:
        SandboxError: The sandbox failed.
    """
    now_s = time.monotonic() - trials.began_s
    linger_s = max(tuning.MIN_LINGER_S, tuning.LINGER_SHARE * (now_s - result.generation_s))
    seconds = min(limits.max_seconds - now_s, linger_s)
    untried = [proposal for proposal in proposals if change_key(proposal) not in trials.tried]
    queue = RivalQueue(partial(find_tree_location, trials.language))
    queue.set_changes(untried)
    for repair in result.plausible:
        queue.add_repair(repair, result.texts)
    rivals = list(iter(queue.pop, None))[: trials.max_rivals]
    others = [proposal for proposal in untried if proposal not in rivals]
    others = others[: trials.max_rivals - len(rivals)]
    if seconds > trials.baseline_s and (rivals or others):
        await trials.try_batch([*rivals, *others], result, seconds)


async def count_idle_blocks_with_driver(
    trials: DriverTrials, result: SearchResult, limits: SearchLimits
) -> None:
    """Count, for each plausible repair, the blocks that it guards and that no test runs.

    A *block stop* makes such a block raise an error. If all tests still pass, none of them runs the block.

    Raises:
        SandboxError: The sandbox failed.
    """
    result.sort_plausible()
    guarded = GuardedBlocks(
        result.plausible,
        result.texts,
        partial(find_tree_location, trials.language),
        partial(find_tree_block_stops, trials.language),
    )
    repairs = [repair for repair, stopped in guarded.stopped for _ in stopped]
    all_stopped = [variant for _, stopped in guarded.stopped for variant in stopped]
    seconds = min(tuning.GUARD_CHECK_S, limits.max_seconds - (time.monotonic() - trials.began_s))
    if not all_stopped or seconds < trials.baseline_s:
        return
    passing = await trials.find_passing(all_stopped, seconds)
    idle_counts = Counter(id(repairs[number]) for number, passes in passing.items() if passes)
    checked_counts = Counter(id(repairs[number]) for number in passing)
    for repair, stopped in guarded.stopped:
        if checked_counts[id(repair)] == len(stopped):
            guarded.record(repair, idle_counts[id(repair)])
    result.idle_block_counts = guarded.excess_counts()
