"""The search in other languages: where a fault may lie, which changes are likely, and their trials."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice

from suture.core.records import Language
from suture.judge.trials.trial_records import Proposal
from suture.mutation.edits import apply_edits
from suture.search.failing_project import FailingProject
from suture.search.search_limits import SearchLimits
from suture.search.ordering.compound_queue import CompoundQueue
from suture.search.localisation.exception_clues import find_clues
from suture.search.localisation.fault_ranking import score_lines, rank_suspects
from suture.search.ordering.candidate_order import MAKING_SHARE, MOST_SINGLES, order_single_changes
from suture.search.tree_sitter.command_trials import score_named_lines, try_by_command
from suture.search.tree_sitter.rival_trials import try_block_stops, try_rivals
from suture.search.tree_sitter.driver_trials import ALL_TRIED, DriverTrials
from suture.search.tree_sitter.tampering_signs import collect_tree_literals, find_tree_warnings
from suture.search.tree_sitter.compound_mutations import CompoundMutations, generate_tree_changes, not_looked_at
from suture.search.tree_sitter.early_baseline import EarlyBaseline, start_early_baseline
from suture.search.ranking.rivals import Key
from suture.search.search_result import SearchResult

LIKELIEST = 200
"""Single changes that are tried before any that go on from another."""
SINGLES, LONGER = 400, 200
"""Of each round after that, single changes, and such as go on from one that mended a part."""


async def search_with_tree_sitter(
    project: FailingProject, limits: SearchLimits, looked: EarlyBaseline | None = None
) -> SearchResult:
    """Search for changes with which all tests pass.

    Args:
        project: It; its language has a grammar.
        limits: What the search may use.
        looked: A look at the unchanged code that was begun before.

    Raises:
        SandboxError: The wall failed.
    """
    began_s, texts, language = time.monotonic(), project.texts, project.language
    found = SearchResult(texts=texts)
    looked = looked or start_early_baseline(project, limits)
    driving = looked.driving if looked is not None else None
    scores: Mapping[str, Mapping[int, float]] = {}
    if looked is not None:
        found.spectrum = await looked.spectrum()
        found.suspect_lines = rank_suspects(found.spectrum, texts)
        scores = score_lines(found.suspect_lines, found.spectrum, texts) if found.suspect_lines else {}
    found.localisation_s = time.monotonic() - began_s
    if not scores:
        found.suspect_lines, scores = score_named_lines(texts, project.outcomes)
    proposals = await order_single_changes(
        scores,
        texts,
        {},
        seed=limits.seed,
        most=min(limits.max_candidates, MOST_SINGLES),
        seconds=limits.max_seconds * MAKING_SHARE,
        factors=limits.operator_factors,
        clues=find_clues(found.spectrum),
        make=partial(generate_tree_changes, language),
    )
    found.generation_s = time.monotonic() - began_s
    if driving is not None and found.spectrum.guiding:
        literals = collect_tree_literals(project.test_texts().items(), language)
        suspicious = partial(_is_suspicious, found, language, literals)
        driving.began_s = began_s
        await _try_with(driving, proposals, scores, found, limits, suspicious)
        found.generation_s = time.monotonic() - began_s if driving.is_lost else found.generation_s
    if driving is None or driving.is_lost or not found.spectrum.guiding:
        await try_by_command(project, proposals, found, limits)
    if found.ending == ALL_TRIED and proposals and not found.tried_count:
        found.ending = "no change could be tried"
    found.plausible.sort(key=lambda proposal: -round(proposal.score, 6))
    found.partial.sort(key=lambda pair: (-pair[1].passing, pair[1].failing, -pair[0].score))
    found.seconds = time.monotonic() - began_s
    return found


async def _try_with(
    driving: DriverTrials,
    proposals: Sequence[Proposal],
    scores: Mapping[str, Mapping[int, float]],
    found: SearchResult,
    limits: SearchLimits,
    is_suspicious: Callable[[Proposal], bool],
) -> None:
    """Try the likeliest, then the others beside what goes on from such as mended a part, then any two."""

    def left_s() -> float:
        return found.deadline_s(limits) - (time.monotonic() - driving.began_s)

    going = CompoundMutations(found.texts, scores, driving.language, limits.seed, left_s)
    going.know(proposals)
    chains, noted = CompoundQueue(), 0
    waiting = deque(proposals)
    batch = _next(waiting, LIKELIEST)
    while batch:
        found.ending = ""
        await driving.try_all(_untried(batch, driving), found, limits, is_suspicious)
        if found.ending != ALL_TRIED:
            break
        for proposal, trial in found.partial[noted:]:
            chains.note(proposal, trial, {}, found.tried_count)
        noted = len(found.partial)
        if found.plausible:  # and all that passes is suspicious: what is longer is no better
            batch = _next(waiting, SINGLES)
            continue
        if chains.is_due(found.tried_count):
            await chains.extend(
                found.spectrum,
                found.texts,
                not_looked_at,
                seed=limits.seed,
                most=limits.max_candidates - found.tried_count,
                go_on=going.second_changes,
            )
        batch = [*_next(waiting, SINGLES), *islice(iter(chains.pop, None), LONGER)]
        batch = batch or await going.likely(SINGLES, find_clues(found.spectrum))
    if found.plausible and not driving.is_lost:
        await try_rivals(driving, proposals, found, limits)
    if found.plausible and not driving.is_lost:
        await try_block_stops(driving, found, limits)


def _next(waiting: deque[Proposal], number: int) -> list[Proposal]:
    return [waiting.popleft() for _ in range(min(number, len(waiting)))]


def _untried(proposals: Sequence[Proposal], driving: DriverTrials) -> list[Proposal]:
    """Each once: two changes may be made in either order."""
    once: dict[Key, Proposal] = {}
    for one in proposals:
        once.setdefault((one.path, one.edits), one)
    return [one for key, one in once.items() if key not in driving.tried]


def _is_suspicious(found: SearchResult, language: Language, literals: frozenset[str], proposal: Proposal) -> bool:
    """Whether there are signs that a change games the tests."""
    text = found.texts[proposal.path]
    return bool(find_tree_warnings(text, apply_edits(text, proposal.edits), proposal.path, language, literals))
