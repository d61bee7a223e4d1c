"""Two machines on one PostgreSQL: one is killed, and the other resumes its run."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from scenario.killing_ledger import DeadlyLedger
from scenario.test_kill import APPROVED, TASK, Paid, settings_at
from suture.api import WriteOptions, fork_from_iteration, resume, solve
from suture.core.ledger import find_run, read_ledger
from suture.core.settings import Settings, StoreSettings
from suture.errors import StorageError, UsageError
from suture.storage.database.store import open_store

pytestmark = pytest.mark.heavy


def settings_of(home: Path, url: str) -> Settings:
    return settings_at(home).model_copy(update={"store": StoreSettings(url=url, runs="database")})


@pytest.fixture
def shared_url(postgres_url: str, tmp_path: Path) -> str:
    """The address of a PostgreSQL with Suture's tables."""
    open_store(postgres_url, tmp_path, init=True).close()
    return postgres_url


def victim(home: str, url: str, kind: str, count: str) -> None:
    """What the killed machine does."""
    DeadlyLedger(kind, int(count)).arm()
    settings, model = settings_of(Path(home), url), Paid(Path(home).parent / "calls.jsonl")
    asyncio.run(solve(TASK, WriteOptions(settings=settings, model=model, on_review=lambda review: APPROVED)))


def killed_elsewhere(home: Path, url: str, kind: str, count: int) -> str:
    """Run on another machine until it is killed there; answers the run's id."""
    process = subprocess.run(
        [sys.executable, __file__, str(home), url, kind, str(count)],
        cwd=home.parent,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        timeout=100,
    )
    assert process.returncode == -signal.SIGKILL
    return find_run(home, "newest").id


@pytest.mark.parametrize(
    ("kind", "count"),
    [("run.started", 1), ("model.called", 2), ("candidate.checked", 2), ("review.asked", 1)],
)
async def test_another_machine_continues_and_pays_nothing_twice(
    shared_url: str, tmp_path: Path, kind: str, count: int
) -> None:
    run = killed_elsewhere(tmp_path / "first", shared_url, kind, count)
    written = (tmp_path / "first" / "runs" / run / "ledger.jsonl").read_bytes()
    settings, log = settings_of(tmp_path / "second", shared_url), tmp_path / "calls.jsonl"
    done = await resume(run, settings=settings, model=Paid(log), on_review=lambda review: APPROVED)
    assert done.outcome == "healed", done.reason
    paid = log.read_text().splitlines()
    assert len(set(paid)) == len(paid) == 5
    assert done.spend.attempts == 5
    assert find_run(tmp_path / "second", run).ledger_path.read_bytes().startswith(written)
    assert not (tmp_path / "second" / "checkpoints.db").exists()
    with open_store(shared_url, tmp_path) as store, store.read_transaction() as connection:
        from sqlalchemy import select

        from suture.storage.database.tables import tasks

        assert connection.execute(select(tasks.c.run_id, tasks.c.outcome)).all() == [(run, "healed")]


async def test_the_first_machine_forks_what_the_second_has_ended(shared_url: str, tmp_path: Path) -> None:
    run = killed_elsewhere(tmp_path / "first", shared_url, "candidate.checked", 1)
    log = tmp_path / "calls.jsonl"
    second = settings_of(tmp_path / "second", shared_url)
    done = await resume(run, settings=second, model=Paid(log), on_review=lambda review: APPROVED)
    paid = log.read_text()
    first = settings_of(tmp_path / "first", shared_url)
    forked = await fork_from_iteration(
        run, 1, settings=first, model=Paid(log), on_review=lambda review: APPROVED
    )
    assert (forked.outcome, forked.diff) == ("healed", done.diff)
    assert log.read_text() == paid
    here, there = (find_run(tmp_path / name, run).ledger_path for name in ("first", "second"))
    assert here.read_bytes() == there.read_bytes()


async def test_a_run_that_continues_is_not_taken_over(shared_url: str, tmp_path: Path) -> None:
    run = killed_elsewhere(tmp_path / "first", shared_url, "model.called", 1)
    with psycopg.connect(shared_url) as other:
        other.execute(f"SELECT pg_advisory_lock(hashtextextended('suture run {run}', 0))".encode())
        with pytest.raises(UsageError, match="another process is writing"):
            await resume(
                run, settings=settings_of(tmp_path / "second", shared_url), model=Paid(tmp_path / "l")
            )


async def test_what_has_gone_two_ways_is_not_joined(shared_url: str, tmp_path: Path) -> None:
    run = killed_elsewhere(tmp_path / "first", shared_url, "model.called", 1)
    mine = tmp_path / "first" / "runs" / run / "ledger.jsonl"
    lines = mine.read_bytes().splitlines(keepends=True)
    mine.write_bytes(b"".join(lines[:-1]) + lines[-1].replace(b'"seq":', b'"seq": '))
    with pytest.raises(StorageError, match="differs from the copy here"):
        await resume(run, settings=settings_of(tmp_path / "first", shared_url), model=Paid(tmp_path / "l"))


async def test_a_connection_that_is_lost_in_mid_run_is_made_again(shared_url: str, tmp_path: Path) -> None:
    log = tmp_path / "calls.jsonl"
    settings = settings_of(tmp_path / "first", shared_url)
    lost = 0

    def cut(event: object) -> None:
        nonlocal lost
        if getattr(event, "kind", "") == "candidate.proposed" and not lost:
            with psycopg.connect(shared_url, autocommit=True) as other:
                found = other.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"
                )
                lost = len(found.fetchall())

    done = await solve(
        TASK,
        WriteOptions(settings=settings, model=Paid(log), on_review=lambda review: APPROVED, on_event=cut),
    )
    assert lost
    assert done.outcome == "healed"
    events = read_ledger(find_run(tmp_path / "first", done.run_id).ledger_path).events
    with open_store(shared_url, tmp_path) as store, store.read_transaction() as connection:
        from suture.storage.postgresql.shared_runs import read_shared_ledger

        shared = read_shared_ledger(connection, done.run_id)
    assert shared.count(b"\n") == len(events)


async def test_a_server_that_is_away_stops_a_shared_run_before_anything_is_paid(tmp_path: Path) -> None:
    settings = settings_of(tmp_path / "first", "postgresql://me:secret@127.0.0.1:1/x")
    with pytest.raises(StorageError, match="failed") as caught:
        await solve(TASK, WriteOptions(settings=settings, model=Paid(tmp_path / "calls.jsonl")))
    assert "secret" not in str(caught.value)
    assert not (tmp_path / "calls.jsonl").exists()


async def test_a_shared_run_needs_postgresql(tmp_path: Path) -> None:
    settings = settings_of(tmp_path / "first", f"sqlite:///{tmp_path / 'x.db'}")
    with pytest.raises(UsageError, match="is not a PostgreSQL database"):
        await solve(TASK, WriteOptions(settings=settings, model=Paid(tmp_path / "calls.jsonl")))


if __name__ == "__main__":
    victim(*sys.argv[1:])
