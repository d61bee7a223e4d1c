"""What Ray keeps alive for a job: on whatever machine it is started, it goes on with the job's run there."""

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
from suture.interfaces.jobs.job_execution import run_spend
from suture.interfaces.jobs.job_process import JobProcess, start_standalone_job
from suture.interfaces.jobs.job_registry import CANCELLED
from suture.interfaces.jobs.upload_cleanup import remove_unused_uploads
from suture.storage.postgresql.shared_jobs import SharedJobs, open_shared_jobs

log = logging.getLogger("suture.interfaces.jobs")
MOST_TRIES = 5
"""How often a job is begun whose worker was lost each time: it may be what fells them."""
LOOK_EVERY_S = 1.0
NOT_THERE_S = 300.0
"""How long a database may be away when the end of a job is to be written; the run is done again after that,
from its own end."""


class RayWorker:
    """An actor with one job. Ray starts it anew elsewhere when its machine is lost.

    Args:
        job: The job's id.
        flags: Settings by their dotted key; this machine's own say where the database is.

    Raises:
        SutureError: This machine's settings name no PostgreSQL, or it cannot be reached.
    """

    def __init__(self, job: str, flags: Mapping[str, object]) -> None:
        with tempfile.TemporaryDirectory(prefix="suture-none-") as no_project:
            self._settings = load_settings(Path(no_project), flags).settings
        self._jobs = open_shared_jobs(self._settings)
        self._job = job
        self._flags = flags
        threading.Thread(target=self._work, daemon=True).start()

    def ready(self) -> bool:
        """Answers once it has begun."""
        return True

    def _work(self) -> None:
        try:
            asyncio.run(run_worker_job(self._jobs, self._job, self._flags, self._settings))
        except BaseException:
            log.exception("the worker of job %s failed", self._job)
            os._exit(1)  # Ray starts another one
        import ray

        ray.kill(ray.get_runtime_context().current_actor)  # else Ray would take its end for a loss


async def run_worker_job(
    jobs: SharedJobs, job_id: str, flags: Mapping[str, object], settings: Settings
) -> None:
    """Do a job to its end, and write that down; nothing is done where it has ended already.

    Raises:
        StorageError: The database is away for long.
    """
    row = jobs.begin(job_id)
    if row is None:
        return
    job = job_from_json(json.loads(row.asked))
    if row.stopped:
        end = CANCELLED
    elif row.tries > MOST_TRIES:
        error = f"the workers of this run were lost {MOST_TRIES} times"
        end = JobEnd(exit_code=6, error=error, remedy="see the cluster's own logs", fault="ProcessDied")
    else:
        end = await _done(jobs, job, flags)
    tokens, seconds = run_spend(RunFolder(settings.paths.home / "runs" / job.run))
    await _write(jobs, job, replace(end, tokens=tokens, seconds=seconds, ended_s=time.time()))
    remove_unused_uploads(
        settings.paths.home, settings.serve.keep_sent_days
    )  # what is asked for is brought anew


async def _done(jobs: SharedJobs, job: Job, flags: Mapping[str, object]) -> JobEnd:
    process, place = await start_standalone_job(job, flags)
    watching = asyncio.create_task(_stop_when_told(jobs, job, process))
    try:
        end = await process.ended()
    finally:
        watching.cancel()
        place.cleanup()
    if end.fault == "ProcessDied" and jobs.asked_to_stop(job.id):
        return CANCELLED  # it did not obey, and was killed
    return end


async def _stop_when_told(jobs: SharedJobs, job: Job, process: JobProcess) -> None:
    while True:
        with suppress(StorageError):  # it may come back
            if await asyncio.to_thread(jobs.asked_to_stop, job.id):
                process.stop()
        await asyncio.sleep(LOOK_EVERY_S)


async def _write(jobs: SharedJobs, job: Job, end: JobEnd) -> None:
    until_s = time.monotonic() + NOT_THERE_S
    while True:
        try:
            jobs.end(job.id, json.dumps(job_as_json(end)))
            return
        except StorageError:
            if time.monotonic() > until_s:
                raise
        await asyncio.sleep(LOOK_EVERY_S)
