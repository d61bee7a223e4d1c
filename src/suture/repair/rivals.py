"""Rivals of a plausible repair: other changes of the same place with which the same tests pass.

Which of them is right the tests do not say. They are tried before anything else once there is a repair, and
of each it is seen whether some test still runs what it guards: a handler that nothing comes to, a branch that
is never taken, is less likely what somebody wrote.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from suture.repair.editing.edits import Edit, mutated, trimmed
from suture.repair.editing.places import Place, guarded, place_of
from suture.repair.trials.bench import Bench
from suture.repair.trials.records import Proposal

MOST_NEAR = 60
"""Changes of one place that are tried out of their turn."""
MOST_PASSING = 12
"""Repairs of one place, after which other places have their turn again."""
MOST_LOOKED_AT = 16
LOOK_S = 2.0
"""Wall-clock seconds for seeing what rivals leave idle."""

Key = tuple[str, tuple[Edit, ...]]
"""A change: its path and its edits."""
FindPlace = Callable[[str, str, Sequence[Edit]], Place | None]
"""The smallest place that holds a change, by its path, the file's text and its edits."""


class Rivals:
    """What stands at the places of plausible repairs.

    Args:
        find: Finds the place of a change.
    """

    def __init__(self, find: FindPlace = lambda path, text, edits: place_of(text, edits)) -> None:
        self._find = find
        self._known: Sequence[Proposal] = ()
        self._places: dict[tuple[str, int, int], Place] = {}
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

    def _take(self, path: str, place: Place) -> None:
        near = [one for one in self._known if one.path == path and place.holds(one.edits)]
        self._waiting.extend(near[: MOST_NEAR - len(self._waiting)])

    def pop(self) -> Proposal | None:
        """The next to be tried."""
        return self._waiting.popleft() if self._waiting else None


async def idle_blocks(
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
    places = [place_of(texts[repair.path], repair.edits) for repair in repairs]
    found: dict[Key, int] = {}
    least: dict[Place, int] = {}
    for repair, place in list(zip(repairs, places, strict=True))[:MOST_LOOKED_AT]:
        if place is None or places.count(place) < 2:
            continue
        idle = 0
        for stopped in _stopped(repair, place, texts[repair.path]):
            left_s = end_s - time.monotonic()
            trial = await bench.trial(stopped, left_s) if left_s > 0 and bench.usable else None
            if trial is None or trial.held:
                return _beyond(found, least, repairs, places)
            idle += trial.plausible
        found[repair.path, repair.edits] = idle
        least[place] = min(idle, least.get(place, idle))
    return _beyond(found, least, repairs, places)


def _beyond(
    found: Mapping[Key, int],
    least: Mapping[Place, int],
    repairs: Sequence[Proposal],
    places: Sequence[Place | None],
) -> dict[Key, int]:
    """Without what all of a place leave idle: that tells nothing of any of them."""
    of = {(repair.path, repair.edits): place for repair, place in zip(repairs, places, strict=True)}
    return {key: idle - least[place] for key, idle in found.items() if (place := of[key]) is not None}


def _stopped(repair: Proposal, place: Place, text: str) -> list[Proposal]:
    """A repair with each block that it guards stopped, one at a time."""
    after, raw = mutated(text, repair.edits), text.encode("utf-8", "surrogatepass")
    made = []
    for stop in guarded(after, place.start):
        whole = trimmed(Edit(start=0, end=len(raw), text=mutated(after, [stop])), raw)
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
