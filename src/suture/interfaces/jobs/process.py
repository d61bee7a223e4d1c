"""One job in a process of its own, which ends with the process that started it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from suture.core.safe_files import read_plain
from suture.errors import StorageError
from suture.interfaces.jobs.job import Job, JobEnd, end_of_json, job_as_json

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
                *(sys.executable, "-P", "-m", "suture.interfaces.jobs.child"),
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
                return end_of_json(json.loads(content))
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


async def job_alone(
    job: Job, flags: Mapping[str, object]
) -> tuple[JobProcess, tempfile.TemporaryDirectory[str]]:
    """Start a job that nobody keeps a journal of; the folder is its own, and the caller's to remove."""
    folder = tempfile.TemporaryDirectory(prefix="suture-job-")
    place = Path(folder.name)
    here = place / "here"
    here.mkdir()
    process = await JobProcess.start(job, flags, end_path=place / "end.json", log=place / "log", cwd=here)
    return process, folder
