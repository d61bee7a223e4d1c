"""The search in other languages: where a fault may lie, which changes are likely, and their trials."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial

from suture.checks.command.test_command import TestCommand
from suture.records import CheckOutcome, Language
from suture.repair.editing.edits import Mutant, mutated
from suture.repair.limits import SearchLimits
from suture.repair.ordering.clues import clues_of
from suture.repair.ordering.faults import line_scores, rank_faults
from suture.repair.ordering.orders import MAKING_SHARE, OnFault, first_order
from suture.repair.other_languages.by_command import named_scores, try_by_command
from suture.repair.other_languages.driving import ALL_TRIED, Driving
from suture.repair.other_languages.gaming import tree_literals, tree_warnings
from suture.repair.other_languages.going_on import going_on
from suture.repair.other_languages.looking_ahead import LookAhead, look_elsewhere
from suture.repair.other_languages.tree_mutants import tree_mutants
from suture.repair.search_result import Findings
from suture.repair.trials.records import Proposal

LIKELIEST = 200
"""Single changes that are tried before any that go on from another."""


async def search_elsewhere(
    command: TestCommand,
    argv: Sequence[str],
    files: Mapping[str, bytes],
    texts: Mapping[str, str],
    outcomes: Sequence[CheckOutcome],
    language: Language,
    limits: SearchLimits,
    looked: LookAhead | None = None,
) -> Findings:
    """Search for changes with which all tests pass.

    Args:
        command: The user's test command.
        argv: Its words.
        files: The project.
        texts: Path -> text of the files that may be changed.
        outcomes: What the tests said of the project as it is.
        language: What `texts` are written in; one with a grammar.
        limits: What the search may use.
        looked: A look at the unchanged code that was begun before.

    Raises:
        SandboxError: The wall failed.
    """
    began_s = time.monotonic()
    found = Findings(texts=texts)
    looked = looked or look_elsewhere(command, argv, files, texts, outcomes, language, limits)
    driving = looked.driving if looked is not None else None
    scores: Mapping[str, Mapping[int, float]] = {}
    if looked is not None:
        found.spectrum = await looked.spectrum()
        found.faults = rank_faults(found.spectrum, texts)
        scores = line_scores(found.faults, found.spectrum, texts) if found.faults else {}
    found.located_s = time.monotonic() - began_s
    if not scores:
        found.faults, scores = named_scores(texts, outcomes)
    proposals = await first_order(
        scores,
        texts,
        {},
        seed=limits.seed,
        most=limits.candidates,
        seconds=limits.seconds * MAKING_SHARE,
        factors=limits.factors,
        clues=clues_of(found.spectrum),
        make=partial(_changes, language),
    )
    found.made_s = time.monotonic() - began_s
    if driving is not None and found.spectrum.guiding:
        tests = {path: files[path].decode("utf-8", "replace") for path in command.test_files if path in files}
        suspicious = partial(_is_suspicious, found, language, tree_literals(tests.items(), language))
        driving.began_s = began_s
        await _try_with(driving, proposals, found, language, limits, began_s, suspicious)
        found.made_s = time.monotonic() - began_s if driving.is_lost else found.made_s
    if driving is None or driving.is_lost or not found.spectrum.guiding:
        await try_by_command(command, files, outcomes, proposals, found, limits)
    if found.ended == ALL_TRIED and proposals and not found.tried:
        found.ended = "no change could be tried"
    found.plausible.sort(key=lambda proposal: -round(proposal.score, 6))
    found.partial.sort(key=lambda pair: (-pair[1].passing, pair[1].failing, -pair[0].score))
    found.seconds = time.monotonic() - began_s
    return found


async def _try_with(
    driving: Driving,
    proposals: Sequence[Proposal],
    found: Findings,
    language: Language,
    limits: SearchLimits,
    began_s: float,
    is_suspicious: Callable[[Proposal], bool],
) -> None:
    """Try the likeliest, then the others among those that go on from what mended a part, then pairs."""

    def further(tried: Sequence[Proposal]) -> list[Proposal]:
        found.ended = ""
        left_s = MAKING_SHARE * (limits.seconds - (time.monotonic() - began_s))
        return going_on(tried, found, language, left_s)

    tried = [*proposals[:LIKELIEST]]
    await driving.try_all(tried, found, limits, is_suspicious)
    if found.ended == ALL_TRIED and (others := proposals[LIKELIEST:]):
        both = [*others, *(further(tried) if found.partial else ())]
        found.ended = ""
        both.sort(key=lambda proposal: -round(proposal.score, 6))
        await driving.try_all(both, found, limits, is_suspicious)
        tried += both
    if found.ended == ALL_TRIED:
        await driving.try_all(further(tried), found, limits, is_suspicious)


def _is_suspicious(found: Findings, language: Language, literals: frozenset[str], proposal: Proposal) -> bool:
    """Whether there are signs that a change games the tests."""
    text = found.texts[proposal.path]
    return bool(tree_warnings(text, mutated(text, proposal.edits), proposal.path, language, literals))


def _changes(
    language: Language, path: str, text: str, lines: Collection[int], on_fault: OnFault | None
) -> Iterator[Mutant]:
    return tree_mutants(text, path, language, lines)
