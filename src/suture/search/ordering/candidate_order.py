"""Candidates to be tried: single changes of suspicious lines, the likeliest first."""

from __future__ import annotations

import asyncio
import hashlib
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from heapq import merge
from operator import itemgetter
from types import MappingProxyType

from suture.core.ledger.kinds import SuspectLine
from suture.judge.trials.trial_records import Proposal, Spectrum
from suture.mutation.edits import Edit, Mutant
from suture.mutation.python.python_mutants import OperatorFault, generate_mutants
from suture.search.localisation.exception_clues import Clue, find_clues, clue_factor
from suture.search.localisation.fault_ranking import score_lines, rank_suspects
from suture.search.ordering.reverts import Hunk, find_changed_lines, favour_changed_lines, generate_reverts

NO_FACTORS: Mapping[str, float] = MappingProxyType({})
Maker = Callable[[str, str, Mapping[int, float]], Iterator[Mutant]]
"""Path, text and suspicious lines -> changes."""
SHARPNESS = 1.5
"""How much more the suspicion of a line counts than the kind of change."""
BREATH = 50
"""Changes that are made before others may run."""
LEAST_HELD = 1000
"""Beyond twice what is wanted, so that sorting out the likeliest is seldom due."""
DEAR_S = 0.5
"""CPU seconds of collecting the tests, from which on it is dear to do so for one candidate."""
CHEAP_BETWEEN = 8
"""Changes that are put in place, between two that are imported anew."""
EARLY_OF, EARLY = 10_000, 100
"""Changes of the most suspicious lines, of which the likeliest are tried while all others are made."""
MOST_SINGLES = 4000
"""Single changes that a search holds: behind so many, two together are as likely."""
MAKING_SHARE = 0.2
"""Of a search's seconds, the most that making single changes may take."""


@dataclass(frozen=True, kw_only=True)
class OrderedCandidates:
    """Suspicious lines and single changes of them, the likeliest first.

    Attributes:
        faults: The lines.
        singles: The changes.
        broken: Operators of ours that broke on a file: path, and what happened.
    """

    faults: tuple[SuspectLine, ...]
    singles: tuple[Proposal, ...]
    broken: tuple[tuple[str, OperatorFault], ...]


async def order_candidates(
    spectrum: Spectrum,
    texts: Mapping[str, str],
    hunks: Sequence[Hunk],
    *,
    seed: int,
    most: int,
    seconds: float,
    factors: Mapping[str, float] = NO_FACTORS,
    early: Callable[[OrderedCandidates], None] | None = None,
) -> OrderedCandidates:
    """Make single changes of what the failing tests point to.

    Args:
        spectrum: What tests did on the project as it is.
        texts: Path -> text of the files that may be changed.
        hunks: What changed when the tests began to fail: it is taken back first, and suspected most.
        seed: Decides between equals.
        most: How many changes.
        seconds: Of the search.
        factors: Operator -> how much likelier its changes are than usual.
        early: Told of the likeliest of the most suspicious lines, where it takes long to make all.
    """
    broken: list[tuple[str, OperatorFault]] = []
    faults = rank_suspects(spectrum, texts)
    scores = favour_changed_lines(score_lines(faults, spectrum, texts), find_changed_lines(hunks, texts))

    def as_tried(singles: Sequence[Proposal]) -> OrderedCandidates:
        singles = [*generate_reverts(hunks, texts), *singles]
        if spectrum.errors:  # nothing that the failing tests need is there to be given new code
            singles = [replace(proposal, swap=False) for proposal in singles]
        elif spectrum.collect_s >= DEAR_S:
            singles = interleave_expensive(singles)
        return OrderedCandidates(faults=tuple(faults), singles=tuple(singles), broken=tuple(broken))

    singles = await order_single_changes(
        scores,
        texts,
        spectrum.imported,
        seed=seed,
        most=most,
        seconds=seconds * MAKING_SHARE,
        clues=find_clues(spectrum),
        factors=factors,
        make=partial(generate_python_mutants, broken),
        early=None if early is None else lambda singles: early(as_tried(singles)),
    )
    return as_tried(singles)


def interleave_expensive(singles: Sequence[Proposal]) -> list[Proposal]:
    """Changes in their order, but behind each that has to be imported anew a few that have not.

    Where the import takes as long as dozens of trials do, a few likely changes of what it runs would keep all
    others waiting.
    """
    found: list[Proposal] = []
    waiting: deque[Proposal] = deque()
    since = CHEAP_BETWEEN
    for proposal in singles:
        if not proposal.swap:
            waiting.append(proposal)
        else:
            found.append(proposal)
            since += 1
        if waiting and since >= CHEAP_BETWEEN:
            found.append(waiting.popleft())
            since = 0
    return [*found, *waiting]


async def order_single_changes(
    scores: Mapping[str, Mapping[int, float]],
    texts: Mapping[str, str],
    imported: Mapping[str, frozenset[int]],
    *,
    seed: int = 0,
    most: int = 4000,
    seconds: float = math.inf,
    clues: Sequence[Clue] = (),
    factors: Mapping[str, float] = NO_FACTORS,
    make: Maker = lambda path, text, lines: generate_mutants(text, lines),
    early: Callable[[Sequence[Proposal]], None] | None = None,
    looked_at: float = math.inf,
) -> list[Proposal]:
    """Every single change of a suspicious line, the likeliest first; others may run meanwhile.

    Args:
        scores: Path -> line -> suspiciousness.
        texts: Path -> text.
        imported: Path -> lines that an import runs: what changes them has to be imported anew.
        seed: Decides between equals.
        most: How many; about twice as many are held at a time.
        seconds: Wall-clock seconds, after which what was found must do. The worst lines are looked at first.
        clues: What the failing tests say.
        factors: Operator -> how much likelier its changes are than usual.
        make: Makes the changes of a file's lines; those of Python where it is left out, which raise what an
            operator of ours raises.
        early: Told of the likeliest of the first `EARLY_OF`, where there are more.
        looked_at: How many are made at most, those of the worst lines first.
    """
    end_s = time.monotonic() + seconds
    found: list[tuple[float, str, Proposal]] = []
    last = math.inf
    # The most suspicious lines of all files first: the time for them may be short.
    weigh = partial(_singles_of, clues=clues, factors=factors, make=make)
    by_suspicion = sorted(scores.items(), key=lambda item: -max(item[1].values()))
    of_files = [weigh(path, texts[path], own, imported.get(path, frozenset())) for path, own in by_suspicion]
    for count, (_, proposal) in enumerate(merge(*of_files, key=lambda pair: -pair[0]), 1):
        place = -round(proposal.score, 6)
        if place <= last:
            found.append((place, _draw(proposal, seed), proposal))
        if len(found) >= 2 * most + LEAST_HELD:
            found = _best(found, most)
            last = found[-1][0]
        if count % BREATH == 0:
            await asyncio.sleep(0)
            if time.monotonic() > end_s or count >= looked_at:
                break
        if count == EARLY_OF and early is not None:
            early([proposal for _, _, proposal in _best(found, EARLY)])
    return [proposal for _, _, proposal in _best(found, most)]


def _best(found: list[tuple[float, str, Proposal]], most: int) -> list[tuple[float, str, Proposal]]:
    """The likeliest of what was found, each change once."""
    once: dict[tuple[str, tuple[Edit, ...]], tuple[float, str, Proposal]] = {}
    for one in sorted(found, key=itemgetter(0, 1)):
        once.setdefault((one[2].path, one[2].edits), one)
    return list(once.values())[:most]


def _singles_of(
    path: str,
    text: str,
    lines: Mapping[int, float],
    ran: frozenset[int],
    *,
    clues: Sequence[Clue],
    factors: Mapping[str, float],
    make: Maker,
) -> Iterator[tuple[float, Proposal]]:
    """Changes of one file, each with the suspicion of its line."""
    worst = max(lines.values())
    raw = text.encode("utf-8", "surrogatepass")
    for mutant in make(path, text, lines):
        suspicion = lines.get(mutant.line, worst / 2)
        yield (
            suspicion,
            Proposal(
                path=path,
                edits=mutant.edits,
                label=mutant.label,
                score=mutant.prior
                * suspicion**SHARPNESS
                * clue_factor(mutant, path, raw, clues)
                * factors.get(mutant.operator, 1.0),
                operators=(mutant.operator,),
                swap=mutant.in_function_body and mutant.line not in ran,
            ),
        )


def generate_python_mutants(
    broken: list[tuple[str, OperatorFault]], path: str, text: str, lines: Mapping[int, float]
) -> Iterator[Mutant]:
    """Changes of a Python file.

    Args:
        broken: Takes in an operator that breaks on it, which then makes no more of that node.
        path: The file.
        text: Its text.
        lines: Suspicious lines.
    """
    return generate_mutants(text, lines, on_fault=lambda fault: broken.append((path, fault)))


def _draw(proposal: Proposal, seed: int) -> str:
    """A lot: the same for the same seed, in no order of the source."""
    text = f"{seed} {proposal.path} {proposal.edits}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
