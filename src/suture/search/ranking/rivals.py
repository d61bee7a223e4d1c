"""Rivals of a plausible repair: other changes of the same place with which the same tests pass.

Which of them is right the tests do not say. They are tried before anything else once there is a repair, and
of each it is seen whether some test still runs what it guards: a handler that nothing comes to, a branch that
is never taken, is less likely what somebody wrote.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from suture.judge.trials.trial_records import Proposal
from suture.judge.trials.trial_runner import Bench
from suture.mutation.edits import Edit, apply_edits, trim_edit
from suture.mutation.python.edit_locations import EditLocation, find_block_stops, find_location

MOST_NEAR = 60
"""Changes of one place that are tried out of their turn."""
MOST_PASSING = 12
"""Repairs of one place, after which other places have their turn again."""
MOST_LOOKED_AT = 16
LOOK_S = 2.0
"""Wall-clock seconds for seeing what rivals leave idle."""

Key = tuple[str, tuple[Edit, ...]]
"""A change: its path and its edits."""
FindPlace = Callable[[str, str, Sequence[Edit]], EditLocation | None]
"""The smallest place that holds a change, by its path, the file's text and its edits."""


def _place_in_python(path: str, text: str, edits: Sequence[Edit]) -> EditLocation | None:
    return find_location(text, edits)


def _stops_in_python(path: str, text: str, start: int) -> list[tuple[Edit, ...]]:
    return [(stop,) for stop in find_block_stops(text, start)]


class RivalQueue:
    """What stands at the places of plausible repairs.

    Args:
        find: Finds the place of a change.
    """

    def __init__(self, find: FindPlace = _place_in_python) -> None:
        self._find = find
        self._known: Sequence[Proposal] = ()
        self._places: dict[tuple[str, int, int], EditLocation] = {}
        self._found: dict[tuple[str, int, int], int] = {}
        self._waiting: deque[Proposal] = deque()

    @property
    def waiting(self) -> bool:
        """Whether there are some to be tried."""
        return bool(self._waiting)

    def know(self, singles: Sequence[Proposal]) -> None:
        """Take note of changes that could be tried, the likeliest first."""
        self._known = singles
        for (path, *_), place in self._places.items():
            self._take(path, place)

    def note(self, repair: Proposal, texts: Mapping[str, str]) -> None:
        """There is a plausible repair: what else stands at its place comes next."""
        place = self._find(repair.path, texts[repair.path], repair.edits)
        if place is None:
            return
        key = (repair.path, place.start, place.end)
        self._found[key] = self._found.get(key, 0) + 1
        if self._found[key] == MOST_PASSING:
            self._waiting.clear()
        if key in self._places:
            return
        self._places[key] = place
        self._take(repair.path, place)

    def _take(self, path: str, place: EditLocation) -> None:
        near = [one for one in self._known if one.path == path and place.contains(one.edits)]
        self._waiting.extend(near[: MOST_NEAR - len(self._waiting)])

    def pop(self) -> Proposal | None:
        """The next to be tried."""
        return self._waiting.popleft() if self._waiting else None


Stops = Callable[[str, str, int], Sequence[Sequence[Edit]]]
"""For each block of the statement at a place what stops what runs it, by path, text and `Place.start`."""


async def count_idle_blocks(
    repairs: Sequence[Proposal], texts: Mapping[str, str], bench: Bench, seconds: float
) -> dict[Key, int]:
    """How many blocks that a repair guards are run by no test; those that could not be seen are left out.

    Args:
        repairs: Plausible ones; such as have no rival at their place are not looked at.
        texts: Path -> text.
        bench: Tries candidates.
        seconds: Wall-clock seconds that there are.
    """
    end_s = time.monotonic() + min(seconds, LOOK_S)
    guarding = GuardedBlocks(repairs, texts)
    for repair, all_stopped in guarding.stopped:
        idle = 0
        for stopped in all_stopped:
            left_s = end_s - time.monotonic()
            trial = await bench.trial(stopped, left_s) if left_s > 0 and bench.usable else None
            if trial is None or trial.held:
                return guarding.beyond()
            idle += trial.plausible
        guarding.note(repair, idle)
    return guarding.beyond()


class GuardedBlocks:
    """What repairs guard, and how much of it is idle.

    Args:
        repairs: Plausible ones.
        texts: Path -> text.
        find: Finds the place of a change.
        stops: Finds what a statement guards.
    """

    def __init__(
        self,
        repairs: Sequence[Proposal],
        texts: Mapping[str, str],
        find: FindPlace = _place_in_python,
        stops: Stops = _stops_in_python,
    ) -> None:
        self._places = {(one.path, one.edits): find(one.path, texts[one.path], one.edits) for one in repairs}
        places = [self._places[one.path, one.edits] for one in repairs]
        self.stopped = [
            (repair, _stopped(repair, place, texts[repair.path], stops))
            for repair, place in list(zip(repairs, places, strict=True))[:MOST_LOOKED_AT]
            if place is not None and places.count(place) > 1
        ]
        """Those that have a rival at their place, with each block that they guard stopped, one at a time."""
        self._idle: dict[Key, int] = {}

    def note(self, repair: Proposal, idle: int) -> None:
        """So many blocks of a repair are run by no test."""
        self._idle[repair.path, repair.edits] = idle

    def beyond(self) -> dict[Key, int]:
        """Without what all of a place leave idle: that tells nothing of any of them."""
        least: dict[EditLocation | None, int] = {}
        for key, idle in self._idle.items():
            least[self._places[key]] = min(idle, least.get(self._places[key], idle))
        return {key: idle - least[self._places[key]] for key, idle in self._idle.items()}


def _stopped(repair: Proposal, place: EditLocation, text: str, stops: Stops) -> list[Proposal]:
    after, raw = apply_edits(text, repair.edits), text.encode("utf-8", "surrogatepass")
    made = []
    for stop in stops(repair.path, after, place.start):
        whole = trim_edit(Edit(start=0, end=len(raw), text=apply_edits(after, stop)), raw)
        made.append(
            Proposal(
                path=repair.path,
                edits=(whole,),
                label=f"{repair.label}, stopped",
                score=0.0,
                operators=repair.operators,
                swap=repair.swap,
            )
        )
    return made
