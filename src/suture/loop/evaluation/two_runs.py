"""The two whole runs of a candidate that has passed a trial, and what it is worth where only one is done."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any

from suture.core.records import Verdict, VerdictNote

PASSED_ONCE = "passed one whole run, and there was no time for a second one on the same files"
"""A remark on a verdict; it is a sign of doubt too."""
AT_ONCE = 2.0
"""Runs that there must be time for, one after the other, before two go on side by side: on a machine that is
busy both may take as long as that, and neither would come to its end."""
STUCK, STUCK_S = 4.0, 5.0
"""Times of the first run, and seconds, after which the other is not short of time: it does not end."""
TELL_S = 1.0
"""Seconds of the run's own that are kept to tell what one run has shown."""


@dataclass(frozen=True, kw_only=True)
class Runs:
    """What one or two runs of the suite on the same files said.

    Attributes:
        first: One of them.
        again: The other; `None` where the first does not pass, or the time was up.
    """

    first: Verdict
    again: Verdict | None = None


class _Begun:
    """A run that has begun."""

    def __init__(self, run: Callable[[], Coroutine[Any, Any, Verdict]]) -> None:
        self.began_s, self.took_s = time.monotonic(), 0.0
        self.task = asyncio.create_task(self._run(run))

    async def _run(self, run: Callable[[], Coroutine[Any, Any, Verdict]]) -> Verdict:
        try:
            return await run()
        finally:
            self.took_s = time.monotonic() - self.began_s

    def is_stuck(self, other: _Begun) -> bool:
        """Whether it has had more time than it can need, by what another run of the same took."""
        return time.monotonic() - self.began_s > STUCK * other.took_s + STUCK_S


async def run_twice(
    run: Callable[[], Coroutine[Any, Any, Verdict]],
    passes: Callable[[Verdict], bool],
    *,
    left_s: float | None,
    takes_s: float,
    is_walled: bool = True,
) -> Runs:
    """Run the suite on a candidate that has passed a trial, and once more where it passes.

    Args:
        run: One run of the suite on it.
        passes: Whether a verdict needs the second run.
        left_s: Wall-clock seconds that the run has left, where it has a limit.
        takes_s: The same of one run of the suite, as it was measured.
        is_walled: Whether two runs at one time cannot meet, at a port or in a folder of the machine.

    Raises:
        SandboxError: The wall failed.
    """
    end_s = None if left_s is None else time.monotonic() + left_s - TELL_S
    begun = [_Begun(run)]
    if is_walled and (left_s is None or left_s >= AT_ONCE * takes_s):
        begun.append(_Begun(run))
    try:
        await asyncio.wait([begun[0].task], timeout=_left_s(end_s))
        if not begun[0].task.done() and begun[1:] and begun[1].task.done():
            begun.reverse()
        first = await begun[0].task
        if not passes(first):
            return Runs(first=first)
        if not begun[1:]:
            begun.append(_Begun(run))
        await asyncio.wait([begun[1].task], timeout=_left_s(end_s))
        if begun[1].task.done():
            return Runs(first=first, again=begun[1].task.result())
        if begun[1].is_stuck(begun[0]):
            return Runs(first=first, again=_stuck(first))
        return Runs(first=once(first))
    finally:
        for one in begun:
            one.task.cancel()
        await asyncio.gather(*(one.task for one in begun), return_exceptions=True)


def _stuck(verdict: Verdict) -> Verdict:
    """What a run says that would not end, by one that did: none of what passed there has passed here."""
    outcomes = (replace(o, status="timeout") if o.passed else o for o in verdict.outcomes)
    return replace(verdict, outcomes=tuple(outcomes))


def once(verdict: Verdict) -> Verdict:
    """A verdict of one run, which says that it is."""
    return replace(verdict, notes=(*verdict.notes, VerdictNote(code="passed_once")))


def passed_only_once(verdict: Verdict | None) -> bool:
    """Whether a pass was not repeated for lack of time."""
    return verdict is not None and any(note.code == "passed_once" for note in verdict.notes)


def _left_s(end_s: float | None) -> float | None:
    return None if end_s is None else max(0.0, end_s - time.monotonic())
