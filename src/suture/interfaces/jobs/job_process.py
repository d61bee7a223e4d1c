"""A job in its own process, which ends with the process that started it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from suture.core.ledger import Event, RunFolder, follow_ledger, new_run_id, read_ledger
from suture.core.safe_files import read_regular_file
from suture.errors import StorageError
from suture.interfaces.jobs.job import Job, JobEnd, JobFailed, JobKind, job_as_json, job_end_from_json
from suture.interfaces.jobs.tuning import (
    FINAL_EVENTS_TIMEOUT_S,
    LEDGER_POLL_S,
    MAX_END_BYTES,
    MAX_LOG_TAIL_BYTES,
    STOP_TIMEOUT_S,
)

EventHandler = Callable[[Event], Awaitable[None]]


class JobProcess:
    """A process that executes a job. Its stdin stays open, so that it ends when this process ends."""

    def __init__(self, process: asyncio.subprocess.Process, end_path: Path, log: Path) -> None:
        self._process = process
        self._end_path = end_path
        self._log = log
        self._stopping: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls, job: Job, flags: Mapping[str, object], *, end_path: Path, log: Path, cwd: Path
    ) -> JobProcess:
        """Start the process.

        Args:
            job: The job.
            flags: Settings by dotted key; the job's own take precedence.
            end_path: The file to which the process writes the job's end.
            log: The file for its stdout and stderr.
            cwd: The working folder; an empty folder for jobs without a project.
        """
        with log.open("wb") as words:
            # Its own session, because Ctrl-C is for the server, which stops its jobs itself.
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-m",
                "suture.interfaces.jobs.job_main",
                stdin=asyncio.subprocess.PIPE,
                stdout=words,
                stderr=words,
                cwd=cwd,
                start_new_session=True,
            )
        order = {
            "job": job_as_json(job),
            "flags": {**flags, **job.flags},
            "end": str(end_path),
            "parent": os.getpid(),
        }
        assert process.stdin is not None
        with suppress(ConnectionError):  # it died before reading; `ended` reports it
            process.stdin.write(json.dumps(order).encode() + b"\n")
            await process.stdin.drain()
        return cls(process, end_path, log)

    async def ended(self) -> JobEnd:
        """Wait for the process and return how the job ended."""
        status = await self._process.wait()
        if self._stopping is not None:
            self._stopping.cancel()
        content = read_regular_file(self._end_path, MAX_END_BYTES)
        if content is not None:
            with suppress(ValueError, StorageError):
                return job_end_from_json(json.loads(content))
        how = f"signal {-status}" if status < 0 else f"exit code {status}"
        words = self._log_tail()
        return JobEnd(exit_code=6, error=f"the run's process died ({how}){words}", fault="ProcessDied")

    def stop(self) -> None:
        """Ask the process to stop; it is killed if it does not stop in time."""
        if self._stopping is None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGINT)
            self._stopping = asyncio.get_running_loop().create_task(self._kill_after_timeout())

    async def _kill_after_timeout(self) -> None:
        await asyncio.sleep(STOP_TIMEOUT_S)
        with suppress(ProcessLookupError):
            self._process.kill()

    def _log_tail(self) -> str:
        content = (read_regular_file(self._log, 2**20) or b"")[-MAX_LOG_TAIL_BYTES:]
        last = content.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return f": {last}" if last else ""


async def start_standalone_job(
    job: Job, flags: Mapping[str, object]
) -> tuple[JobProcess, tempfile.TemporaryDirectory[str]]:
    """Start a job without a journal; the caller must remove the returned folder."""
    folder = tempfile.TemporaryDirectory(prefix="suture-job-")
    workspace = Path(folder.name)
    here = workspace / "here"
    here.mkdir()
    process = await JobProcess.start(
        job, flags, end_path=workspace / "end.json", log=workspace / "log", cwd=here
    )
    return process, folder


async def run_standalone_job(
    home: Path,
    kind: JobKind,
    request: Mapping[str, Any],
    on_event: EventHandler,
    *,
    run: str = "",
    flags: Mapping[str, object] | None = None,
    job_flags: Mapping[str, object] | None = None,
) -> tuple[RunFolder, JobEnd]:
    """Run a job to its end for one caller; if the caller is cancelled, the job is stopped cleanly first.

    Args:
        home: The folder of all runs.
        kind: What to do.
        request: The arguments.
        on_event: Called with each event of the run; an exception ends the forwarding, not the run.
        run: The run that the job is about; by default a new one.
        flags: Settings from the server's command line.
        job_flags: Settings of this job; they take precedence.

    Returns:
        The run's folder, and how the job ended.

    Raises:
        JobFailed: The job ended with an error.
    """
    new = run or new_run_id()
    folder = RunFolder(home / "runs" / new)
    job = Job(id=new, run=new, kind=kind, request=request, flags=job_flags or {}, created_s=time.time())
    known_events = len(read_ledger(folder.ledger_path).events) if folder.ledger_path.is_file() else 0
    process, workspace = await start_standalone_job(job, flags or {})
    forwarder = _EventForwarder(folder.ledger_path, known_events, on_event)
    forwarding = asyncio.create_task(forwarder.forward_all())
    try:
        end = await process.ended()
        with suppress(TimeoutError):
            async with asyncio.timeout(FINAL_EVENTS_TIMEOUT_S):
                await forwarder.wait_until_forwarded(forwarding)
    except asyncio.CancelledError:
        process.stop()
        await process.ended()
        raise
    finally:
        forwarding.cancel()
        await asyncio.wait([forwarding])
        if not forwarding.cancelled():
            forwarding.exception()  # retrieved, so that asyncio does not log it; the run is not affected
        workspace.cleanup()
    if end.error:
        raise JobFailed(end)
    return folder, end


class _EventForwarder:
    """Forwards the events of a run that are written after the known ones."""

    def __init__(self, ledger: Path, known_events: int, on_event: EventHandler) -> None:
        self._ledger, self._known, self._on_event = ledger, known_events, on_event
        self._forwarded = known_events

    async def forward_all(self) -> None:
        """Forward every event from now on, until the run ends."""
        while not self._ledger.is_file():  # noqa: ASYNC110  # another process creates it
            await asyncio.sleep(LEDGER_POLL_S)
        async for event in follow_ledger(
            self._ledger, poll_interval_s=LEDGER_POLL_S, known_events=self._known
        ):
            if event.seq >= self._known:
                await self._on_event(event)
            self._forwarded = max(self._forwarded, event.seq + 1)

    async def wait_until_forwarded(self, forwarding: asyncio.Task[None]) -> None:
        """Wait until every event written so far has been forwarded, or forwarding has stopped."""
        written = len(read_ledger(self._ledger).events) if self._ledger.is_file() else 0
        while self._forwarded < written and not forwarding.done():  # noqa: ASYNC110  # another task forwards them
            await asyncio.sleep(LEDGER_POLL_S)
