"""Rivals of a plausible repair: other changes of the same location with which the same tests pass.

The tests do not say which of them is right. Once there is a repair, its rivals are tried before anything else.
For each one it is checked whether some test runs the blocks that it guards, such as the branch of an `if` or the
body of an `except`. A block that no test runs is *idle*. A person is less likely to have written such a repair.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace

from suture.judge.trials.command_trials import CandidateRunner
from suture.judge.trials.trial_records import Proposal
from suture.mutation import Edit, apply_edits
from suture.mutation.edits import EditLocation, encode_source, trim_edit
from suture.search.languages.language_adapter import BlockStopper, LanguageAdapter, LocationFinder
from suture.search.search_records import ChangeKey, change_key
from suture.search.tuning import (
    GUARD_CHECK_S,
    MAX_GUARD_CHECKS,
    MAX_PASSING_PER_LOCATION,
    MAX_RIVALS_PER_LOCATION,
)


class RivalQueue:
    """Changes at the locations of plausible repairs, which wait to be tried."""

    def __init__(self, find_location: LocationFinder) -> None:
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
            self._waiting.clear()  # enough to compare here: other locations get their turn
        if key in self._locations:
            return
        self._locations[key] = location
        self._add_changes_at(repair.path, location)

    def _add_changes_at(self, path: str, location: EditLocation) -> None:
        rivals = [c for c in self._changes if c.path == path and location.contains(c.edits)]
        self._waiting.extend(rivals[: MAX_RIVALS_PER_LOCATION - len(self._waiting)])

    def pop(self) -> Proposal | None:
        """Return the next rival to try."""
        return self._waiting.popleft() if self._waiting else None


async def count_idle_blocks(
    repairs: Sequence[Proposal],
    texts: Mapping[str, str],
    runner: CandidateRunner,
    adapter: LanguageAdapter,
    seconds: float,
) -> dict[ChangeKey, int]:
    """Return repair -> number of blocks that it guards and no test runs, for repairs that were checked.

    Args:
        repairs: Plausible repairs; those without a rival at their location are not checked.
        seconds: Wall-clock seconds that are left.

    Raises:
        SandboxError: The sandbox failed.
    """
    guarded = GuardedBlocks(repairs, texts, adapter.find_location, adapter.find_block_stops)
    all_stopped = [stopped for _, variants in guarded.stopped for stopped in variants]
    timeout_s = min(seconds, GUARD_CHECK_S)
    if not all_stopped or timeout_s <= max(0.0, runner.min_run_s) or not runner.usable:
        return {}
    end_s = time.monotonic() + timeout_s
    reports = [*await runner.run_batch(all_stopped, timeout_s)]
    unsettled = [stopped for stopped, trial in reports if trial is not None and trial.is_unsettled]
    for stopped in unsettled:
        if runner.usable and (left_s := end_s - time.monotonic()) > 0:
            reports += await runner.run_batch([stopped], left_s)
    finished = [
        (stopped, trial) for stopped, trial in reports if trial is not None and not trial.is_unsettled
    ]
    trials = {id(stopped): trial for stopped, trial in finished if not trial.is_pending}
    for repair, variants in guarded.stopped:
        if all(id(stopped) in trials for stopped in variants):
            # If all tests pass, none of them runs the block.
            guarded.record(repair, sum(trials[id(stopped)].is_plausible for stopped in variants))
    return guarded.excess_counts()


class GuardedBlocks:
    """The blocks that repairs guard, and how many of them are idle.

    Args:
        find_stops: Finds the edits that raise an error in the blocks of a statement.

    Attributes:
        stopped: `(repair, variants)` for each repair with a rival at its location. In each variant, one of the
            blocks that the repair guards raises an error.
    """

    def __init__(
        self,
        repairs: Sequence[Proposal],
        texts: Mapping[str, str],
        find_location: LocationFinder,
        find_stops: BlockStopper,
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
        self._idle_counts: dict[ChangeKey, int] = {}

    def record(self, repair: Proposal, idle_count: int) -> None:
        """Record how many of the blocks that a repair guards are idle."""
        self._idle_counts[change_key(repair)] = idle_count

    def excess_counts(self) -> dict[ChangeKey, int]:
        """Return change -> its idle blocks beyond the minimum of all repairs at the same location.

        Idle blocks that all of them have do not distinguish them.
        """
        minimums: dict[EditLocation | None, int] = {}
        for key, count in self._idle_counts.items():
            minimums[self._locations[key]] = min(count, minimums.get(self._locations[key], count))
        return {key: count - minimums[self._locations[key]] for key, count in self._idle_counts.items()}


def _stop_each_block(
    repair: Proposal, location: EditLocation, text: str, find_stops: BlockStopper
) -> list[Proposal]:
    """Return variants of a repair, in each of which one block that it guards raises an error."""
    repaired, raw = apply_edits(text, repair.edits), encode_source(text)
    variants = []
    for stop_edits in find_stops(repair.path, repaired, location.start):
        edit = trim_edit(Edit(start=0, end=len(raw), text=apply_edits(repaired, stop_edits)), raw)
        variants.append(replace(repair, edits=(edit,), label=f"{repair.label}, stopped", score=0.0))
    return variants
