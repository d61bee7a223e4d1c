"""The Ray actor of a job: it starts or resumes the job's run on whatever machine Ray chooses."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from suture.core.ledger import RunFolder
from suture.core.settings import Settings, load_settings
from suture.errors import StorageError
from suture.interfaces.jobs.job import Job, JobEnd, job_as_json, job_from_json
from suture.interfaces.jobs.job_process import JobProcess, run_spend, start_standalone_job
from suture.interfaces.jobs.job_registry import CANCELLED
from suture.interfaces.jobs.tuning import DATABASE_TIMEOUT_S, MAX_WORKER_STARTS, STOP_POLL_S
from suture.interfaces.jobs.upload_cleanup import remove_unused_uploads
from suture.storage.postgresql.shared_jobs import SharedJobs, open_shared_jobs

log = logging.getLogger("suture.interfaces.jobs")


class RayWorker:
    """A Ray actor (a process with methods) with one job. Ray starts it on another machine if its machine is lost.

    Args:
        job: The job's id.
        flags: Settings by dotted key; this machine's own settings name the database.
    """

    def __init__(self, job: str, flags: Mapping[str, object]) -> None:
        # An empty folder, so that no project's settings apply.
        with tempfile.TemporaryDirectory(prefix="suture-none-") as no_project:
            self._settings = load_settings(Path(no_project), flags).settings
        self._jobs = open_shared_jobs(self._settings)
        self._job = job
        self._flags = flags
        threading.Thread(target=self._run_in_thread, daemon=True).start()

    def ready(self) -> bool:
        """Return once the actor has started."""
        return True

    def _run_in_thread(self) -> None:
        try:
            asyncio.run(run_worker_job(self._jobs, self._job, self._flags, self._settings))
        except BaseException:
            log.exception("the worker of job %s failed", self._job)
            os._exit(1)  # Ray starts another worker
        import ray

        ray.kill(ray.get_runtime_context().current_actor)  # otherwise Ray would treat its end as a loss


async def run_worker_job(
    jobs: SharedJobs, job_id: str, flags: Mapping[str, object], settings: Settings
) -> None:
    """Run a job to its end and record the end; a job that has ended already is not run."""
    row = jobs.begin(job_id)
    if row is None:
        return
    job = job_from_json(json.loads(row.request))
    if row.stop_requested:
        end = CANCELLED
    elif row.attempts > MAX_WORKER_STARTS:
        error = f"the workers of this run were lost {MAX_WORKER_STARTS} times"
        end = JobEnd(exit_code=6, error=error, remedy="see the cluster's own logs", fault="ProcessDied")
    else:
        end = await _run_job(jobs, job, flags)
    tokens, seconds = run_spend(RunFolder(settings.paths.home / "runs" / job.run))
    end = replace(end, tokens=tokens, seconds=max(seconds, end.seconds), ended_s=time.time())
    await _write_end(jobs, job, end)
    # No job of another worker is excluded: what it still needs is fetched again.
    remove_unused_uploads(settings.paths.home, settings.serve.keep_sent_days)


async def _run_job(jobs: SharedJobs, job: Job, flags: Mapping[str, object]) -> JobEnd:
    process, workspace = await start_standalone_job(job, flags)
    watch_task = asyncio.create_task(_watch_for_stop(jobs, job, process))
    try:
        end = await process.ended()
    finally:
        watch_task.cancel()
        workspace.close()
    if end.fault == "ProcessDied" and jobs.is_stop_requested(job.id):
        return CANCELLED  # it did not stop in time and was killed
    return end


async def _watch_for_stop(jobs: SharedJobs, job: Job, process: JobProcess) -> None:
    while True:
        with suppress(StorageError):  # the database may become available again
            if await asyncio.to_thread(jobs.is_stop_requested, job.id):
                process.stop()
        await asyncio.sleep(STOP_POLL_S)


async def _write_end(jobs: SharedJobs, job: Job, end: JobEnd) -> None:
    deadline_s = time.monotonic() + DATABASE_TIMEOUT_S
    while True:
        try:
            jobs.end(job.id, json.dumps(job_as_json(end)))
            return
        except StorageError:
            if time.monotonic() > deadline_s:
                raise
        await asyncio.sleep(STOP_POLL_S)
