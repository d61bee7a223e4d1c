"""Some jobs at once, the others in the order in which they were asked for."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from suture.core.ledger import RunFolder
from suture.interfaces.jobs.job import Job, JobEnd
from suture.interfaces.jobs.job_execution import run_spend
from suture.interfaces.jobs.job_journal import JobJournal
from suture.interfaces.jobs.job_process import JobProcess
from suture.interfaces.jobs.job_registry import CANCELLED, JobRegistry


class LocalJobPool(JobRegistry):
    """Does jobs, a few at once. All methods are for the one event loop that it works in.

    Args:
        journal: Where jobs are kept.
        home: Where runs are kept.
        flags: Settings for every job, by their dotted key.
        at_once: The most processes.
        queue: The most jobs that wait.
    """

    def __init__(
        self, journal: JobJournal, home: Path, flags: Mapping[str, object], *, at_once: int, queue: int
    ) -> None:
        super().__init__()
        self._journal = journal
        self._home = home
        self._flags = flags
        self._at_once = at_once
        self._most_waiting = queue
        self._waiting: deque[Job] = deque()
        self._processes: dict[str, JobProcess] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def take_up(self) -> list[Job]:
        """Queue what an earlier server has left undone; answers that.

        Raises:
            StorageError: A job's file is damaged.
        """
        left = []
        for job in self._journal.jobs():
            self._jobs[job.id] = job
            end = self._journal.end_of(job)
            if end is None and self._journal.asked_to_stop(job):
                end = self._journal.write_end(job, CANCELLED)
            elif end is None and job.kind in ("verify", "replay"):  # whoever waited for it waits no more
                error = "the server was stopped before this was done"
                end = self._journal.write_end(
                    job, JobEnd(exit_code=6, error=error, remedy="ask for it again")
                )
            if end is None:
                self._journal.forget(job)
                left.append(job)
            else:
                self._ends[job.id] = end
        self._waiting.extend(left)
        self._fill()
        return left

    def submit(self, job: Job) -> Job:
        """Keep a job on disk and queue it.

        Raises:
            QueueFull: Too many wait already.
            StorageError: The disk is full or gone.
        """
        self._require_open()
        if len(self._tasks) >= self._at_once:
            self._require_room(self._most_waiting)
        self._journal.write(job)
        self._jobs[job.id] = job
        self._waiting.append(job)
        self._fill()
        return job

    def cancel(self, job: Job) -> None:
        """Stop a job that waits or is being done; one that has ended is left alone."""
        if job.id in self._ends:
            return
        self._journal.ask_to_stop(job)
        if job in self._waiting:
            self._waiting.remove(job)
            self._ends[job.id] = self._journal.write_end(job, CANCELLED)
            self._tell()
        elif job.id in self._processes:
            self._processes[job.id].stop()

    @property
    def waiting(self) -> tuple[Job, ...]:
        """The jobs that wait, in their order."""
        return tuple(self._waiting)

    @property
    def running(self) -> int:
        """How many are being done."""
        return len(self._tasks)

    async def close(self) -> None:
        """Stop what is being done, so that a later server goes on with it; what waits stays on disk."""
        self._closed = True
        self._waiting.clear()
        for process in self._processes.values():
            process.stop()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _fill(self) -> None:
        while self._waiting and len(self._tasks) < self._at_once and not self._closed:
            job = self._waiting.popleft()
            self._tasks[job.id] = asyncio.get_running_loop().create_task(self._carry_out(job))

    async def _carry_out(self, job: Job) -> None:
        try:
            process = await JobProcess.start(
                job,
                self._flags,
                end_path=self._journal.end_path(job),
                log=self._journal.log_path(job),
                cwd=self._journal.here,
            )
            self._processes[job.id] = process
            if self._closed or self._journal.asked_to_stop(job):
                process.stop()  # it was told while it started
            end = await process.ended()
            wanted = self._journal.asked_to_stop(job)
            if end.fault == "ProcessDied" and wanted:
                end = CANCELLED  # it was told before it could hear, or did not obey and was killed
            # A person may abort a run by an answer: that is its own end, and no stop of the server's.
            if not wanted and self._closed and (end.cancelled or end.fault == "ProcessDied"):
                return  # stopped with the server; a later one goes on with it
            tokens, seconds = run_spend(RunFolder(self._home / "runs" / job.run))
            end = self._journal.write_end(job, replace(end, tokens=tokens, seconds=seconds))
            if end.fault != "ProcessDied":
                self._journal.log_path(job).unlink(missing_ok=True)
            self._ends[job.id] = end
        finally:
            self._processes.pop(job.id, None)
            self._tasks.pop(job.id, None)
            self._fill()
            self._tell()
