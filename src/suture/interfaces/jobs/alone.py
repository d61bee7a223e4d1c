"""A job for one caller who waits for it: each step told as it happens, and stopped if they take it back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from suture.core.ledger import Event, RunFolder, follow_ledger, new_run_id, read_ledger
from suture.interfaces.jobs.job import Job, JobEnd, JobFailed, JobKind
from suture.interfaces.jobs.process import job_alone

LOOK_EVERY_S = 0.1
"""Seconds between two looks at the ledger of the run: a person watches."""
LAST_WORDS_S = 5.0
"""How long a run's last steps may take to be told, once it has ended."""

Tell = Callable[[Event], Awaitable[None]]


async def run_alone(
    home: Path,
    kind: JobKind,
    request: Mapping[str, Any],
    tell: Tell,
    *,
    run: str = "",
    flags: Mapping[str, object] | None = None,
    chosen: Mapping[str, object] | None = None,
) -> tuple[RunFolder, JobEnd]:
    """Do a job to its end; who is cancelled meanwhile has it stopped, and written down, first.

    Args:
        home: Where runs are kept.
        kind: What is to be done.
        request: Its arguments.
        tell: Told each step of the run; what it raises ends the telling and not the run.
        run: The run that it is about; a new one where not given.
        flags: Settings that were said on the server's command line.
        chosen: Settings of this job alone; they beat those.

    Returns:
        The run's folder, and how the job ended.

    Raises:
        JobFailed: It ended with an error.
    """
    new = run or new_run_id()
    folder = RunFolder(home / "runs" / new)
    job = Job(id=new, run=new, kind=kind, request=request, flags=chosen or {}, created_s=time.time())
    seen = len(read_ledger(folder.ledger_path).events) if folder.ledger_path.is_file() else 0
    process, place = await job_alone(job, flags or {})
    steps = _Steps(folder.ledger_path, seen, tell)
    telling = asyncio.create_task(steps.tell_all())
    try:
        end = await process.ended()
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS_S):
                await steps.all_told(telling)
    except asyncio.CancelledError:
        process.stop()
        await process.ended()
        raise
    finally:
        telling.cancel()
        await asyncio.wait([telling])
        if not telling.cancelled():
            telling.exception()  # seen: nobody is told, and the run is none the worse for it
        place.cleanup()
    if end.error:
        raise JobFailed(end)
    return folder, end


class _Steps:
    """The steps of a run that come after those that were there."""

    def __init__(self, ledger: Path, seen: int, tell: Tell) -> None:
        self._ledger, self._seen, self._tell = ledger, seen, tell
        self._told = seen

    async def tell_all(self) -> None:
        """Tell every step from now on, until the run ends."""
        while not self._ledger.is_file():  # noqa: ASYNC110  # another process makes it
            await asyncio.sleep(LOOK_EVERY_S)
        async for event in follow_ledger(self._ledger, every_s=LOOK_EVERY_S, seen=self._seen):
            if event.seq >= self._seen:
                await self._tell(event)
            self._told = max(self._told, event.seq + 1)

    async def all_told(self, telling: asyncio.Task[None]) -> None:
        """Wait until every step that is written by now has been told, or nobody tells any more."""
        steps = len(read_ledger(self._ledger).events) if self._ledger.is_file() else 0
        while self._told < steps and not telling.done():  # noqa: ASYNC110  # another task tells them
            await asyncio.sleep(LOOK_EVERY_S)
