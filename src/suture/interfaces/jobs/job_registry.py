"""What is known of jobs, whoever does them: which there are, how each stands, what a caller has used."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable

from suture.errors import UsageError
from suture.interfaces.jobs.job import Job, JobEnd

RETRY_AFTER_S = 5
"""Seconds that a refused caller is told to wait."""
DAY_S = 86_400.0
CANCELLED = JobEnd(exit_code=130, error="cancelled", fault="Cancelled")


class QueueFull(UsageError):
    """No more can be asked for now.

    Args:
        message: Why.
        retry_after_s: When it is worth asking again.
        remedy: What else the caller can do.
    """

    def __init__(self, message: str, *, retry_after_s: float, remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.retry_after_s = retry_after_s


class RunBusy(UsageError):
    """Another job, maybe of another server, works on the run."""


class JobRegistry(ABC):
    """Jobs and their ends. All methods are for the one event loop that it works in."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._ends: dict[str, JobEnd] = {}
        self._changed = asyncio.Condition()
        self._closed = False

    @abstractmethod
    def take_up(self) -> list[Job]:
        """See that what an earlier server has left undone is done; answers that."""

    @abstractmethod
    def submit(self, job: Job) -> Job:
        """Keep a job, and see that it is done; answers the one that is kept, which may be an earlier one."""

    @abstractmethod
    def cancel(self, job: Job) -> None:
        """Stop a job that waits or is being done; one that has ended is left alone."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of all; what is not done goes on, or is gone on with by a later server."""

    @property
    @abstractmethod
    def waiting(self) -> tuple[Job, ...]:
        """The jobs that wait, in their order."""

    @property
    @abstractmethod
    def running(self) -> int:
        """How many are being done."""

    def end_of(self, job: Job) -> JobEnd | None:
        """How it ended; `None` where it has not."""
        return self._ends.get(job.id)

    def holds(self, job: Job) -> bool:
        """Whether its run lies here as far as it has gone."""
        return job.id in self._jobs

    def active(self, run: str) -> Job | None:
        """The job that makes, or goes on with, a run and has not ended."""
        return next((job for job in self.unfinished() if job.run == run and job.kind != "verify"), None)

    def last_of(self, run: str) -> Job | None:
        """The newest job that made, or went on with, a run."""
        found = (job for job in reversed(self._jobs.values()) if job.run == run and job.kind != "verify")
        return next(found, None)

    def asked_as(self, caller: str, key: str) -> Job | None:
        """The job that a caller asked for under this name."""
        if not key:
            return None
        return next((job for job in self._jobs.values() if (job.caller, job.key) == (caller, key)), None)

    def ends(self) -> Iterable[tuple[Job, JobEnd]]:
        """Every job that has ended, with its end."""
        return ((self._jobs[name], end) for name, end in self._ends.items())

    def used_by(self, caller: str) -> tuple[int, float]:
        """Tokens and seconds that a caller's jobs of the last day have used, or may still use."""
        since_s = time.time() - DAY_S
        tokens: dict[str, int] = {}
        seconds: dict[str, float] = {}
        for job in self._jobs.values():
            if job.caller != caller or job.created_s < since_s:
                continue
            end = self._ends.get(job.id)
            used = (job.tokens, job.seconds) if end is None else (end.tokens, end.seconds)
            tokens[job.run] = max(used[0], tokens.get(job.run, 0))  # a run that went on counts once
            seconds[job.run] = max(used[1], seconds.get(job.run, 0.0))
        return sum(tokens.values()), sum(seconds.values())

    def unfinished(self) -> list[Job]:
        """The jobs that wait or are being done."""
        return [job for job in self._jobs.values() if job.id not in self._ends]

    async def ended(self, job: Job) -> JobEnd:
        """Wait until a job has ended."""
        async with self._changed:
            await self._changed.wait_for(lambda: job.id in self._ends)
        return self._ends[job.id]

    def _require_open(self) -> None:
        if self._closed:
            raise QueueFull("the server is being stopped", retry_after_s=RETRY_AFTER_S)

    def _require_room(self, most_waiting: int) -> None:
        if len(self.waiting) >= most_waiting:
            raise QueueFull(
                f"{len(self.waiting)} jobs wait already",
                retry_after_s=RETRY_AFTER_S,
                remedy="ask again later, or have the server's serve.queue raised",
            )

    def _tell(self) -> None:
        async def tell() -> None:
            async with self._changed:
                self._changed.notify_all()

        task = asyncio.get_running_loop().create_task(tell())
        _TELLING.add(task)
        task.add_done_callback(_TELLING.discard)


_TELLING: set[asyncio.Task[None]] = set()
"""Tasks that nobody waits for; the event loop itself holds them only weakly."""
