"""The search in JavaScript, TypeScript and Go: locates the fault, orders likely changes, and tries them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice

from suture.core.records import Language
from suture.judge.trials.trial_records import Proposal
from suture.mutation import apply_edits
from suture.search import tuning
from suture.search.localisation.exception_clues import find_clues
from suture.search.localisation.fault_ranking import rank_suspects, score_lines, score_named_lines
from suture.search.ordering.candidate_order import LineScores, order_single_changes
from suture.search.ordering.compound_changes import CompoundQueue
from suture.search.search_records import ChangeKey, FailingProject, SearchLimits, SearchResult, change_key
from suture.search.tree_sitter.command_trials import try_by_command
from suture.search.tree_sitter.compound_mutations import (
    CompoundMutations,
    generate_tree_changes,
    trace_no_lines,
)
from suture.search.tree_sitter.driver_trials import DriverTrials, EarlyBaseline, start_early_baseline
from suture.search.tree_sitter.tampering_signs import collect_tree_literals, find_tree_warnings
from suture.search.tree_sitter.tree_ranking import count_idle_blocks_with_driver, try_rivals


async def search_with_tree_sitter(
    project: FailingProject, limits: SearchLimits, early: EarlyBaseline | None = None
) -> SearchResult:
    """Search for changes with which all tests pass.

    Args:
        project: The project; its language has a grammar.
        limits: The limits of the search.
        early: A baseline run that was started before.

    Raises:
        SandboxError: The sandbox failed.
    """
    began_s, texts, language = time.monotonic(), project.texts, project.language
    result = SearchResult(texts=texts)
    early = early or start_early_baseline(project, limits)
    trials = early.trials if early is not None else None
    scores: LineScores = {}
    if early is not None:
        result.spectrum = await early.spectrum()
        result.suspect_lines = rank_suspects(result.spectrum, texts)
        if result.suspect_lines:
            scores = score_lines(result.suspect_lines, result.spectrum, texts)
    result.localisation_s = time.monotonic() - began_s
    if not scores:
        result.suspect_lines, scores = score_named_lines(texts, project.outcomes)
    proposals = await order_single_changes(
        scores,
        texts,
        import_lines={},  # only trials of Python distinguish changes that need a reimport
        seed=limits.seed,
        limit=min(limits.max_candidates, tuning.MAX_SINGLES),
        seconds=min(limits.max_seconds * tuning.GENERATION_SHARE, tuning.MAX_GENERATION_S),
        factors=limits.operator_factors,
        clues=find_clues(result.spectrum),
        generate=partial(generate_tree_changes, language),
    )
    result.generation_s = time.monotonic() - began_s
    has_targets = bool(result.spectrum.target_tests)
    if trials is not None and has_targets:
        literals = collect_tree_literals(project.test_texts().items(), language)
        is_suspicious = partial(_is_suspicious, result, language, literals)
        trials.began_s = began_s
        await _try_with_driver(trials, proposals, scores, result, limits, is_suspicious)
        if trials.is_lost:  # the driver cannot run any test here
            # `try_by_command` reckons from it when the search began, so it must include the lost trials.
            result.generation_s = time.monotonic() - began_s
    if trials is None or trials.is_lost or not has_targets:
        await try_by_command(project, proposals, result, limits)
    if result.ending == "all_tried" and proposals and not result.tried_count:
        result.ending = "nothing_could_be_tried"
    result.sort_plausible()
    result.sort_partial()
    result.seconds = time.monotonic() - began_s
    return result


async def _try_with_driver(
    trials: DriverTrials,
    proposals: Sequence[Proposal],
    scores: LineScores,
    result: SearchResult,
    limits: SearchLimits,
    is_suspicious: Callable[[Proposal], bool],
) -> None:
    """Try the likeliest changes, then the others with extensions of partial repairs, then any two changes."""

    def remaining_s() -> float:
        return result.end_s(limits) - (time.monotonic() - trials.began_s)

    mutations = CompoundMutations(result.texts, scores, trials.language, limits.seed, remaining_s, proposals)
    compounds, recorded_count = CompoundQueue(), 0
    waiting = deque(proposals)
    batch = _take(waiting, tuning.LIKELIEST_SINGLES)
    while batch:
        # `try_all` sets an ending again: "all_tried" if the search may continue, another one if it is over, as
        # after the first repair that is not suspicious.
        result.reopen()
        await trials.try_all(_untried(batch, trials), result, limits, is_suspicious)
        if result.ending != "all_tried":
            break
        for proposal, trial in result.partial[recorded_count:]:
            # Without `before`, only more passing tests count as progress of a single change.
            compounds.record(proposal, trial, before={}, tried_count=result.tried_count)
        recorded_count = len(result.partial)
        if result.plausible:  # all repairs so far are suspicious, and longer changes would not be better
            batch = _take(waiting, tuning.ROUND_SINGLES)
            continue
        if compounds.is_due(result.tried_count):
            await compounds.extend(
                result.spectrum,
                result.texts,
                trace_no_lines,
                seed=limits.seed,
                limit=limits.max_candidates - result.tried_count,
                extend_start=mutations.extend_start,
            )
        extensions = islice(iter(compounds.pop, None), tuning.ROUND_COMPOUNDS)
        batch = [*_take(waiting, tuning.ROUND_SINGLES), *extensions]
        batch = batch or await mutations.likeliest_pairs(tuning.ROUND_SINGLES, find_clues(result.spectrum))
    # Once a repair is found, its rivals are tried too, and then blocks that no test runs count against repairs.
    if result.plausible and not trials.is_lost:
        await try_rivals(trials, proposals, result, limits)
    if result.plausible and not trials.is_lost:
        await count_idle_blocks_with_driver(trials, result, limits)


def _take(waiting: deque[Proposal], count: int) -> list[Proposal]:
    return [waiting.popleft() for _ in range(min(count, len(waiting)))]


def _untried(proposals: Sequence[Proposal], trials: DriverTrials) -> list[Proposal]:
    """Return each untried change once: two changes may be combined in either order."""
    unique: dict[ChangeKey, Proposal] = {}
    for proposal in proposals:
        unique.setdefault(change_key(proposal), proposal)
    return [proposal for key, proposal in unique.items() if key not in trials.tried]


def _is_suspicious(
    result: SearchResult, language: Language, literals: frozenset[str], proposal: Proposal
) -> bool:
    """Return whether a change has tampering warnings."""
    before = result.texts[proposal.path]
    after = apply_edits(before, proposal.edits)
    return bool(find_tree_warnings(before, after, proposal.path, language, literals))
