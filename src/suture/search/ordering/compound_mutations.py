"""Compound mutations: extensions of partial repairs, and pairs of likely changes that help no test by themselves.

The second change of an extension is made in the text with the first one. So it may change code that the first one
wrote, and use names that the first one declares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from suture.judge.trials.trial_records import Proposal, Spectrum
from suture.mutation import Edit, apply_edits
from suture.mutation.edits import compose_edits, edits_overlap, encode_source
from suture.search.localisation.exception_clues import find_clues
from suture.search.ordering.candidate_order import LineScores, MutantGenerator, order_single_changes
from suture.search.tuning import (
    GENERATION_SHARE,
    MAX_PAIRED_SINGLES,
    MAX_PARTNERS,
    MAX_PARTNERS_EXAMINED,
)


@dataclass
class CompoundMutations:
    """Generates the compound changes of one search.

    Attributes:
        generate: Generates the mutants of a file.
        scores: Path -> line -> suspiciousness.
        remaining_s: Returns the seconds that the search has left, a share of which is for generating changes.
    """

    texts: Mapping[str, str]
    scores: LineScores
    generate: MutantGenerator
    seed: int
    remaining_s: Callable[[], float]

    async def extend_start(self, start: Proposal, remaining: Spectrum, scores: LineScores) -> list[Proposal]:
        """Return compound changes: a start, each time with one likely change for the tests that still fail.

        Args:
            remaining: The spectrum of the project with the start (see `remaining_spectrum`).
            scores: Path -> line -> suspiciousness, by that spectrum. If no line is suspected any more, the lines
                suspected before the start are used.
        """
        text, path = self.texts[start.path], start.path
        lines = shift_scores((scores or self.scores).get(path, {}), start.edits, text)
        if not lines:
            return []
        import_lines = dict.fromkeys(remaining.import_lines.get(path, frozenset()), 1.0)
        second_changes = await order_single_changes(
            {path: lines},
            {path: apply_edits(text, start.edits)},
            {path: frozenset(shift_scores(import_lines, start.edits, text))},
            generate=self.generate,
            seed=self.seed,
            limit=MAX_PARTNERS,
            seconds=GENERATION_SHARE * self.remaining_s(),
            clues=find_clues(remaining),
            max_examined=MAX_PARTNERS_EXAMINED,
        )
        best = max((second.score for second in second_changes), default=1.0) or 1.0
        compounds = (
            replace(
                second,
                edits=compose_edits(start.edits, second.edits, text),
                label=f"{start.label}; {second.label}",
                score=second.score / best,
                operators=(*start.operators, *second.operators),
                is_swappable=start.is_swappable and second.is_swappable,
            )
            for second in second_changes
        )
        return [compound for compound in compounds if compound.edits]  # a second change may undo the first


def combine_pairs(singles: Sequence[Proposal]) -> Iterator[Proposal]:
    """Yield the pairs of the likeliest single changes at different places of a file, the likeliest pair first."""
    pairs = [
        (first, second)
        for first, second in combinations(singles[:MAX_PAIRED_SINGLES], 2)
        if first.path == second.path and not edits_overlap(first.edits, second.edits)
    ]
    pairs.sort(key=lambda pair: -pair[0].score * pair[1].score)
    for first, second in pairs:
        yield Proposal(
            path=first.path,
            edits=tuple(sorted((*first.edits, *second.edits), key=lambda edit: (edit.start, edit.end))),
            label=f"{first.label}; {second.label}",
            score=first.score * second.score,
            operators=(*first.operators, *second.operators),
            is_swappable=first.is_swappable and second.is_swappable,
        )


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
