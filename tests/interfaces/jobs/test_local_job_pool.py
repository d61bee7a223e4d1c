"""Jobs end with a name, whatever fails in carrying them out."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from faults import ERRORS, choose_error, fault_at, raise_error
from suture.core.ledger import new_run_id
from suture.errors import StorageError
from suture.interfaces.jobs import Job, JobJournal, LocalJobPool, job_execution
from suture.interfaces.jobs.job import JobKind
from suture.interfaces.jobs.job_process import JobProcess

CALLER = "ci"
PROGRAM = """#!/bin/sh
read -r line
printf '{"exit_code": 0, "answer": {"ok": true}}' >"$(printf '%s' "$line" | sed 's/.*"end": "\\([^"]*\\)".*/\\1/')"
"""
"""A program in place of a job's, which ends at once."""


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[JobJournal]:
    program = tmp_path / "python"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    journal = JobJournal(tmp_path / "home")
    yield journal
    journal.close()


def make_pool(journal: JobJournal) -> LocalJobPool:
    return LocalJobPool(journal, journal.folder.parent, {}, at_once=1, queue=5)


def make_job(kind: JobKind = "heal") -> Job:
    run = new_run_id()
    return Job(id=run, run=run, kind=kind, request={}, caller=CALLER, created_s=2e9, tokens=1000, seconds=60)


def raising(error: Exception) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> Any:
        raise error

    return fail


NO_SPACE = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
NO_DESCRIPTOR = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
STEPS = {
    "start": (asyncio, "create_subprocess_exec"),
    "instruct": (asyncio.StreamWriter, "drain"),
    "wait": (JobProcess, "ended"),
    "log": (Path, "open"),
    "spend": (job_execution, "read_ledger"),
    "end": (JobJournal, "write_end"),
}
"""What carrying out a job awaits or calls -> where."""


@pytest.mark.parametrize("step", STEPS)
async def test_a_job_whose_execution_fails_ends_and_frees_its_share(
    journal: JobJournal, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    pool = make_pool(journal)
    with monkeypatch.context() as patch:
        target, name = STEPS[step]
        is_storage = step in ("spend", "end")
        patch.setattr(target, name, raising(StorageError("full") if is_storage else NO_DESCRIPTOR))
        job = pool.submit(make_job())
        end = await asyncio.wait_for(pool.ended(job), 10)

    assert end.exit_code == (0 if is_storage else 6)
    assert is_storage or end.error == f"OSError: {os.strerror(errno.EMFILE)}"
    assert (pool.running, pool.find_active_job(job.run), pool.usage_of(CALLER)[0]) == (0, None, 0)
    pool.cancel(job)
    next_job = pool.submit(make_job())  # as a resume does
    assert (await asyncio.wait_for(pool.ended(next_job), 10)).answer == {"ok": True}
    await pool.close()


async def test_a_full_disk_does_not_keep_a_job_from_being_cancelled(
    journal: JobJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(sys.executable).write_text("#!/bin/sh\nexec sleep 60\n")
    pool = make_pool(journal)
    running, waiting = pool.submit(make_job()), pool.submit(make_job())
    while not list(journal.folder.glob("*.log")):  # the process writes it
        await asyncio.sleep(0.01)
    monkeypatch.setattr(JobJournal, "_write_json", raising(StorageError("full")))
    for job in (waiting, running):
        pool.cancel(job)
        assert (await asyncio.wait_for(pool.ended(job), 10)).cancelled
    await pool.close()


async def test_damaged_files_of_jobs_do_not_keep_a_server_from_starting(
    journal: JobJournal, caplog: pytest.LogCaptureFixture
) -> None:
    job, torn_end = make_job(), make_job()
    for each in (job, torn_end):
        journal.write(each)
    (journal.folder / "20260101-000000000-000000.json").write_bytes(b"")
    (journal.folder / "20260101-000000000-000001.json").write_bytes(b'{"id": "20')
    journal.end_path(torn_end).write_bytes(b'{"exit_co')
    pool = make_pool(journal)

    assert {each.id for each in pool.recover()} == {job.id, torn_end.id}
    assert [(await pool.ended(each)).exit_code for each in (job, torn_end)] == [0, 0]
    assert json.loads(journal.end_path(torn_end).read_text())["exit_code"] == 0
    assert "000000.json" in caplog.text
    await pool.close()


@pytest.mark.parametrize("seed", range(len(ERRORS)))
async def test_after_a_fault_at_any_file_a_job_has_an_end_and_a_later_server_starts(
    journal: JobJournal, seed: int
) -> None:
    async def execute(step: int) -> tuple[Job | None, int]:
        """Return the job, unless it was refused, and the number of system calls for files of the journal."""
        pool, job = make_pool(journal), make_job()
        fault = fault_at(step, raise_error(choose_error(step, seed)), match=str(journal.folder))
        with fault as made:
            try:
                pool.submit(job)
            except (StorageError, OSError):
                return None, len(made)
            end = await asyncio.wait_for(pool.ended(job), 10)
        assert end.exit_code == 0 or end.error
        assert (pool.running, pool.unfinished()) == (0, [])
        await pool.close()
        return job, len(made)

    _, total = await execute(-1)
    assert total > 3
    for step in range(total):
        job, _ = await execute(step)
        later = make_pool(journal)
        for unfinished in later.recover():  # its end could not be stored, or was damaged
            await asyncio.wait_for(later.ended(unfinished), 10)
        assert later.unfinished() == []
        assert job is None or later.end_of(job) is not None
        await later.close()
