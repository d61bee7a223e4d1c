"""One run for one call: its process, its progress, and its end, also where the client takes the call back."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import anyio
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError

from suture.jobs import Job, JobEnd, JobKind
from suture.jobs.process import job_alone
from suture.ledger import RunFolder, follow_ledger, new_run_id, read_ledger
from suture.mcp.door import Door
from suture.narrative.event_text import tell

LOOK_EVERY_S = 0.1
LAST_WORDS_S = 5.0
"""How long a run's last steps may take to be told, once it has ended."""
MOST_CHARS = 300
"""Of a line of progress."""


async def done(
    door: Door,
    context: Context[Any, Any],
    kind: JobKind,
    request: Mapping[str, Any],
    *,
    run: str = "",
    flags: Mapping[str, Any] | None = None,
) -> tuple[RunFolder, JobEnd]:
    """Do a job to its end, telling the client each step; a call that is taken back stops it.

    Args:
        door: What the server works with.
        context: The call.
        kind: What is to be done.
        request: Its arguments.
        run: The run that it is about; a new one where not given.
        flags: Settings of this run alone.

    Raises:
        ToolError: It ended with an error.
    """
    new = run or new_run_id()
    folder = RunFolder(door.home / "runs" / new)
    job = Job(id=new, run=new, kind=kind, request=request, flags=flags or {}, created_s=time.time())
    seen = len(read_ledger(folder.ledger_path).events) if folder.ledger_path.is_file() else 0
    process, place = await job_alone(job, door.flags)
    try:
        async with anyio.create_task_group() as tasks:
            progress = _Progress(context, folder, seen)
            tasks.start_soon(progress.tell)
            end = await process.ended()
            with anyio.move_on_after(LAST_WORDS_S):
                await progress.all_told()
            tasks.cancel_scope.cancel()
    except anyio.get_cancelled_exc_class():
        with anyio.CancelScope(shield=True):  # the run is written down before the call is given up
            process.stop()
            await process.ended()
        raise
    finally:
        place.cleanup()
    if end.error:
        raise ToolError(f"{end.error}; try: {end.remedy}" if end.remedy else end.error)
    return folder, end


class _Progress:
    """Each step of a run as a line of progress; who listens to none is told none."""

    def __init__(self, context: Context[Any, Any], folder: RunFolder, seen: int) -> None:
        self._context, self._ledger, self._seen = context, folder.ledger_path, seen
        self._told = seen

    async def tell(self) -> None:
        """Tell every step from now on, until the run ends."""
        while not self._ledger.is_file():  # noqa: ASYNC110  # another process makes it
            await anyio.sleep(LOOK_EVERY_S)
        async for event in follow_ledger(self._ledger, every_s=LOOK_EVERY_S, seen=self._seen):
            line = tell(event) if event.seq >= self._seen else None
            if line is not None:
                await self._context.report_progress(event.seq + 1, None, line[:MOST_CHARS])
            self._told = max(self._told, event.seq + 1)

    async def all_told(self) -> None:
        """Wait until every step that is written by now has been told."""
        steps = len(read_ledger(self._ledger).events) if self._ledger.is_file() else 0
        while self._told < steps:  # noqa: ASYNC110  # the steps are told by another task
            await anyio.sleep(LOOK_EVERY_S)
