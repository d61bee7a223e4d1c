"""Jobs that several servers share: stored in PostgreSQL, executed by Ray, visible to every server.

No server owns a job. A request is in the database before anything is done. Each server knows all jobs, makes
sure that Ray has every unfinished one, and copies their runs to its own home while they run.
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
from suture.core.settings.rendering import is_secret
from suture.errors import StorageError, SutureError, UsageError
from suture.interfaces.jobs.job import Job, JobEnd, job_as_json, job_end_from_json, job_from_json
from suture.interfaces.jobs.job_registry import CANCELLED, DAY_S, JobRegistry, RunBusy
from suture.interfaces.jobs.ray_backend.ray_cluster import RayCluster
from suture.interfaces.jobs.tuning import (
    CLUSTER_CHECK_S,
    MAX_LOST_WORKERS,
    SHARED_JOBS_POLL_S,
    STABLE_AFTER_S,
)
from suture.storage.postgresql.shared_jobs import JobRow, SharedJobs, open_shared_jobs
from suture.storage.postgresql.shared_runs import fetch_runs

log = logging.getLogger("suture.interfaces.jobs")
SERVER_SETTINGS = ("paths.", "store.", "keys.", "serve.")
"""Prefixes of settings that each machine has for itself; some are secret."""


class RayJobPool(JobRegistry):
    """The jobs of all servers that share one database."""

    def __init__(
        self, jobs: SharedJobs, cluster: RayCluster, home: Path, flags: Mapping[str, object], *, queue: int
    ) -> None:
        super().__init__()
        self._shared = jobs
        self._cluster = cluster
        self._home = home
        self._flags = flags
        self._max_waiting = queue
        self._ended_at_start_ids: set[str] = set()
        self._started_ids: set[str] = set()
        self._cluster_ids: set[str] = set()
        self._start_counts: Counter[str] = Counter()
        self._started_at_s: dict[str, float] = {}
        self._unreadable_requests: set[str] = set()
        self._copy_failures: dict[str, str] = {}
        self._last_change_s = time.time() - DAY_S
        self._cluster_checked_s = 0.0
        self._wake_up = asyncio.Event()
        self._follow_task: asyncio.Task[None] | None = None

    def recover(self) -> list[Job]:
        """Read the existing jobs, and follow them from now on."""
        self._apply_rows(self._shared.list_changed(self._last_change_s))
        self._ended_at_start_ids = set(self._ends)
        self._follow_task = asyncio.get_running_loop().create_task(self._follow_changes())
        return self.unfinished()

    def submit(self, job: Job) -> Job:
        """Store a job in the database and execute it; the same key always means the same job."""
        self._require_open()
        self._require_queue_space(self._max_waiting)
        row = self._shared.add(
            job.id,
            run=job.run,
            kind=job.kind,
            caller=job.caller,
            key=job.key,
            request=json.dumps(job_as_json(job)),
        )
        if row is None:
            raise RunBusy(f"run {job.run} is in progress", remedy="wait for its end, or cancel it")
        stored = self._apply_rows([row])
        if not stored:
            raise StorageError("the earlier request with this key cannot be read", remedy="use another key")
        self._wake_up.set()
        return stored[0]

    def cancel(self, job: Job) -> None:
        """Stop a job wherever it runs; a job that has not started is cancelled at once."""
        if job.id in self._ends:
            return
        self._shared.request_stop(job.id)
        end = replace(CANCELLED, ended_s=time.time())
        if self._shared.end(job.id, json.dumps(job_as_json(end)), unless_started=True):
            self._ends[job.id] = CANCELLED
            self._notify()
        self._wake_up.set()

    def has_run_folder(self, job: Job) -> bool:
        """Return whether the job's run is copied here; runs that ended before this server started are not."""
        return job.id not in self._ended_at_start_ids

    def find_owner(self, run: str) -> str:
        """Return the caller who started a run, also of runs that ended before this server started."""
        return super().find_owner(run) or self._shared.find_caller(run)

    @property
    def waiting(self) -> tuple[Job, ...]:
        """The jobs that no worker has started, oldest first."""
        return tuple(job for job in self.unfinished() if job.id not in self._started_ids)

    @property
    def running(self) -> int:
        """The number of jobs that a worker has started."""
        return sum(job.id in self._started_ids for job in self.unfinished())

    async def close(self) -> None:
        """Disconnect from the cluster, which continues all jobs."""
        self._closed = True
        if self._follow_task is not None:
            self._follow_task.cancel()
            await asyncio.wait([self._follow_task])
        await asyncio.to_thread(self._cluster.close)
        self._shared.close()

    async def _follow_changes(self) -> None:
        """Follow the shared jobs until the server stops, also after the database or the cluster was unavailable."""
        last_error = ""  # an error that lasts is logged once
        while True:
            self._wake_up.clear()
            try:
                unfinished = tuple(job.id for job in self.unfinished())
                rows = await asyncio.to_thread(self._fetch_changes, unfinished)
                self._apply_rows(rows)
                await asyncio.to_thread(self._ensure_on_cluster, self.unfinished())
                last_error = ""
            except SutureError as fault:
                if fault.message != last_error:
                    log.warning("%s", fault.message)
                last_error = fault.message
            except Exception as fault:  # otherwise the task would die unnoticed
                if repr(fault) != last_error:
                    log.exception("the shared jobs cannot be followed")
                last_error = repr(fault)
            with suppress(TimeoutError):
                async with asyncio.timeout(SHARED_JOBS_POLL_S):
                    await self._wake_up.wait()

    def _fetch_changes(self, unfinished: tuple[str, ...]) -> list[JobRow]:
        """Return the changed rows, after copying their runs here, so that an ended run is complete."""
        rows = self._shared.list_changed(self._last_change_s, unfinished)
        runs = {job.run for row in rows if row.attempts and (job := self._decode_job(row)) is not None}
        failures = fetch_runs(self._shared.store, self._home, runs)
        for run, reason in failures.items():
            if self._copy_failures.get(run) != reason:
                log.warning("run %s cannot be copied here: %s", run, reason)
        self._copy_failures = failures
        return rows

    def _apply_rows(self, rows: list[JobRow]) -> list[Job]:
        jobs = []
        for row in rows:
            self._last_change_s = max(self._last_change_s, row.changed_s)
            job = self._decode_job(row)
            if job is None:
                continue
            jobs.append(self._jobs.setdefault(job.id, job))
            if row.attempts:
                self._started_ids.add(job.id)
            if row.ending is not None:
                self._ends.setdefault(job.id, _decode_end(row.ending))
        self._jobs = dict(sorted(self._jobs.items()))
        self._notify()
        return jobs

    def _decode_job(self, row: JobRow) -> Job | None:
        """Return the job of a row; an unreadable row is logged once and does not affect the others."""
        try:
            return job_from_json(json.loads(row.request))
        except (StorageError, ValueError, RecursionError) as fault:
            if row.request not in self._unreadable_requests:
                log.warning("a job in the database cannot be read and is skipped: %s", fault)
            self._unreadable_requests.add(row.request)
            return None

    def _ensure_on_cluster(self, unfinished: list[Job]) -> None:
        """Start the jobs that Ray does not have; abandon a job whose workers are lost repeatedly."""
        if time.monotonic() - self._cluster_checked_s >= CLUSTER_CHECK_S:
            self._cluster_ids = self._cluster.list_jobs()
            self._cluster_checked_s = time.monotonic()
            self._reset_loss_counts({job.id for job in unfinished})
        for job in unfinished:
            if job.id in self._cluster_ids:
                continue
            if self._start_counts[job.id] >= MAX_LOST_WORKERS:
                self._abandon_job(job)
                continue
            self._start_counts[job.id] += 1
            self._started_at_s[job.id] = time.monotonic()
            self._cluster.start_job(job.id, self._flags)
            self._cluster_ids.add(job.id)

    def _reset_loss_counts(self, unfinished: set[str]) -> None:
        """Forget old losses: a worker that is lost after hours is not the third loss of an impossible job."""
        stable_since_s = time.monotonic() - STABLE_AFTER_S
        for job_id in list(self._start_counts):
            is_stable = job_id in self._cluster_ids and self._started_at_s[job_id] < stable_since_s
            if job_id not in unfinished or is_stable:
                del self._start_counts[job_id], self._started_at_s[job_id]

    def _abandon_job(self, job: Job) -> None:
        error = "the cluster has no worker that can execute this job"
        remedy = "check that its machines have SUTURE_DATABASE_URL and this version of Suture"
        end = JobEnd(exit_code=6, error=error, remedy=remedy, fault="ProcessDied", ended_s=time.time())
        self._shared.end(job.id, json.dumps(job_as_json(end)))


def _decode_end(ending: str) -> JobEnd:
    try:
        return job_end_from_json(json.loads(ending))
    except (StorageError, ValueError, RecursionError) as fault:
        error = f"the end of the job cannot be read: {fault}"
        return JobEnd(exit_code=6, error=error, remedy="inspect the run itself", fault="StorageError")


def open_ray_job_pool(settings: Settings, flags: Mapping[str, object]) -> tuple[SharedJobs, RayJobPool]:
    """Open the jobs of the settings' database and cluster; closing the pool closes both."""
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
    shared_flags = worker_flags(flags, settings.store.namespace)
    return jobs, RayJobPool(jobs, cluster, settings.paths.home, shared_flags, queue=settings.serve.queue)


def worker_flags(flags: Mapping[str, object], namespace: str) -> dict[str, object]:
    """Return the command-line settings that workers take over; everyone in the cluster can see them."""
    worker_settings = {
        name: value
        for name, value in flags.items()
        if not name.startswith(SERVER_SETTINGS) and not is_secret(name)
    }
    return {**worker_settings, "store.runs": "database", "store.namespace": namespace}
