"""Changes that go on from others: from such as mended a part, then from any likely one, while there is time.

The second change is made of the text with the first: it may lie in what that wrote, and it sees its names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import heappop, heappush
from itertools import count

from suture.core.records import Language
from suture.judge.trials.trial_records import Lines, Proposal, Spectrum
from suture.mutation.edits import Edit, Mutant, apply_edits, edits_overlap, compose_edits
from suture.mutation.tree_sitter.tree_mutants import generate_tree_mutants
from suture.search.localisation.exception_clues import Clue, find_clues
from suture.search.ordering.candidate_order import MAKING_SHARE, order_single_changes
from suture.search.ordering.compound_changes import PARTNERS, PARTNERS_OF, LineScores, best_score, combine_changes

MOST_OF_PLACE = 100
"""Second changes at the place of a first one that mended nothing."""


@dataclass
class CompoundMutations:
    """What goes on from the changes of one search.

    Attributes:
        texts: Path -> text of the files that may be changed.
        scores: Path -> line -> suspiciousness.
        language: What the files are written in.
        seed: Decides between equals.
        left_s: Seconds that the search has left; making changes of one start takes a share of them.
    """

    texts: Mapping[str, str]
    scores: LineScores
    language: Language
    seed: int
    left_s: Callable[[], float]
    _firsts: Sequence[Proposal] = ()
    _made_of: int = 0
    _waiting: list[tuple[float, int, Proposal | tuple[int, int]]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    async def second_changes(
        self, start: Proposal, left: Spectrum, scores: LineScores, texts: Mapping[str, str], seed: int
    ) -> list[Proposal]:
        """As `second_order`; where no line of the file is suspected any more, those of before are."""
        lines = (scores or self.scores).get(start.path, {})
        others = await self._behind(start, lines, find_clues(left), PARTNERS)
        best = best_score(others)
        return [replace(other, score=other.score / best) for other in others]

    def know(self, firsts: Sequence[Proposal]) -> None:
        """Take note of the changes that any two of which may be tried together, the likeliest first."""
        self._firsts = firsts

    async def likely(self, number: int, clues: Sequence[Clue]) -> list[Proposal]:
        """So many of the likeliest two changes that are left; fewer where there are no more.

        Of two that lie apart both are known; what goes on at the place of a first one is made when even the
        likeliest of that may be next.

        Args:
            number: How many.
            clues: What the failing tests say.
        """
        found: list[Proposal] = []
        best = self._firsts[0].score if self._firsts else 0.0
        while len(found) < number and self.left_s() > 0:
            bases = self._firsts[self._made_of : self._made_of + 1]
            if self._waiting and (not bases or -self._waiting[0][0] >= bases[0].score * best):
                found += self._popped()
            elif not bases:
                break
            else:
                self._push_pair(self._made_of, self._made_of + 1)
                self._made_of += 1
                for one in await self._behind(bases[0], self._place_of(bases[0]), clues, MOST_OF_PLACE):
                    score = bases[0].score * one.score
                    heappush(self._waiting, (-score, next(self._numbers), replace(one, score=score)))
        return found

    def _push_pair(self, one: int, other: int) -> None:
        if other < len(self._firsts):
            score = self._firsts[one].score * self._firsts[other].score
            heappush(self._waiting, (-score, next(self._numbers), (one, other)))

    def _popped(self) -> Iterator[Proposal]:
        """The likeliest that waits, unless it is two of one place; behind it the next two wait."""
        score, _, both = heappop(self._waiting)
        if isinstance(both, Proposal):
            yield both
            return
        self._push_pair(both[0], both[1] + 1)
        one, other = (self._firsts[number] for number in both)
        if one.path == other.path and not edits_overlap(one.edits, other.edits):
            yield replace(combine_changes(one, other, -score), swap=False)

    def _place_of(self, base: Proposal) -> dict[int, float]:
        """The lines that a change writes anew, as they are suspected."""
        raw = self.texts[base.path].encode("utf-8", "surrogatepass")
        spans = [(raw[: e.start].count(b"\n") + 1, raw[: e.end].count(b"\n") + 2) for e in base.edits]
        scores = self.scores.get(base.path, {})
        return {at: scores[at] for first, last in spans for at in range(first, last) if at in scores}

    async def _behind(
        self, start: Proposal, scores: Mapping[int, float], clues: Sequence[Clue], most: int
    ) -> list[Proposal]:
        """Second changes, each with its own score."""
        text = self.texts[start.path]
        lines = shift_scores(scores, start.edits, text)
        if not lines:
            return []
        made = await order_single_changes(
            {start.path: lines},
            {start.path: apply_edits(text, start.edits)},
            {},
            seed=self.seed,
            most=most,
            seconds=MAKING_SHARE * self.left_s(),
            clues=clues,
            make=partial(generate_tree_changes, self.language),
            looked_at=PARTNERS_OF,
        )
        both = (
            replace(
                other,
                edits=compose_edits(start.edits, other.edits, text),
                label=f"{start.label}; {other.label}",
                operators=(*start.operators, *other.operators),
                swap=False,
            )
            for other in made
        )
        return [one for one in both if one.edits]  # one may take the other back


async def not_looked_at(proposal: Proposal) -> Lines:
    """What runs with a change is not noted here."""
    return {}


def generate_tree_changes(language: Language, path: str, text: str, lines: Mapping[int, float]) -> Iterator[Mutant]:
    """The single changes of a file's lines, as `first_order` asks for them."""
    return generate_tree_mutants(text, path, language, lines)


def shift_scores(scores: Mapping[int, float], edits: Sequence[Edit], text: str) -> dict[int, float]:
    """What is said of lines, said of where they stand with a change; what is new is as its place was.

    Args:
        scores: Line -> its score.
        edits: The change.
        text: The text before it.
    """
    raw, found = text.encode("utf-8", "surrogatepass"), dict(scores)
    for edit in sorted(edits, key=lambda e: e.start, reverse=True):
        line = raw[: edit.start].count(b"\n") + 1
        gone, new = raw[edit.start : edit.end].count(b"\n"), edit.text.count("\n")
        own = max((found.get(at, 0.0) for at in range(line, line + gone + 1)), default=0.0)
        behind = {at + new - gone: score for at, score in found.items() if at > line + gone}
        before = {at: score for at, score in found.items() if at < line}
        here = {at: own for at in range(line, line + new + 1) if own}
        found = {**before, **here, **behind}
    return found
