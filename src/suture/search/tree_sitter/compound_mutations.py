"""Compound mutations in other languages: extensions of partial repairs, then any two likely changes.

The second change is made of the text with the first one: it may lie in what that wrote, and it sees its
names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import heappop, heappush
from itertools import count

from suture.core.records import Language
from suture.judge.trials.trial_records import Proposal, Spectrum, TestLines
from suture.mutation import Edit, Mutant, apply_edits, generate_tree_mutants
from suture.mutation.edits import compose_edits, edits_overlap, encode_source
from suture.search.localisation.exception_clues import Clue, find_clues
from suture.search.ordering.candidate_order import LineScores, order_single_changes
from suture.search.ordering.compound_changes import best_score, combine_changes
from suture.search.tuning import (
    GENERATION_SHARE,
    MAX_PARTNERS,
    MAX_PARTNERS_EXAMINED,
    MAX_SECOND_CHANGES_AT_EDIT,
)


@dataclass
class CompoundMutations:
    """Generates the compound changes of one search.

    Attributes:
        texts: Path -> text of the files that may be changed.
        scores: Path -> line -> suspiciousness.
        language: The language of the files.
        seed: Decides between equal scores.
        left_s: Returns the seconds that the search has left; generating changes takes a share of them.
    """

    texts: Mapping[str, str]
    scores: LineScores
    language: Language
    seed: int
    left_s: Callable[[], float]
    _singles: Sequence[Proposal] = ()
    _extended_count: int = 0
    _waiting: list[tuple[float, int, Proposal | tuple[int, int]]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    async def extend_start(
        self, start: Proposal, remaining: Spectrum, scores: LineScores, texts: Mapping[str, str], seed: int
    ) -> list[Proposal]:
        """Extend a partial repair, as `pair_changes` does.

        If no line of the file is suspected after the first change, the lines suspected before are used.
        """
        lines = (scores or self.scores).get(start.path, {})
        compounds = await self._changes_after(start, lines, find_clues(remaining), MAX_PARTNERS)
        best = best_score(compounds)
        return [replace(compound, score=compound.score / best) for compound in compounds]

    def set_singles(self, singles: Sequence[Proposal]) -> None:
        """Set the single changes of which any two may be combined, the likeliest first."""
        self._singles = singles

    async def likeliest_pairs(self, limit: int, clues: Sequence[Clue]) -> list[Proposal]:
        """Return the likeliest pairs of changes that are left, up to a limit.

        Two changes at different places are known already. Second changes at the place of a first one are
        generated when even the likeliest of them may be next.

        Args:
            limit: How many pairs to return.
            clues: What the exceptions of the failing tests say.
        """
        found: list[Proposal] = []
        best = self._singles[0].score if self._singles else 0.0
        while len(found) < limit and self.left_s() > 0:
            base = next(iter(self._singles[self._extended_count : self._extended_count + 1]), None)
            if self._waiting and (base is None or -self._waiting[0][0] >= base.score * best):
                found += self._pop()
            elif base is None:
                break
            else:
                self._push_pair(self._extended_count, self._extended_count + 1)
                self._extended_count += 1
                lines = self._lines_of_edits(base)
                for one in await self._changes_after(base, lines, clues, MAX_SECOND_CHANGES_AT_EDIT):
                    score = base.score * one.score
                    heappush(self._waiting, (-score, next(self._numbers), replace(one, score=score)))
        return found

    def _push_pair(self, one: int, other: int) -> None:
        if other < len(self._singles):
            score = self._singles[one].score * self._singles[other].score
            heappush(self._waiting, (-score, next(self._numbers), (one, other)))

    def _pop(self) -> Iterator[Proposal]:
        """Yield the likeliest waiting pair, unless its changes overlap; and queue the pair after it."""
        score, _, waiting = heappop(self._waiting)
        if isinstance(waiting, Proposal):
            yield waiting
            return
        first, second = waiting
        self._push_pair(first, second + 1)
        one, other = self._singles[first], self._singles[second]
        if one.path == other.path and not edits_overlap(one.edits, other.edits):
            yield replace(combine_changes(one, other, -score), is_swappable=False)

    def _lines_of_edits(self, base: Proposal) -> dict[int, float]:
        """Return the suspected lines that a change edits, with their scores."""
        raw = encode_source(self.texts[base.path])
        spans = [(raw[: e.start].count(b"\n") + 1, raw[: e.end].count(b"\n") + 2) for e in base.edits]
        scores = self.scores.get(base.path, {})
        return {line: scores[line] for first, last in spans for line in range(first, last) if line in scores}

    async def _changes_after(
        self, start: Proposal, scores: Mapping[int, float], clues: Sequence[Clue], limit: int
    ) -> list[Proposal]:
        """Return compounds of a first change and likely second ones, with the scores of the second ones."""
        text = self.texts[start.path]
        lines = shift_scores(scores, start.edits, text)
        if not lines:
            return []
        seconds = await order_single_changes(
            {start.path: lines},
            {start.path: apply_edits(text, start.edits)},
            {},
            seed=self.seed,
            limit=limit,
            seconds=GENERATION_SHARE * self.left_s(),
            clues=clues,
            generate=partial(generate_tree_changes, self.language),
            max_examined=MAX_PARTNERS_EXAMINED,
        )
        compounds = (
            replace(
                second,
                edits=compose_edits(start.edits, second.edits, text),
                label=f"{start.label}; {second.label}",
                operators=(*start.operators, *second.operators),
                is_swappable=False,
            )
            for second in seconds
        )
        return [one for one in compounds if one.edits]  # the second change may undo the first


async def trace_no_lines(proposal: Proposal) -> TestLines:
    """Return no lines: drivers do not trace the tests of a candidate."""
    return {}


def generate_tree_changes(
    language: Language, path: str, text: str, lines: Mapping[int, float]
) -> Iterator[Mutant]:
    """Yield the single changes of a file's lines, as `order_single_changes` needs them."""
    return generate_tree_mutants(text, path, language, lines)


def shift_scores(scores: Mapping[int, float], edits: Sequence[Edit], text: str) -> dict[int, float]:
    """Return the scores of lines after a change; new lines get the worst score of the lines they replace.

    Args:
        scores: Line -> its score.
        edits: The change.
        text: The text before it.
    """
    raw, shifted = encode_source(text), dict(scores)
    for edit in sorted(edits, key=lambda e: e.start, reverse=True):
        line = raw[: edit.start].count(b"\n") + 1
        removed, added = raw[edit.start : edit.end].count(b"\n"), edit.text.count("\n")
        worst = max((shifted.get(at, 0.0) for at in range(line, line + removed + 1)), default=0.0)
        after = {at + added - removed: score for at, score in shifted.items() if at > line + removed}
        before = {at: score for at, score in shifted.items() if at < line}
        changed = {at: worst for at in range(line, line + added + 1) if worst}
        shifted = {**before, **changed, **after}
    return shifted
