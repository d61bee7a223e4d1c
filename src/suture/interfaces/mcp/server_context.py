"""What the server works with, and which folders a client may name."""

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
from suture.errors import SutureError
from suture.interfaces.jobs import JobEnd, JobFailed, JobKind
from suture.interfaces.jobs.job_process import run_standalone_job
from suture.interfaces.narrative.event_text import render_event


@dataclass(frozen=True, kw_only=True)
class ServerContext:
    """What the server works with.

    Attributes:
        settings: Its own.
        flags: Those of them that were said on the command line, for the processes of its runs.
        roots: Folders in which projects may be healed, where the client names none of its own.
    """

    settings: Settings
    flags: Mapping[str, object]
    roots: tuple[Path, ...] = ()

    @property
    def home(self) -> Path:
        """Where runs are kept."""
        return self.settings.paths.home


def tool_error(fault: SutureError) -> ToolError:
    """A fault of ours as the protocol has it: in the command line's words, with the remedy."""
    return ToolError(f"{fault.message}; try: {fault.remedy}" if fault.remedy else fault.message)


def folder_from_uri(uri: str) -> Path | None:
    """The folder that a `file:` address names; `None` where it names none of this machine."""
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    return Path(unquote(parts.path))


def require_allowed_folder(path: str, roots: Sequence[Path]) -> Path:
    """A folder that a client may have healed, without links on the way to it.

    Args:
        path: As the client names it.
        roots: The folders that it may name folders of.

    Raises:
        ToolError: It lies below none of them. Whether it is there is not told.
    """
    try:
        real = Path(path).resolve(strict=True)
        bases = [root.expanduser().resolve() for root in roots]
    except (OSError, ValueError, RuntimeError):
        bases = []
    if (
        not Path(path).is_absolute()
        or not any(real.is_relative_to(base) for base in bases)
        or not real.is_dir()
    ):
        fault = f"{path!r:.200} is no folder below an allowed root"
        if not roots:
            way = "have the client name its roots, or start the server as `suture mcp --root FOLDER`"
            raise ToolError(f"{fault}: there are none; try: {way}")
        raise ToolError(f"{fault}; try: the whole path of one below: {', '.join(map(str, roots))}")
    return real


MOST_CHARS = 300
"""Of a line of progress."""


async def run_tool_job(
    door: ServerContext,
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
        line = render_event(event)
        if line is not None:
            await context.report_progress(event.seq + 1, None, line[:MOST_CHARS])

    # A task of its own: the SDK cancels a call again and again, and the run is to be written down first.
    work = asyncio.create_task(
        run_standalone_job(door.home, kind, request, report, run=run, flags=door.flags, chosen=flags)
    )
    try:
        return await asyncio.shield(work)
    except JobFailed as fault:
        raise tool_error(fault) from fault
    except asyncio.CancelledError:
        work.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([work])
        raise
