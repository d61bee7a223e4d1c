"""A job's process calls the api with what the job asks for."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from suture.api import HealOptions
from suture.core.ledger import new_run_id
from suture.core.records import Reason, Result
from suture.interfaces.jobs import Job, job_execution

CLONE_S = 0.5


async def test_the_time_of_a_run_counts_from_the_start_of_its_process_without_the_clone_of_its_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locate_slowly(*_: object) -> Path:
        time.sleep(CLONE_S)
        return tmp_path

    passed: list[float] = []

    async def note_passed_time(_: Path, options: HealOptions) -> Result:
        assert options.requested_at_s is not None
        passed.append(time.time() - options.requested_at_s)
        return Result(run_id=options.run_id, outcome="healed", reason=Reason(code="checks_pass"))

    monkeypatch.setattr(job_execution, "locate_project", locate_slowly)
    monkeypatch.setattr(job_execution, "heal", note_passed_time)
    run = new_run_id()
    job = Job(id=run, run=run, kind="heal", request={"git": "https://example.com/shop"}, created_s=2e9)
    before_s = time.time()
    await job_execution.execute_job(job, {"paths.home": str(tmp_path / "home")}, before_s - 100)

    all_s = time.time() - before_s
    assert 100 <= passed[0] <= 100 + all_s - CLONE_S
