"""Changes that go on from others: from those that mended a part, or two of the likeliest together."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import combinations, islice, takewhile

from suture.records import Language
from suture.repair.editing.edits import edits_between, mutated, overlap
from suture.repair.other_languages.tree_mutants import tree_mutants
from suture.repair.search_result import Findings
from suture.repair.trials.records import Proposal

MOST_BASES = 6
MOST_OF_BASE = 600
PAIRED = 60
"""Of the likeliest single changes, those that are tried two at a time where none mended a part."""


def going_on(
    before: Sequence[Proposal], found: Findings, language: Language, seconds: float
) -> list[Proposal]:
    """Two changes of one file, the likeliest first; nothing where something passed.

    Args:
        before: The changes that were tried, in their order.
        found: What came of them.
        language: What the files are written in.
        seconds: After which what was made must do: those of the best bases come first.
    """
    until_s = time.monotonic() + seconds
    if found.plausible:
        return []
    best = sorted(found.partial, key=lambda pair: (-pair[1].passing, -pair[0].score))[:MOST_BASES]
    tried = {(one.path, one.edits) for one in before}
    share_s = seconds / max(1, len(best))
    made = [
        further
        for base, _ in best
        for further in _from(base, found, language, min(until_s, time.monotonic() + share_s))
        if further.edits and (further.path, further.edits) not in tried  # one may take the other back
    ]
    if not best:
        made = list(_pairs(before[:PAIRED]))
    return sorted(made, key=lambda proposal: -round(proposal.score, 6))


def _from(base: Proposal, found: Findings, language: Language, until_s: float) -> Iterator[Proposal]:
    """What goes on from a change that mended a part."""
    before = found.texts[base.path]
    half = mutated(before, base.edits)
    lines = {fault.line: fault.score for fault in found.faults if fault.path == base.path}
    mutants = tree_mutants(half, base.path, language, lines or None)
    # Those of the most suspicious lines are made first: of a long file there may be time for no others.
    in_time = takewhile(lambda mutant: time.monotonic() < until_s, mutants)
    likeliest = sorted(in_time, key=lambda m: -m.prior * lines.get(m.line, 1.0) ** 2)
    for mutant in islice(likeliest, MOST_OF_BASE):
        yield Proposal(
            path=base.path,
            edits=edits_between(before, mutated(half, mutant.edits)),
            label=f"{base.label}; {mutant.label}",
            score=base.score * mutant.prior * lines.get(mutant.line, 1.0) ** 2,
            operators=(*base.operators, mutant.operator),
            swap=False,
        )


def _pairs(singles: Sequence[Proposal]) -> Iterator[Proposal]:
    for one, other in combinations(singles, 2):
        if one.path == other.path and not overlap(one.edits, other.edits):
            yield Proposal(
                path=one.path,
                edits=tuple(sorted((*one.edits, *other.edits), key=lambda edit: edit.start)),
                label=f"{one.label}; {other.label}",
                score=one.score * other.score,
                operators=(*one.operators, *other.operators),
                swap=False,
            )
