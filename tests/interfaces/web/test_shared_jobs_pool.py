"""A server handles unreadable job rows and lost workers of a shared database."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import cast

import pytest

from suture.interfaces.jobs import Job
from suture.interfaces.jobs.job import job_as_json
from suture.interfaces.jobs.ray_backend import ray_job_pool as ray_pool
from suture.interfaces.jobs.ray_backend.ray_cluster import RayCluster
from suture.interfaces.jobs.ray_backend.ray_job_pool import RayJobPool
from suture.interfaces.jobs.tuning import MAX_LOST_WORKERS
from suture.storage.postgresql.shared_jobs import JobRow, SharedJobs


class FakeSharedJobs:
    """A database that holds the given job rows."""

    store = None

    def __init__(self, *requests: str) -> None:
        self.rows = {
            text: JobRow(request=text, stop_requested=False, attempts=0, ending=None, changed_s=1.0)
            for text in requests
        }
        self.ended: dict[str, str] = {}

    def list_changed(self, since_s: float, unfinished: Collection[str] = ()) -> list[JobRow]:
        return [*self.rows.values()]

    def end(self, job: str, ending: str, *, unless_started: bool = False) -> bool:
        self.ended[job] = ending
        return True

    def close(self) -> None:
        """There is nothing to close."""


class ForgetfulCluster:
    """A cluster that keeps each job until the test removes it from `held`."""

    def __init__(self) -> None:
        self.held: set[str] = set()
        self.started: list[str] = []

    def start_job(self, job: str, flags: Mapping[str, object]) -> None:
        self.started.append(job)
        self.held.add(job)

    def list_jobs(self) -> set[str]:
        return {*self.held}

    def close(self) -> None:
        """There is nothing to close."""


def make_job_text(name: str) -> str:
    """Return a job as the database stores it."""
    return json.dumps(job_as_json(Job(id=name, run=name, kind="write", request={}, caller="a")))


def make_pool(rows: FakeSharedJobs, cluster: ForgetfulCluster, home: Path) -> RayJobPool:
    """Return a pool with a fake database and a fake cluster."""
    return RayJobPool(cast(SharedJobs, rows), cast(RayCluster, cluster), home, {}, queue=9)


async def wait_until(condition: object) -> None:
    assert callable(condition)
    async with asyncio.timeout(60):
        while not condition():  # a thread of the pool makes the condition true
            await asyncio.sleep(0.01)


ODD_ID = '{"id": [], "run": "b", "kind": "write", "request": {}, "exit_code": "0"}'
ODD_REQUEST = '{"id": "b", "run": "b", "kind": "write", "request": [], "exit_code": null}'


@pytest.mark.parametrize("damaged", ["{", "[]", '{"id": "b"}', "[" * 100_000, ODD_ID, ODD_REQUEST])
async def test_an_unreadable_row_is_logged_once_and_other_jobs_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damaged: str
) -> None:
    caplog.set_level(logging.WARNING, "suture.interfaces.jobs")
    rows, cluster = FakeSharedJobs(damaged, make_job_text("good")), ForgetfulCluster()
    pool = make_pool(rows, cluster, tmp_path)
    assert [job.id for job in pool.recover()] == ["good"]

    await wait_until(lambda: cluster.started == ["good"])
    rows.rows["end"] = JobRow(
        request=make_job_text("good"), stop_requested=False, attempts=0, ending=damaged, changed_s=2.0
    )
    pool._wake_up.set()
    (job,) = (entry for entry in pool.unfinished() if entry.id == "good")
    end = await pool.ended(job)
    await pool.close()
    assert end.exit_code == 6
    assert "cannot be read" in end.error
    assert len([entry for entry in caplog.messages if "cannot be read" in entry]) == 1


async def test_lost_workers_are_forgotten_once_a_worker_is_stable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_pool, "SHARED_JOBS_POLL_S", 0.01)
    monkeypatch.setattr(ray_pool, "CLUSTER_CHECK_S", 0.0)
    monkeypatch.setattr(ray_pool, "STABLE_AFTER_S", 0.0)
    rows, cluster = FakeSharedJobs(make_job_text("long")), ForgetfulCluster()
    pool = make_pool(rows, cluster, tmp_path)
    pool.recover()
    for count in range(1, MAX_LOST_WORKERS + 3):
        await wait_until(lambda minimum=count: len(cluster.started) >= minimum and not pool._start_counts)
        cluster.held.clear()
    assert not rows.ended

    monkeypatch.setattr(ray_pool, "STABLE_AFTER_S", 3600.0)
    while not rows.ended:
        cluster.held.clear()
        await asyncio.sleep(0.01)
    await pool.close()
    assert "has no worker" in rows.ended["long"]
