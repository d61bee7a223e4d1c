"""The server's settings, the folders that clients may name, and running a job for a tool call."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import anyio
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError

from suture.core.ledger import Event, RunFolder
from suture.core.settings import Settings
from suture.core.temporary_folders import temporary_folder
from suture.errors import SutureError
from suture.interfaces.jobs import JobEnd, JobFailed, JobKind
from suture.interfaces.jobs.job_process import run_standalone_job
from suture.interfaces.jobs.judge_steps import read_judge_steps
from suture.interfaces.jobs.project_sources import find_allowed_folder
from suture.interfaces.narrative.event_text import render_event
from suture.interfaces.narrative.judgement_text import STEP_TEXTS

MAX_PROGRESS_CHARS = 300
"""Length of a progress line. Chosen by judgement; not measured."""
STEP_POLL_S = 0.2
"""Seconds between two reads of a judgement's steps; a step takes a second or more."""


@dataclass(frozen=True, kw_only=True)
class ServerContext:
    """The configuration of the server.

    Attributes:
        flags: The settings from its command line, for the processes of its runs.
        roots: Folders in which projects may be healed if the client names none of its own.
    """

    settings: Settings
    flags: Mapping[str, object]
    roots: tuple[Path, ...] = ()

    @property
    def home(self) -> Path:
        """The state folder, as the setting `paths.home`."""
        return self.settings.paths.home


def tool_error(fault: SutureError) -> ToolError:
    """Return Suture's error as a tool error, with the message and remedy of the command line."""
    return ToolError(f"{fault.message}; try: {fault.remedy}" if fault.remedy else fault.message)


def folder_from_uri(uri: str) -> Path | None:
    """Return the folder of a `file:` URI, or `None` if it is not a folder of this machine."""
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    return Path(unquote(parts.path))


def require_allowed_folder(path: str, roots: Sequence[Path]) -> Path:
    """Return a folder that a client may have healed, with symbolic links resolved.

    Raises:
        ToolError: It is below none of them. The message does not say whether the folder exists.
    """
    folder = find_allowed_folder(path, roots)
    if folder is not None:
        return folder
    problem = f"{path!r:.200} is not a folder below an allowed root"
    if not roots:
        remedy = "let the client name its roots, or start the server with `suture mcp --root FOLDER`"
        raise ToolError(f"{problem}: there are none; try: {remedy}")
    raise ToolError(f"{problem}; try: an absolute path below one of: {', '.join(map(str, roots))}")


async def run_tool_job(
    context: ServerContext,
    call: Context[Any, Any],
    kind: JobKind,
    request: Mapping[str, Any],
    *,
    run: str = "",
    flags: Mapping[str, Any] | None = None,
) -> tuple[RunFolder, JobEnd]:
    """Run a job to its end and report each step to the client; cancelling the call stops the job.

    Args:
        call: The tool call, which receives the progress.
        run: The id of the run that the job is about; by default a new one.
        flags: Settings of this job alone.
    """

    async def report(event: Event) -> None:
        line = render_event(event)
        if line is not None:
            await call.report_progress(event.seq + 1, None, line[:MAX_PROGRESS_CHARS])

    # A task of its own, because the SDK cancels a call repeatedly, and the run must be recorded first.
    job_task = asyncio.create_task(
        run_standalone_job(context.home, kind, request, report, run=run, flags=context.flags, job_flags=flags)
    )
    try:
        return await asyncio.shield(job_task)
    except JobFailed as fault:
        raise tool_error(fault) from fault
    except asyncio.CancelledError:
        job_task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([job_task])
        raise


async def run_judge_job(
    context: ServerContext, call: Context[Any, Any], request: Mapping[str, Any], flags: Mapping[str, Any]
) -> tuple[str, JobEnd]:
    """Judge a change in a process of its own, and report each step to the client; return its id and its end."""
    with temporary_folder("suture-judge-") as folder:
        steps = folder / "steps"
        forward_task = asyncio.create_task(_forward_steps(steps, call))
        try:
            job, end = await run_tool_job(
                context, call, "judge", {**request, "steps": str(steps)}, flags=flags
            )
        finally:
            forward_task.cancel()
            await asyncio.wait([forward_task])
            if not forward_task.cancelled():
                forward_task.exception()  # retrieved, so that asyncio does not log it; the verdict stands
    return job.id, end


async def _forward_steps(path: Path, call: Context[Any, Any]) -> None:
    """Report each step in a file as soon as it is there."""
    reported = 0
    while True:
        steps = read_judge_steps(path)
        for step in steps[reported:]:
            reported += 1
            await call.report_progress(reported, len(STEP_TEXTS), STEP_TEXTS[step])
        await asyncio.sleep(STEP_POLL_S)
