"""Compound mutations: extensions of partial repairs, then pairs of likely changes.

The second change of a pair is made in the text with the first one. So it may change code that the first one wrote,
and use names that the first one declares.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import count

from suture.judge.trials.trial_records import Proposal, Spectrum
from suture.mutation import Edit, apply_edits
from suture.mutation.edits import compose_edits, edits_overlap, encode_source
from suture.search.localisation.exception_clues import Clue, find_clues
from suture.search.ordering.candidate_order import LineScores, MutantGenerator, order_single_changes
from suture.search.tuning import (
    GENERATION_SHARE,
    MAX_PARTNERS,
    MAX_PARTNERS_EXAMINED,
    MAX_SECOND_CHANGES_AT_EDIT,
)

PairOfSingles = tuple[int, int]
"""The indices of two single changes."""


@dataclass
class CompoundMutations:
    """Generates the compound changes of one search.

    Attributes:
        generate: Generates the mutants of a file.
        scores: Path -> line -> suspiciousness.
        remaining_s: Returns the seconds that the search has left, a share of which is for generating changes.
        singles: The single changes of which any two may be combined, the likeliest first.
    """

    texts: Mapping[str, str]
    scores: LineScores
    generate: MutantGenerator
    seed: int
    remaining_s: Callable[[], float]
    singles: Sequence[Proposal] = ()
    _extended_count: int = 0
    # A heap of `(negative score, number, pair)`. The number keeps equal scores in order.
    _waiting: list[tuple[float, int, Proposal | PairOfSingles]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    async def extend_start(self, start: Proposal, remaining: Spectrum, scores: LineScores) -> list[Proposal]:
        """Return compound changes: a start, each time with one likely change for the tests that still fail.

        Args:
            remaining: The spectrum of the project with the start (see `remaining_spectrum`).
            scores: Path -> line -> suspiciousness, by that spectrum. If no line is suspected any more, the lines
                suspected before the start are used.
        """
        lines = (scores or self.scores).get(start.path, {})
        import_lines = remaining.import_lines.get(start.path, frozenset())
        compounds = await self._changes_after(start, lines, find_clues(remaining), MAX_PARTNERS, import_lines)
        best = max((compound.score for compound in compounds), default=1.0) or 1.0
        return [replace(compound, score=compound.score / best) for compound in compounds]

    async def likeliest_pairs(self, limit: int, clues: Sequence[Clue]) -> list[Proposal]:
        """Return the likeliest pairs of changes that have not been returned before.

        Pairs of changes at different places are made of the single changes. Second changes at the place of a
        first one are generated only when one of them could be the next likeliest pair.
        """
        pairs: list[Proposal] = []
        best = self.singles[0].score if self.singles else 0.0
        while len(pairs) < limit and self.remaining_s() > 0:
            index = self._extended_count
            base = self.singles[index] if index < len(self.singles) else None
            if self._waiting and (base is None or -self._waiting[0][0] >= base.score * best):
                pairs += self._pop()
            elif base is None:
                break
            else:
                self._push_pair(index, index + 1)
                self._extended_count += 1
                lines = self._lines_of_edits(base)
                for pair in await self._changes_after(base, lines, clues, MAX_SECOND_CHANGES_AT_EDIT):
                    score = base.score * pair.score
                    heappush(self._waiting, (-score, next(self._numbers), replace(pair, score=score)))
        return pairs

    def _push_pair(self, first: int, second: int) -> None:
        """Queue the pair of the single changes with these indices, if there is such a second change."""
        if second < len(self.singles):
            score = self.singles[first].score * self.singles[second].score
            heappush(self._waiting, (-score, next(self._numbers), (first, second)))

    def _pop(self) -> Iterator[Proposal]:
        """Yield the likeliest waiting pair, and queue its first change with the next likely second one.

        Changes that overlap or are in different files are no pair.
        """
        score, _, waiting = heappop(self._waiting)
        if isinstance(waiting, Proposal):
            yield waiting
            return
        first, second = waiting
        self._push_pair(first, second + 1)
        base, partner = self.singles[first], self.singles[second]
        if base.path == partner.path and not edits_overlap(base.edits, partner.edits):
            yield Proposal(
                path=base.path,
                edits=tuple(sorted((*base.edits, *partner.edits), key=lambda edit: (edit.start, edit.end))),
                label=f"{base.label}; {partner.label}",
                score=-score,
                operators=(*base.operators, *partner.operators),
                is_swappable=base.is_swappable and partner.is_swappable,
            )

    def _lines_of_edits(self, base: Proposal) -> dict[int, float]:
        """Return the suspected lines that a change edits, with their scores."""
        raw = encode_source(self.texts[base.path])
        # Pairs of the first line of an edit and the line after its last one.
        spans = [(raw[: e.start].count(b"\n") + 1, raw[: e.end].count(b"\n") + 2) for e in base.edits]
        scores = self.scores.get(base.path, {})
        lines = (line for first_line, end_line in spans for line in range(first_line, end_line))
        return {line: scores[line] for line in lines if line in scores}

    async def _changes_after(
        self,
        start: Proposal,
        scores: Mapping[int, float],
        clues: Sequence[Clue],
        limit: int,
        import_lines: Collection[int] = (),
    ) -> list[Proposal]:
        """Return compound changes of a start and likely second changes, with the scores of the second changes."""
        text = self.texts[start.path]
        lines = shift_scores(scores, start.edits, text)
        if not lines:
            return []
        second_changes = await order_single_changes(
            {start.path: lines},
            {start.path: apply_edits(text, start.edits)},
            {start.path: frozenset(shift_scores(dict.fromkeys(import_lines, 1.0), start.edits, text))},
            generate=self.generate,
            seed=self.seed,
            limit=limit,
            seconds=GENERATION_SHARE * self.remaining_s(),
            clues=clues,
            max_examined=MAX_PARTNERS_EXAMINED,
        )
        compounds = (
            replace(
                second,
                edits=compose_edits(start.edits, second.edits, text),
                label=f"{start.label}; {second.label}",
                operators=(*start.operators, *second.operators),
                is_swappable=start.is_swappable and second.is_swappable,
            )
            for second in second_changes
        )
        return [compound for compound in compounds if compound.edits]  # a second change may undo the first


def shift_scores(scores: Mapping[int, float], edits: Sequence[Edit], text: str) -> dict[int, float]:
    """Return the scores after a change; new lines get the highest score of the lines they replace."""
    raw, shifted = encode_source(text), dict(scores)
    for edit in sorted(edits, key=lambda e: e.start, reverse=True):
        line = raw[: edit.start].count(b"\n") + 1
        removed, added = raw[edit.start : edit.end].count(b"\n"), edit.text.count("\n")
        highest = max(shifted.get(replaced, 0.0) for replaced in range(line, line + removed + 1))
        before = {number: score for number, score in shifted.items() if number < line}
        changed = {number: highest for number in range(line, line + added + 1) if highest}
        shift, last_line = added - removed, line + removed
        after = {number + shift: score for number, score in shifted.items() if number > last_line}
        shifted = {**before, **changed, **after}
    return shifted
