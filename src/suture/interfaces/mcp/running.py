"""One run for one call: its progress, and its end, also where the client takes the call back."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import anyio
from mcp.server.mcpserver import Context

from suture.core.ledger import Event, RunFolder
from suture.interfaces.jobs import JobEnd, JobFailed, JobKind
from suture.interfaces.jobs.alone import run_alone
from suture.interfaces.mcp.door import Door, refused
from suture.interfaces.narrative.event_text import tell

MOST_CHARS = 300
"""Of a line of progress."""


async def run_job(
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

    async def report(event: Event) -> None:
        line = tell(event)
        if line is not None:
            await context.report_progress(event.seq + 1, None, line[:MOST_CHARS])

    # A task of its own: the SDK cancels a call again and again, and the run is to be written down first.
    work = asyncio.create_task(
        run_alone(door.home, kind, request, report, run=run, flags=door.flags, chosen=flags)
    )
    try:
        return await asyncio.shield(work)
    except JobFailed as fault:
        raise refused(fault) from fault
    except asyncio.CancelledError:
        work.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([work])
        raise
