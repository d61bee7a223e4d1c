"""One job in a process of its own, which ends with the process that started it."""

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
from suture.core.safe_files import read_plain
from suture.errors import StorageError
from suture.interfaces.jobs.job import Job, JobEnd, JobFailed, JobKind, job_as_json, job_end_from_json

WINDING_UP_S = 30.0
"""How long a process that was told to stop may take to write down where it was."""
MOST_END_BYTES = 64 * 2**20
LAST_WORDS_BYTES = 2000


class JobProcess:
    """A process that does a job. Its stdin stays open: it ends when we do, however we end."""

    def __init__(self, process: asyncio.subprocess.Process, end_path: Path, log: Path) -> None:
        self._process = process
        self._end_path = end_path
        self._log = log
        self._stopping: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls, job: Job, flags: Mapping[str, object], *, end_path: Path, log: Path, cwd: Path
    ) -> JobProcess:
        """Start a job.

        Args:
            job: What is to be done.
            flags: Settings by their dotted key; the job's own beat them.
            end_path: The file that it writes its end to.
            log: The file that its stdout and stderr go to.
            cwd: Where it works; for what is about no project, an empty folder.
        """
        with log.open("wb") as words:
            # A session of its own: Ctrl-C is for the server, which tells its jobs itself.
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "suture.interfaces.jobs.job_main"),
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
        with suppress(ConnectionError):  # it died before it read; its end will tell
            process.stdin.write(json.dumps(order).encode() + b"\n")
            await process.stdin.drain()
        return cls(process, end_path, log)

    async def ended(self) -> JobEnd:
        """Wait for it, and say how the job ended."""
        status = await self._process.wait()
        if self._stopping is not None:
            self._stopping.cancel()
        content = read_plain(self._end_path, MOST_END_BYTES)
        if content is not None:
            with suppress(ValueError, StorageError):
                return job_end_from_json(json.loads(content))
        how = f"signal {-status}" if status < 0 else f"exit code {status}"
        words = self._last_words()
        return JobEnd(exit_code=6, error=f"the run's process died ({how}){words}", fault="ProcessDied")

    def stop(self) -> None:
        """Tell it to stop; where it does not, it is killed."""
        if self._stopping is None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGINT)
            self._stopping = asyncio.get_running_loop().create_task(self._insist())

    async def _insist(self) -> None:
        await asyncio.sleep(WINDING_UP_S)
        with suppress(ProcessLookupError):
            self._process.kill()

    def _last_words(self) -> str:
        content = (read_plain(self._log, 2**20) or b"")[-LAST_WORDS_BYTES:]
        last = content.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return f": {last}" if last else ""


async def start_standalone_job(
    job: Job, flags: Mapping[str, object]
) -> tuple[JobProcess, tempfile.TemporaryDirectory[str]]:
    """Start a job that nobody keeps a journal of; the folder is its own, and the caller's to remove."""
    folder = tempfile.TemporaryDirectory(prefix="suture-job-")
    place = Path(folder.name)
    here = place / "here"
    here.mkdir()
    process = await JobProcess.start(job, flags, end_path=place / "end.json", log=place / "log", cwd=here)
    return process, folder


LOOK_EVERY_S = 0.1
"""Seconds between two looks at the ledger of the run: a person watches."""
LAST_WORDS_S = 5.0
"""How long a run's last steps may take to be told, once it has ended."""

Tell = Callable[[Event], Awaitable[None]]


async def run_standalone_job(
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
    process, place = await start_standalone_job(job, flags or {})
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
