"""Changes that need each other: what did a part is gone on from, one change at a time, the best first.

A chain grows only by progress: of a change that is added to another, more failing tests pass than without it,
or those that fail get further. So three faults are mended in three steps, not by all triples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from suture.judge.trials.trial_records import Lines, Mark, Proposal, Spectrum, TestRun, Trial
from suture.search.localisation.fault_ranking import score_lines, rank_suspects
from suture.search.ordering.candidate_order import DEAR_S, interleave_expensive
from suture.search.ordering.compound_changes import LineScores, remaining_spectrum, pair_changes, passing_share, has_progressed

Look = Callable[[Proposal], Awaitable[Lines]]
GoOn = Callable[[Proposal, Spectrum, LineScores, Mapping[str, str], int], Awaitable[list[Proposal]]]
"""Makes what goes on from a partial repair, as `second_order` does."""
AT_ONCE = 6
"""Starts that are gone on from in one round."""
FURTHER_AT_ONCE = 2
"""Of those, such with which no test passes yet, where others are there."""
MOST_STARTS = 60
"""Starts of a search that are gone on from."""
ALIKE = 2
"""Of starts with which the tests say the same, those that are gone on from."""
SETTLING = 60
"""Candidates tried once more is mended than ever before, before the next round: a better one may come."""
MOST_WAITING = 3000
LATER_START, LATER = 0.9, 0.98
"""What a change weighs for each place of its start in the round, and for each place of its own."""


@dataclass(frozen=True)
class Start:
    """A change, or several, and what they showed."""

    proposal: Proposal
    trial: Trial

    @property
    def says(self) -> tuple[object, ...]:
        """What the tests say with it."""
        return self.trial.passed, self.trial.marks[:1]


class CompoundQueue:
    """Starts of one search, and the changes that go on from them."""

    def __init__(self) -> None:
        self._starts: list[Start] = []
        self._parents: dict[Proposal, Trial] = {}
        self._waiting: list[Proposal] = []
        self._gone_on = 0
        self._said: Counter[tuple[object, ...]] = Counter()
        self._grown_at: int | None = None
        self._most_passing = 0

    def note(self, proposal: Proposal, trial: Trial, before: Mapping[str, TestRun], tried: int) -> bool:
        """Whether a candidate that still fails did a part, and more of it than what it goes on from.

        Args:
            proposal: The candidate.
            trial: What it showed.
            before: Test -> what it did on the code as it is.
            tried: Candidates tried so far.
        """
        if trial.broken or trial.late or not trial.failing:
            return False
        parent = self._parents.get(proposal)
        if not _is_progress(trial, parent, before):
            return False
        self._starts.append(Start(proposal, trial))
        is_better = trial.passing > self._most_passing
        if self._grown_at is None and (parent is not None or is_better):
            self._grown_at = tried
        self._most_passing = max(self._most_passing, trial.passing)
        return True

    def is_near(self) -> bool:
        """Whether most of the failing tests that were run pass with a change that nobody went on from yet."""
        return any(start.trial.passing > start.trial.failing for start in self._starts)

    def is_due(self, tried: int) -> bool:
        """Whether another round is worth its while: more was mended, or nothing waits and starts do."""
        if not self._starts or self._gone_on >= MOST_STARTS:
            return False
        return not self._waiting or (self._grown_at is not None and tried >= self._grown_at + SETTLING)

    async def extend(
        self,
        spectrum: Spectrum,
        texts: Mapping[str, str],
        look: Look,
        *,
        seed: int,
        most: int,
        go_on: GoOn = pair_changes,
    ) -> None:
        """Go on from the best starts that are left.

        Args:
            spectrum: What the tests did on the code as it is.
            texts: Path -> text.
            look: Tells the lines that failing tests run with a change.
            seed: Decides between equals.
            most: How many changes of each.
            go_on: Makes them.
        """
        self._grown_at = None
        chosen = self._chosen()
        self._gone_on += len(chosen)
        for number, start in enumerate(chosen):
            trial = replace(start.trial, lines=await look(start.proposal))
            left, own = remaining_spectrum(spectrum, trial, texts), {start.proposal.path: texts[start.proposal.path]}
            scores = score_lines(rank_suspects(left, own), left, own)
            longer = await go_on(start.proposal, left, scores, texts, seed)
            longer.sort(key=lambda proposal: -round(proposal.score, 6))
            weight = passing_share(trial, spectrum) * LATER_START**number
            for place, proposal in enumerate(longer[:most]):
                rescored = replace(proposal, score=proposal.score * weight * LATER**place)
                if rescored not in self._parents:
                    self._parents[rescored] = start.trial
                    self._waiting.append(rescored)
        self._waiting.sort(key=lambda proposal: -round(proposal.score, 6))
        del self._waiting[MOST_WAITING:]
        if spectrum.collect_s >= DEAR_S:
            self._waiting = interleave_expensive(self._waiting)

    def _chosen(self) -> list[Start]:
        self._starts.sort(key=lambda s: (-s.trial.passing, s.trial.failing, -round(s.proposal.score, 6)))
        chosen: list[Start] = []
        left: list[Start] = []
        room = {True: AT_ONCE, False: FURTHER_AT_ONCE}
        if not any(start.trial.passing for start in self._starts):
            room[False] = AT_ONCE
        for start in self._starts:
            passes = start.trial.passing > 0
            if self._said[start.says] >= ALIKE:
                continue
            if len(chosen) < AT_ONCE and room[passes]:
                room[passes] -= 1
                self._said[start.says] += 1
                chosen.append(start)
            else:
                left.append(start)
        self._starts = left
        return chosen

    def pop(self) -> Proposal | None:
        """The likeliest change that goes on from a start; `None` where none waits."""
        return self._waiting.pop(0) if self._waiting else None


def _is_progress(trial: Trial, parent: Trial | None, before: Mapping[str, TestRun]) -> bool:
    if trial.passing != (parent.passing if parent else 0):
        return trial.passing > (parent.passing if parent else 0)
    marks = trial.marks
    old = {mark.test: mark for mark in (parent.marks if parent else _marks_of(marks, before))}
    pairs = [(old[mark.test], mark) for mark in marks if mark.test in old]
    further = sum(has_progressed(one, other) for one, other in pairs)
    return further > sum(has_progressed(other, one) for one, other in pairs)


def _marks_of(marks: Iterable[Mark], before: Mapping[str, TestRun]) -> Iterator[Mark]:
    """How far the same tests got on the code as it is."""
    return (before[mark.test].mark for mark in marks if mark.test in before)
