"""Rivals of a plausible repair: other changes of the same location with which the same tests pass.

The tests do not say which of them is right. Rivals are tried before anything else once there is a repair.
For each one it is checked whether some test runs the blocks that it guards: a handler that is never
reached, or a branch that is never taken, is less likely what somebody wrote.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from suture.judge.trials.trial_records import Proposal
from suture.judge.trials.trial_runner import TrialRunner
from suture.mutation import Edit, apply_edits
from suture.mutation.edits import encode_source, trim_edit
from suture.mutation.python.edit_locations import EditLocation, find_block_stops, find_location
from suture.search.search_records import ChangeKey, change_key
from suture.search.tuning import (
    GUARD_CHECK_S,
    MAX_GUARD_CHECKS,
    MAX_PASSING_PER_LOCATION,
    MAX_RIVALS_PER_LOCATION,
)

LocationFinder = Callable[[str, str, Sequence[Edit]], EditLocation | None]
"""Returns the smallest location that holds a change, by its path, the file's text and its edits."""
BlockStopper = Callable[[str, str, int], Sequence[Sequence[Edit]]]
"""Returns, for each block of the statement at a location, edits that stop whoever runs the block.

The arguments are the path, the text and `EditLocation.start`."""


def _find_python_location(path: str, text: str, edits: Sequence[Edit]) -> EditLocation | None:
    return find_location(text, edits)


def _find_python_block_stops(path: str, text: str, start: int) -> list[tuple[Edit, ...]]:
    return [(stop,) for stop in find_block_stops(text, start)]


class RivalQueue:
    """Changes at the locations of plausible repairs, which wait to be tried.

    Args:
        find_location: Finds the location of a change.
    """

    def __init__(self, find_location: LocationFinder = _find_python_location) -> None:
        self._find_location = find_location
        self._changes: Sequence[Proposal] = ()
        self._locations: dict[tuple[str, int, int], EditLocation] = {}
        self._passing_counts: dict[tuple[str, int, int], int] = {}
        self._waiting: deque[Proposal] = deque()

    @property
    def has_waiting(self) -> bool:
        """Whether some rivals wait to be tried."""
        return bool(self._waiting)

    def set_changes(self, changes: Sequence[Proposal]) -> None:
        """Set the changes that can be tried, the likeliest first."""
        self._changes = changes
        for (path, *_), location in self._locations.items():
            self._add_changes_at(path, location)

    def add_repair(self, repair: Proposal, texts: Mapping[str, str]) -> None:
        """Queue the other changes at the location of a plausible repair."""
        location = self._find_location(repair.path, texts[repair.path], repair.edits)
        if location is None:
            return
        key = (repair.path, location.start, location.end)
        self._passing_counts[key] = self._passing_counts.get(key, 0) + 1
        if self._passing_counts[key] == MAX_PASSING_PER_LOCATION:
            self._waiting.clear()
        if key in self._locations:
            return
        self._locations[key] = location
        self._add_changes_at(repair.path, location)

    def _add_changes_at(self, path: str, location: EditLocation) -> None:
        near = [one for one in self._changes if one.path == path and location.contains(one.edits)]
        self._waiting.extend(near[: MAX_RIVALS_PER_LOCATION - len(self._waiting)])

    def pop(self) -> Proposal | None:
        """Return the next rival to try."""
        return self._waiting.popleft() if self._waiting else None


async def count_idle_blocks(
    repairs: Sequence[Proposal], texts: Mapping[str, str], runner: TrialRunner, seconds: float
) -> dict[ChangeKey, int]:
    """Return repair -> number of blocks that it guards and no test runs, for repairs that were checked.

    Args:
        repairs: Plausible repairs; those without a rival at their location are not checked.
        texts: Path -> text.
        runner: Tries candidates.
        seconds: Wall-clock seconds that are left.
    """
    end_s = time.monotonic() + min(seconds, GUARD_CHECK_S)
    guarded = GuardedBlocks(repairs, texts)
    for repair, all_stopped in guarded.stopped:
        idle = 0
        for stopped in all_stopped:
            left_s = end_s - time.monotonic()
            trial = await runner.run_trial(stopped, left_s) if left_s > 0 and runner.usable else None
            if trial is None or trial.is_pending:
                return guarded.excess_counts()
            idle += trial.is_plausible
        guarded.record(repair, idle)
    return guarded.excess_counts()


class GuardedBlocks:
    """The blocks that repairs guard, and how many of them are idle.

    Args:
        repairs: Plausible repairs.
        texts: Path -> text of the unchanged files.
        find_location: Finds the location of a change.
        find_stops: Finds the edits that stop the blocks of a statement.
    """

    def __init__(
        self,
        repairs: Sequence[Proposal],
        texts: Mapping[str, str],
        find_location: LocationFinder = _find_python_location,
        find_stops: BlockStopper = _find_python_block_stops,
    ) -> None:
        self._locations = {
            change_key(repair): find_location(repair.path, texts[repair.path], repair.edits)
            for repair in repairs
        }
        locations = [self._locations[change_key(repair)] for repair in repairs]
        self.stopped = [
            (repair, _stop_each_block(repair, location, texts[repair.path], find_stops))
            for repair, location in list(zip(repairs, locations, strict=True))[:MAX_GUARD_CHECKS]
            if location is not None and locations.count(location) > 1
        ]
        """Repairs with a rival at their location, each with variants in which one guarded block is
        stopped."""
        self._idle_counts: dict[ChangeKey, int] = {}

    def record(self, repair: Proposal, idle: int) -> None:
        """Note how many guarded blocks of a repair no test runs."""
        self._idle_counts[change_key(repair)] = idle

    def excess_counts(self) -> dict[ChangeKey, int]:
        """Return the counts beyond what all repairs of a location share, which does not distinguish them."""
        least: dict[EditLocation | None, int] = {}
        for key, idle in self._idle_counts.items():
            least[self._locations[key]] = min(idle, least.get(self._locations[key], idle))
        return {key: idle - least[self._locations[key]] for key, idle in self._idle_counts.items()}


def _stop_each_block(
    repair: Proposal, location: EditLocation, text: str, find_stops: BlockStopper
) -> list[Proposal]:
    after, raw = apply_edits(text, repair.edits), encode_source(text)
    variants = []
    for stop in find_stops(repair.path, after, location.start):
        edit = trim_edit(Edit(start=0, end=len(raw), text=apply_edits(after, stop)), raw)
        variants.append(
            Proposal(
                path=repair.path,
                edits=(edit,),
                label=f"{repair.label}, stopped",
                score=0.0,
                operators=repair.operators,
                is_swappable=repair.is_swappable,
            )
        )
    return variants
