"""The search in other languages: where a fault may lie, which changes are likely, and their trials."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice

from suture.core.records import Language
from suture.judge.trials.records import Proposal
from suture.mutation.python.editing.edits import mutated
from suture.search.failing_project import FailingProject
from suture.search.limits import SearchLimits
from suture.search.ordering.chains import Chains
from suture.search.ordering.clues import clues_of
from suture.search.ordering.faults import line_scores, rank_faults
from suture.search.ordering.orders import MAKING_SHARE, MOST_SINGLES, first_order
from suture.search.other_languages.by_command import named_scores, try_by_command
from suture.search.other_languages.comparing.comparing_places import look_at_blocks, try_rivals
from suture.search.other_languages.driving import ALL_TRIED, Driving
from suture.search.other_languages.gaming import tree_literals, tree_warnings
from suture.search.other_languages.going_on import GoingOn, changes_of, not_looked_at
from suture.search.other_languages.looking_ahead import LookAhead, look_elsewhere
from suture.search.rivals import Key
from suture.search.search_result import Findings

LIKELIEST = 200
"""Single changes that are tried before any that go on from another."""
SINGLES, LONGER = 400, 200
"""Of each round after that, single changes, and such as go on from one that mended a part."""


async def search_elsewhere(
    project: FailingProject, limits: SearchLimits, looked: LookAhead | None = None
) -> Findings:
    """Search for changes with which all tests pass.

    Args:
        project: It; its language has a grammar.
        limits: What the search may use.
        looked: A look at the unchanged code that was begun before.

    Raises:
        SandboxError: The wall failed.
    """
    began_s, texts, language = time.monotonic(), project.texts, project.language
    found = Findings(texts=texts)
    looked = looked or look_elsewhere(project, limits)
    driving = looked.driving if looked is not None else None
    scores: Mapping[str, Mapping[int, float]] = {}
    if looked is not None:
        found.spectrum = await looked.spectrum()
        found.faults = rank_faults(found.spectrum, texts)
        scores = line_scores(found.faults, found.spectrum, texts) if found.faults else {}
    found.located_s = time.monotonic() - began_s
    if not scores:
        found.faults, scores = named_scores(texts, project.outcomes)
    proposals = await first_order(
        scores,
        texts,
        {},
        seed=limits.seed,
        most=min(limits.candidates, MOST_SINGLES),
        seconds=limits.seconds * MAKING_SHARE,
        factors=limits.factors,
        clues=clues_of(found.spectrum),
        make=partial(changes_of, language),
    )
    found.made_s = time.monotonic() - began_s
    if driving is not None and found.spectrum.guiding:
        literals = tree_literals(project.test_texts().items(), language)
        suspicious = partial(_is_suspicious, found, language, literals)
        driving.began_s = began_s
        await _try_with(driving, proposals, scores, found, limits, suspicious)
        found.made_s = time.monotonic() - began_s if driving.is_lost else found.made_s
    if driving is None or driving.is_lost or not found.spectrum.guiding:
        await try_by_command(project, proposals, found, limits)
    if found.ended == ALL_TRIED and proposals and not found.tried:
        found.ended = "no change could be tried"
    found.plausible.sort(key=lambda proposal: -round(proposal.score, 6))
    found.partial.sort(key=lambda pair: (-pair[1].passing, pair[1].failing, -pair[0].score))
    found.seconds = time.monotonic() - began_s
    return found


async def _try_with(
    driving: Driving,
    proposals: Sequence[Proposal],
    scores: Mapping[str, Mapping[int, float]],
    found: Findings,
    limits: SearchLimits,
    is_suspicious: Callable[[Proposal], bool],
) -> None:
    """Try the likeliest, then the others beside what goes on from such as mended a part, then any two."""

    def left_s() -> float:
        return found.most_s(limits) - (time.monotonic() - driving.began_s)

    going = GoingOn(found.texts, scores, driving.language, limits.seed, left_s)
    going.know(proposals)
    chains, noted = Chains(), 0
    waiting = deque(proposals)
    batch = _next(waiting, LIKELIEST)
    while batch:
        found.ended = ""
        await driving.try_all(_untried(batch, driving), found, limits, is_suspicious)
        if found.ended != ALL_TRIED:
            break
        for proposal, trial in found.partial[noted:]:
            chains.note(proposal, trial, {}, found.tried)
        noted = len(found.partial)
        if found.plausible:  # and all that passes is suspicious: what is longer is no better
            batch = _next(waiting, SINGLES)
            continue
        if chains.is_due(found.tried):
            await chains.extend(
                found.spectrum,
                found.texts,
                not_looked_at,
                seed=limits.seed,
                most=limits.candidates - found.tried,
                go_on=going.second_changes,
            )
        batch = [*_next(waiting, SINGLES), *islice(iter(chains.pop, None), LONGER)]
        batch = batch or await going.likely(SINGLES, clues_of(found.spectrum))
    if found.plausible and not driving.is_lost:
        await try_rivals(driving, proposals, found, limits)
    if found.plausible and not driving.is_lost:
        await look_at_blocks(driving, found, limits)


def _next(waiting: deque[Proposal], number: int) -> list[Proposal]:
    return [waiting.popleft() for _ in range(min(number, len(waiting)))]


def _untried(proposals: Sequence[Proposal], driving: Driving) -> list[Proposal]:
    """Each once: two changes may be made in either order."""
    once: dict[Key, Proposal] = {}
    for one in proposals:
        once.setdefault((one.path, one.edits), one)
    return [one for key, one in once.items() if key not in driving.tried]


def _is_suspicious(found: Findings, language: Language, literals: frozenset[str], proposal: Proposal) -> bool:
    """Whether there are signs that a change games the tests."""
    text = found.texts[proposal.path]
    return bool(tree_warnings(text, mutated(text, proposal.edits), proposal.path, language, literals))
