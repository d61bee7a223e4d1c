"""Run a few jobs at once in processes of this machine, and queue the others in order."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from suture.core.ledger import RunFolder
from suture.errors import StorageError, SutureError
from suture.interfaces.jobs.job import INSPECTION_KINDS, Job, JobEnd, job_end_from_error
from suture.interfaces.jobs.job_journal import JobJournal
from suture.interfaces.jobs.job_process import JobProcess, run_spend
from suture.interfaces.jobs.job_registry import CANCELLED, JobRegistry

log = logging.getLogger("suture.interfaces.jobs")


class LocalJobPool(JobRegistry):
    """Runs jobs, a few at once. All methods must be called in one event loop.

    Args:
        at_once: The maximum number of processes.
        queue: The maximum number of waiting jobs.
    """

    def __init__(
        self, journal: JobJournal, home: Path, flags: Mapping[str, object], *, at_once: int, queue: int
    ) -> None:
        super().__init__()
        self._journal = journal
        self._home = home
        self._flags = flags
        self._at_once = at_once
        self._max_waiting = queue
        self._waiting: deque[Job] = deque()
        self._processes: dict[str, JobProcess] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._stopping: set[str] = set()

    def recover(self) -> list[Job]:
        """Queue the unfinished jobs of an earlier server; return them."""
        unfinished = []
        for job in self._journal.jobs():
            self._jobs[job.id] = job
            end = self._journal.load_end(job)
            if end is None and self._journal.is_stop_requested(job):
                end = self._record_end(job, CANCELLED)
            # Who waited for the answer is gone with the connection, and a replay costs nothing to ask for again.
            elif end is None and job.kind in (*INSPECTION_KINDS, "replay"):
                error = "the server was stopped before this was done"
                interrupted_end = JobEnd(exit_code=6, error=error, remedy="ask for it again")
                end = self._record_end(job, interrupted_end)
            if end is None:
                self._journal.remove_end(job)
                unfinished.append(job)
            else:
                self._ends[job.id] = end
        self._waiting.extend(unfinished)
        self._start_waiting_jobs()
        return unfinished

    def submit(self, job: Job) -> Job:
        """Store a job on disk and queue it.

        Raises:
            QueueFull: Too many jobs are waiting.
            StorageError: The disk is full or not available.
        """
        self._require_open()
        if len(self._tasks) >= self._at_once:
            self._require_queue_space(self._max_waiting)
        self._journal.write(job)
        self._jobs[job.id] = job
        self._waiting.append(job)
        self._start_waiting_jobs()
        return job

    def cancel(self, job: Job) -> None:
        """Stop a job that is waiting or running; an ended job is not changed."""
        if job.id in self._ends:
            return
        self._stopping.add(job.id)
        try:
            self._journal.request_stop(job)
        except StorageError as fault:  # it stops, but a later server would continue it
            log.warning("the stop of job %s is not recorded: %s", job.id, fault.message)
        if job in self._waiting:
            self._waiting.remove(job)
            self._record_end(job, CANCELLED)
        elif job.id in self._processes:
            self._processes[job.id].stop()

    @property
    def waiting(self) -> tuple[Job, ...]:
        """The waiting jobs, in order."""
        return tuple(self._waiting)

    @property
    def running(self) -> int:
        """The number of running jobs."""
        return len(self._tasks)

    async def close(self) -> None:
        """Stop the running jobs, so that a later server resumes them; waiting jobs stay on disk."""
        self._closed = True
        self._waiting.clear()
        for process in self._processes.values():
            process.stop()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _start_waiting_jobs(self) -> None:
        while self._waiting and len(self._tasks) < self._at_once and not self._closed:
            job = self._waiting.popleft()
            self._tasks[job.id] = asyncio.get_running_loop().create_task(self._execute(job))

    async def _execute(self, job: Job) -> None:
        """Execute a job; whatever happens, it gets an end, unless it stopped together with the server."""
        try:
            end = await self._run_process(job)
        except Exception as fault:
            end = job_end_from_error(fault)
            is_bug = not isinstance(fault, OSError | SutureError)
            log.error("job %s cannot be executed: %s", job.id, end.error, exc_info=is_bug)
        finally:
            self._processes.pop(job.id, None)
            self._tasks.pop(job.id, None)
        if end is not None:
            tokens, seconds = run_spend(RunFolder(self._home / "runs" / job.run))
            self._record_end(job, replace(end, tokens=tokens, seconds=max(seconds, end.seconds)))
        self._start_waiting_jobs()

    async def _run_process(self, job: Job) -> JobEnd | None:
        """Return how a job ended; `None` if it was stopped together with the server, and a later one resumes it."""
        process = await JobProcess.start(
            job,
            self._flags,
            end_path=self._journal.end_path(job),
            log_path=self._journal.log_path(job),
            cwd=self._journal.empty_folder,
        )
        self._processes[job.id] = process
        if self._closed or job.id in self._stopping:
            process.stop()  # the stop was requested while the process started
        end = await process.ended()
        if end.fault == "ProcessDied" and job.id in self._stopping:
            # The signal came too early, or the process did not stop in time and was killed.
            end = CANCELLED
        # While the server runs, `cancelled` without a stop request means that a person aborted the run
        # through an answer. That end is recorded.
        is_interrupted = self._closed and (end.cancelled or end.fault == "ProcessDied")
        return None if is_interrupted and job.id not in self._stopping else end

    def _record_end(self, job: Job, end: JobEnd) -> JobEnd:
        """Make the end of a job known. If it cannot be stored, a later server executes the job again."""
        end = replace(end, ended_s=time.time())
        try:
            self._journal.write_end(job, end)
            if end.fault != "ProcessDied":
                self._journal.log_path(job).unlink(missing_ok=True)
        except (StorageError, OSError) as fault:
            log.warning("the end of job %s is not recorded: %s", job.id, fault)
        self._ends[job.id] = end
        self._notify()
        return end
