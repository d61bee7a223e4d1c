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
            tasks.start_soon(_tell_progress, context, folder, seen)
            end = await process.ended()
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


async def _tell_progress(context: Context[Any, Any], folder: RunFolder, seen: int) -> None:
    """Each step of a run as a line of progress; who listens to none is told none."""
    while not folder.ledger_path.is_file():  # noqa: ASYNC110  # another process makes it
        await anyio.sleep(LOOK_EVERY_S)
    async for event in follow_ledger(folder.ledger_path, every_s=LOOK_EVERY_S, seen=seen):
        line = tell(event) if event.seq >= seen else None
        if line is not None:
            await context.report_progress(event.seq + 1, None, line[:MOST_CHARS])
