"""Jobs that several servers share: kept in PostgreSQL, done by Ray, seen by every server.

No server owns a job. What was asked lies in the database before anything is done; each server sees to it that
Ray has every job that has not ended, tells of all of them, and brings their runs here as they go on.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from suture.core.settings import Settings
from suture.errors import StorageError, SutureError, UsageError
from suture.interfaces.jobs.job import Job, JobEnd, job_as_json, job_end_from_json, job_from_json
from suture.interfaces.jobs.job_registry import CANCELLED, DAY_S, JobRegistry, RunBusy
from suture.interfaces.jobs.ray_backend.ray_cluster import RayCluster
from suture.storage.postgresql.shared_jobs import JobRow, SharedJobs, open_shared_jobs
from suture.storage.postgresql.shared_runs import fetch_runs

log = logging.getLogger("suture.interfaces.jobs")
LOOK_EVERY_S = 0.25
CHECK_EVERY_S = 5.0
"""Seconds between two looks at whether Ray still has what it was given."""
OF_A_SERVER = ("paths.", "store.", "keys.", "serve.")
"""Settings that each machine has its own of; some are secret."""
MOST_LOST = 3
"""How often Ray may have no worker for a job that it was given."""
KEPT_WELL_S = 120.0
"""Seconds for which Ray has a job without losing it, after which earlier losses count no more."""


class RayJobPool(JobRegistry):
    """The jobs of all servers that work with one database.

    Args:
        jobs: Where they are kept.
        cluster: Does them.
        home: Where runs are brought to.
        flags: Settings for every job, by their dotted key.
        queue: The most jobs that wait.
    """

    def __init__(
        self, jobs: SharedJobs, cluster: RayCluster, home: Path, flags: Mapping[str, object], *, queue: int
    ) -> None:
        super().__init__()
        self._shared = jobs
        self._cluster = cluster
        self._home = home
        self._flags = flags
        self._most_waiting = queue
        self._elsewhere: set[str] = set()
        self._begun: set[str] = set()
        self._placed: set[str] = set()
        self._given: Counter[str] = Counter()
        self._given_s: dict[str, float] = {}
        self._not_read: set[str] = set()
        self._not_brought: dict[str, str] = {}
        self._seen_s = time.time() - DAY_S
        self._checked_s = 0.0
        self._asked = asyncio.Event()
        self._following: asyncio.Task[None] | None = None

    def take_up(self) -> list[Job]:
        """Learn what there is, and follow it from now on."""
        self._learn(self._shared.changed(self._seen_s))
        self._elsewhere = set(self._ends)
        self._following = asyncio.get_running_loop().create_task(self._follow())
        return self.unfinished()

    def submit(self, job: Job) -> Job:
        """Keep a job in the database and have it done; the same key twice is the same job.

        Raises:
            QueueFull: Too many wait already.
            RunBusy: Another server's job works on the run.
            StorageError: The database failed.
        """
        self._require_open()
        self._require_room(self._most_waiting)
        row = self._shared.add(
            job.id,
            run=job.run,
            kind=job.kind,
            caller=job.caller,
            key=job.key,
            asked=json.dumps(job_as_json(job)),
        )
        if row is None:
            raise RunBusy(f"run {job.run} is being worked on", remedy="wait for its end, or cancel it")
        kept = self._learn([row])
        if not kept:
            raise StorageError("what was asked under this key cannot be read", remedy="take another key")
        self._asked.set()
        return kept[0]

    def cancel(self, job: Job) -> None:
        """Stop a job, wherever it is done; what has not begun is taken back at once."""
        if job.id in self._ends:
            return
        self._shared.ask_to_stop(job.id)
        self._end_unbegun(job)
        self._asked.set()

    def holds(self, job: Job) -> bool:
        """Whether its run is brought here as it goes on; what had ended before this server came is not."""
        return job.id not in self._elsewhere

    @property
    def waiting(self) -> tuple[Job, ...]:
        """The jobs that no worker has begun, oldest first."""
        return tuple(job for job in self.unfinished() if job.id not in self._begun)

    @property
    def running(self) -> int:
        """How many workers have begun."""
        return sum(job.id in self._begun for job in self.unfinished())

    async def close(self) -> None:
        """Leave the cluster, which goes on with all of it."""
        self._closed = True
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait([self._following])
        await asyncio.to_thread(self._cluster.close)
        self._shared.close()

    async def _follow(self) -> None:
        """See what others do, until the server stops; a database or cluster that is away may come back."""
        stderr_tail = ""
        while True:
            self._asked.clear()
            try:
                unfinished = tuple(job.id for job in self.unfinished())
                rows = await asyncio.to_thread(self._seen, unfinished)
                self._learn(rows)
                await asyncio.to_thread(self._see_to, self.unfinished())
                stderr_tail = ""
            except SutureError as fault:
                if fault.message != stderr_tail:
                    log.warning("%s", fault.message)
                stderr_tail = fault.message
            except Exception as fault:  # else nobody would follow, and nobody would notice
                if repr(fault) != stderr_tail:
                    log.exception("the shared jobs cannot be followed")
                stderr_tail = repr(fault)
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self._asked.wait()

    def _seen(self, unfinished: tuple[str, ...]) -> list[JobRow]:
        """What has changed; runs are brought here first, so that one which has ended is here to its end."""
        rows = self._shared.changed(self._seen_s, unfinished)
        runs = {job.run for row in rows if row.tries and (job := self._read(row)) is not None}
        failed = fetch_runs(self._shared.store, self._home, runs)
        for run, why in failed.items():
            if self._not_brought.get(run) != why:
                log.warning("run %s cannot be brought here: %s", run, why)
        self._not_brought = failed
        return rows

    def _learn(self, rows: list[JobRow]) -> list[Job]:
        jobs = []
        for row in rows:
            self._seen_s = max(self._seen_s, row.changed_s)
            job = self._read(row)
            if job is None:
                continue
            jobs.append(self._jobs.setdefault(job.id, job))
            if row.tries:
                self._begun.add(job.id)
            if row.ended is not None:
                self._ends.setdefault(job.id, _end_of(row.ended))
        self._jobs = dict(sorted(self._jobs.items()))
        self._tell()
        return jobs

    def _read(self, row: JobRow) -> Job | None:
        """The job of a row; one that nobody can read is told once, and the others are done."""
        try:
            return job_from_json(json.loads(row.asked))
        except (StorageError, ValueError, RecursionError) as fault:
            if row.asked not in self._not_read:
                log.warning("a job of the database cannot be read, and is left alone: %s", fault)
            self._not_read.add(row.asked)
            return None

    def _see_to(self, unfinished: list[Job]) -> None:
        """Give Ray what it has not; a job whose workers Ray loses for good is ended."""
        if time.monotonic() - self._checked_s >= CHECK_EVERY_S:
            self._placed = self._cluster.placed()
            self._checked_s = time.monotonic()
            self._forget_losses({job.id for job in unfinished})
        for job in unfinished:
            if job.id in self._placed:
                continue
            if self._given[job.id] >= MOST_LOST:
                self._give_up(job)
                continue
            self._given[job.id] += 1
            self._given_s[job.id] = time.monotonic()
            self._cluster.place(job.id, self._flags)
            self._placed.add(job.id)

    def _forget_losses(self, unfinished: set[str]) -> None:
        """A worker that is lost in its third hour is no third loss of a job that cannot be done."""
        well_s = time.monotonic() - KEPT_WELL_S
        for job in [*self._given]:
            if job not in unfinished or (job in self._placed and self._given_s[job] < well_s):
                del self._given[job], self._given_s[job]

    def _give_up(self, job: Job) -> None:
        error = "the cluster had no worker that could do this"
        remedy = "see that its machines have SUTURE_DATABASE_URL and this version of Suture"
        end = JobEnd(exit_code=6, error=error, remedy=remedy, fault="ProcessDied", ended_s=time.time())
        self._shared.end(job.id, json.dumps(job_as_json(end)))

    def _end_unbegun(self, job: Job) -> None:
        end = json.dumps(job_as_json(replace(CANCELLED, ended_s=time.time())))
        if self._shared.end(job.id, end, unless_begun=True):
            self._ends[job.id] = CANCELLED
            self._tell()


def _end_of(ended: str) -> JobEnd:
    try:
        return job_end_from_json(json.loads(ended))
    except (StorageError, ValueError, RecursionError) as fault:
        error = f"how this ended cannot be read: {fault}"
        return JobEnd(exit_code=6, error=error, remedy="see the run itself", fault="StorageError")


def open_ray_job_pool(settings: Settings, flags: Mapping[str, object]) -> tuple[SharedJobs, RayJobPool]:
    """The jobs of the settings' database and cluster; the pool closes both.

    Args:
        settings: The server's own.
        flags: Those of them that were said on the command line.

    Raises:
        UsageError: Runs are not shared, or `store.url` names no PostgreSQL.
        PrerequisiteError: Ray or the database's tables are missing, or the cluster does not answer.
        StorageError: The database does not answer.
    """
    if settings.store.runs != "database":
        raise UsageError(
            "serve.executor = ray needs runs that machines share",
            remedy="set SUTURE_DATABASE_URL=postgresql://... and store.runs=database",
        )
    jobs = open_shared_jobs(settings)
    try:
        cluster = RayCluster(settings.serve.ray_address, settings.store.namespace)
    except BaseException:
        jobs.close()
        raise
    given = worker_flags(flags, settings.store.namespace)
    return jobs, RayJobPool(jobs, cluster, settings.paths.home, given, queue=settings.serve.queue)


def worker_flags(flags: Mapping[str, object], namespace: str) -> dict[str, object]:
    """What of a server's command line its workers take over; Ray shows it to everybody in the cluster.

    Args:
        flags: Settings by their dotted key.
        namespace: Under which runs are shared.
    """
    theirs = {name: value for name, value in flags.items() if not name.startswith(OF_A_SERVER)}
    return {**theirs, "store.runs": "database", "store.namespace": namespace}
