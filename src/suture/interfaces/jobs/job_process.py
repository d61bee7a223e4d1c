"""Run a job in a process of its own, which ends together with the process that started it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from suture.core.ledger import Event, RunFolder, follow_ledger, new_run_id, read_ledger, total_spend
from suture.core.safe_files import read_regular_file
from suture.core.temporary_folders import temporary_folder
from suture.errors import StorageError
from suture.interfaces.jobs.job import Job, JobEnd, JobFailed, JobKind, job_as_json, job_end_from_json
from suture.interfaces.jobs.tuning import (
    FINAL_EVENTS_TIMEOUT_S,
    LEDGER_POLL_S,
    MAX_END_BYTES,
    MAX_LOG_BYTES,
    MAX_LOG_TAIL_BYTES,
    STOP_TIMEOUT_S,
)

EventHandler = Callable[[Event], Awaitable[None]]
"""Called with each event of a run."""


class JobProcess:
    """A process that executes a job.

    The write end of its stdin stays open here: the process exits when the pipe breaks (see `job_main`).
    """

    def __init__(self, process: asyncio.subprocess.Process, end_path: Path, log_path: Path) -> None:
        self._process = process
        self._end_path = end_path
        self._log_path = log_path
        self._kill_task: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls, job: Job, flags: Mapping[str, object], *, end_path: Path, log_path: Path, cwd: Path
    ) -> JobProcess:
        """Start the process.

        Args:
            flags: Settings by dotted key; the job's own take precedence.
            end_path: The file to which the process writes the job's end.
            log_path: The file for its stdout and stderr.
            cwd: An empty folder, whose settings cannot affect the job.
        """
        with log_path.open("wb") as log_file:
            # Its own session, because Ctrl-C is for the server, which stops its jobs itself.
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",  # modules in the current folder must not shadow others
                "-m",
                "suture.interfaces.jobs.job_main",
                stdin=asyncio.subprocess.PIPE,
                stdout=log_file,
                stderr=log_file,
                cwd=cwd,
                start_new_session=True,
            )
        instructions = {
            "job": job_as_json(job),
            "flags": {**flags, **job.flags},
            "end": str(end_path),
            "parent": os.getpid(),
            "started_s": time.time(),
        }
        assert process.stdin is not None
        try:
            with suppress(ConnectionError):  # it died before reading; `ended` reports it
                process.stdin.write(json.dumps(instructions).encode() + b"\n")
                await process.stdin.drain()
        except BaseException:
            process.kill()  # nobody else knows it
            raise
        return cls(process, end_path, log_path)

    async def ended(self) -> JobEnd:
        """Wait for the process and return how the job ended."""
        status = await self._process.wait()
        if self._kill_task is not None:
            self._kill_task.cancel()
        content = read_regular_file(self._end_path, MAX_END_BYTES)
        if content is not None:
            with suppress(ValueError, StorageError):
                return job_end_from_json(json.loads(content))
        cause = f"signal {-status}" if status < 0 else f"exit code {status}"
        log_tail = (read_regular_file(self._log_path, MAX_LOG_BYTES) or b"")[-MAX_LOG_TAIL_BYTES:]
        last_line = log_tail.decode("utf-8", "replace").strip().rpartition("\n")[2]
        error = f"the run's process died ({cause})" + (f": {last_line}" if last_line else "")
        # 6 is the exit code of an infrastructure error (docs/errors.md).
        return JobEnd(exit_code=6, error=error, fault="ProcessDied")

    def stop(self) -> None:
        """Ask the process to stop; it is killed if it does not stop in time."""
        if self._kill_task is None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGINT)
            self._kill_task = asyncio.get_running_loop().create_task(self._kill_after_timeout())

    async def _kill_after_timeout(self) -> None:
        await asyncio.sleep(STOP_TIMEOUT_S)
        with suppress(ProcessLookupError):
            self._process.kill()


async def start_standalone_job(job: Job, flags: Mapping[str, object]) -> tuple[JobProcess, ExitStack]:
    """Start a job without a journal; closing the returned stack removes the job's folder."""
    workspace = ExitStack()
    folder = workspace.enter_context(temporary_folder("suture-job-"))
    empty_folder = folder / "here"
    empty_folder.mkdir()
    process = await JobProcess.start(
        job, flags, end_path=folder / "end.json", log_path=folder / "log", cwd=empty_folder
    )
    return process, workspace


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
    """Run a job to its end; return the run's folder and how the job ended.

    If the caller is cancelled, the job is stopped cleanly first.

    Args:
        on_event: Called with each event of the run; an exception ends the forwarding, not the run.
        run: The id of the run that the job is about; by default a new one.
        flags: Settings from the server's command line.
        job_flags: Settings of this job; they take precedence.

    Raises:
        JobFailed: The job ended with an error.
    """
    run = run or new_run_id()
    folder = RunFolder(home / "runs" / run)
    job = Job(id=run, run=run, kind=kind, request=request, flags=job_flags or {}, created_s=time.time())
    known_events = len(read_ledger(folder.ledger_path).events) if folder.ledger_path.is_file() else 0
    process, workspace = await start_standalone_job(job, flags or {})
    forwarder = _EventForwarder(folder.ledger_path, known_events, on_event)
    forward_task = asyncio.create_task(forwarder.forward_all())
    try:
        end = await process.ended()
        with suppress(TimeoutError):
            async with asyncio.timeout(FINAL_EVENTS_TIMEOUT_S):
                await forwarder.wait_until_forwarded(forward_task)
    except asyncio.CancelledError:
        process.stop()
        await process.ended()
        raise
    finally:
        forward_task.cancel()
        await asyncio.wait([forward_task])
        if not forward_task.cancelled():
            forward_task.exception()  # retrieved, so that asyncio does not log it; the run is not affected
        workspace.close()
    if end.error:
        raise JobFailed(end)
    return folder, end


class _EventForwarder:
    """Calls a handler with the events of a run that are written after the known ones."""

    def __init__(self, ledger: Path, known_events: int, on_event: EventHandler) -> None:
        self._ledger, self._known_events, self._on_event = ledger, known_events, on_event
        self._forwarded_events = known_events

    async def forward_all(self) -> None:
        """Forward every event from now on, until the run ends."""
        while not self._ledger.is_file():  # noqa: ASYNC110  # another process creates it
            await asyncio.sleep(LEDGER_POLL_S)
        async for event in follow_ledger(
            self._ledger, poll_interval_s=LEDGER_POLL_S, known_events=self._known_events
        ):
            if event.seq >= self._known_events:
                await self._on_event(event)
            self._forwarded_events = max(self._forwarded_events, event.seq + 1)

    async def wait_until_forwarded(self, forward_task: asyncio.Task[None]) -> None:
        """Wait until every event written so far has been forwarded, or forwarding has stopped."""
        written_events = len(read_ledger(self._ledger).events) if self._ledger.is_file() else 0
        while self._forwarded_events < written_events and not forward_task.done():  # noqa: ASYNC110  # the task forwards them
            await asyncio.sleep(LEDGER_POLL_S)


def run_spend(folder: RunFolder) -> tuple[int, float]:
    """Return the tokens and seconds that a run has used by its ledger; zero if there is no run."""
    try:
        spend = total_spend(read_ledger(folder.ledger_path).events)
    except (StorageError, OSError):
        return 0, 0.0
    return spend.tokens, spend.seconds
