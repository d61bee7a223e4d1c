"""The interface of the two job pools, and what they share: which jobs exist, their ends, and each caller's usage."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable

from suture.errors import UsageError
from suture.interfaces.jobs.job import INSPECTION_KINDS, Job, JobEnd
from suture.interfaces.jobs.tuning import RETRY_AFTER_S

DAY_S = 86_400.0
"""Seconds of a day, the period for which a caller's usage is limited."""
CANCELLED = JobEnd(exit_code=130, error="cancelled", fault="Cancelled")
"""The end of a job that its caller cancelled."""
_NOTIFICATIONS: set[asyncio.Task[None]] = set()
"""Tasks that no code awaits; the event loop itself holds only weak references to them."""


class QueueFull(UsageError):
    """No more jobs are accepted at the moment.

    Args:
        message: The reason.
        retry_after_s: Seconds after which retrying makes sense.
        remedy: What else the caller can do.
    """

    def __init__(self, message: str, *, retry_after_s: float, remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.retry_after_s = retry_after_s


class RunBusy(UsageError):
    """Another job, possibly of another server, is working on the run."""


class JobRegistry(ABC):
    """The base class of job pools: it knows all jobs and their ends.

    All methods must be called in one event loop.
    """

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._ends: dict[str, JobEnd] = {}
        self._changed = asyncio.Condition()
        self._closed = False

    @abstractmethod
    def recover(self) -> list[Job]:
        """Make sure that unfinished jobs of an earlier server are executed; return them."""

    @abstractmethod
    def submit(self, job: Job) -> Job:
        """Store a job and make sure that it is executed; return the stored job.

        The stored job can be an earlier one with the same idempotency key.
        """

    @abstractmethod
    def cancel(self, job: Job) -> None:
        """Stop a job that is waiting or running; an ended job is not changed."""

    @abstractmethod
    async def close(self) -> None:
        """Release all jobs; unfinished ones continue, or a later server resumes them."""

    @property
    @abstractmethod
    def waiting(self) -> tuple[Job, ...]:
        """The waiting jobs, in order."""

    @property
    @abstractmethod
    def running(self) -> int:
        """The number of running jobs."""

    def end_of(self, job: Job) -> JobEnd | None:
        """Return how a job ended, or `None` if it has not."""
        return self._ends.get(job.id)

    def find_job(self, job_id: str) -> Job | None:
        """Return the job with this id."""
        return self._jobs.get(job_id)

    def has_run_folder(self, job: Job) -> bool:
        """Return whether the job's run is in this machine's home as far as it has gone."""
        return job.id in self._jobs

    def find_active_job(self, run: str) -> Job | None:
        """Return the unfinished job that creates or continues a run."""
        return next(
            (job for job in self.unfinished() if job.run == run and job.kind not in INSPECTION_KINDS), None
        )

    def find_last_job(self, run: str) -> Job | None:
        """Return the newest job that created or continued a run."""
        newest_first = reversed(self._jobs.values())
        return next(
            (job for job in newest_first if job.run == run and job.kind not in INSPECTION_KINDS), None
        )

    def find_owner(self, run: str) -> str:
        """Return the caller who started a run; empty if no request to a server started it.

        A caller who continues a run of somebody else does not become its owner.
        """
        creating_job = self._jobs.get(run)  # a new run has the id of its job
        return creating_job.caller if creating_job is not None else ""

    def find_by_key(self, caller: str, key: str) -> Job | None:
        """Return the newest job that a caller submitted with this idempotency key."""
        if not key:
            return None
        newest_first = reversed(self._jobs.values())
        return next((job for job in newest_first if (job.caller, job.key) == (caller, key)), None)

    def ends(self) -> Iterable[tuple[Job, JobEnd]]:
        """Yield every ended job with its end."""
        return ((self._jobs[job_id], end) for job_id, end in self._ends.items())

    def usage_of(self, caller: str) -> tuple[int, float]:
        """Return the tokens and seconds that a caller's jobs of the last day have used or may still use."""
        since_s = time.time() - DAY_S
        tokens: dict[str, int] = {}
        seconds: dict[str, float] = {}
        for job in self._jobs.values():
            if job.caller != caller or job.created_s < since_s:
                continue
            spender = self._ends.get(job.id, job)  # an unfinished job may still use all that it reserved
            tokens[job.run] = max(
                spender.tokens, tokens.get(job.run, 0)
            )  # a run that was resumed counts once
            seconds[job.run] = max(spender.seconds, seconds.get(job.run, 0.0))
        return sum(tokens.values()), sum(seconds.values())

    def unfinished(self) -> list[Job]:
        """Return the jobs that are waiting or running."""
        return [job for job in self._jobs.values() if job.id not in self._ends]

    async def ended(self, job: Job) -> JobEnd:
        """Wait until a job has ended."""
        async with self._changed:
            await self._changed.wait_for(lambda: job.id in self._ends)
        return self._ends[job.id]

    def _require_open(self) -> None:
        if self._closed:
            raise QueueFull("the server is being stopped", retry_after_s=RETRY_AFTER_S)

    def _require_queue_space(self, max_waiting: int) -> None:
        if len(self.waiting) >= max_waiting:
            raise QueueFull(
                f"{len(self.waiting)} jobs are already waiting",
                retry_after_s=RETRY_AFTER_S,
                remedy="retry later, or increase the server's setting serve.queue",
            )

    def _notify(self) -> None:
        async def notify() -> None:
            async with self._changed:
                self._changed.notify_all()

        task = asyncio.get_running_loop().create_task(notify())
        _NOTIFICATIONS.add(task)
        task.add_done_callback(_NOTIFICATIONS.discard)
