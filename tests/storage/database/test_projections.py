"""Projections in both engines: complete, reproducible, and consistent after a kill."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, func, select

from storage.database.sample_runs import write_run, write_sample_runs
from suture.api import WriteOptions
from suture.core.ledger import Ledger, Payload, RunFolder, find_run, read_ledger, total_spend
from suture.core.ledger.kinds import CommitMade, RunResumed, TreeApplied, TreeUndone
from suture.core.records import CheckOutcome, Counterexample, Verdict
from suture.core.settings import PathSettings, Settings, StoreSettings
from suture.storage.database import run_changes
from suture.storage.database.connection_options import DATABASE_FILE
from suture.storage.database.current_index import open_current_index
from suture.storage.database.projection_updates import (
    catch_up,
    check_database,
    rebuild_projections,
    record_finished_run,
    stored_rows,
    write_rows,
)
from suture.storage.database.projections import first_error, project_run
from suture.storage.database.run_index import RunIndex
from suture.storage.database.run_queries import summarise_runs
from suture.storage.database.run_query import RunQuery
from suture.storage.database.store import Store, open_store
from suture.storage.database.tables import RUN_TABLES, iterations, tasks

PROCESSES, RUNS_PER_PROCESS, EVENTS_PER_RUN = 8, 5, 250
FORK_SERVER = multiprocessing.get_context("forkserver")
FORK_SERVER.set_forkserver_preload(
    ["suture.storage.database.projection_updates", "psycopg", "pgvector.sqlalchemy"]
)


def read_all_rows(store: Store, runs: list[RunFolder]) -> list[Any]:
    """Return the rows of each run in each table."""
    with store.read_transaction() as connection:
        return [
            (run.id, table.name, stored_rows(connection, table, "default", run.id))
            for run in runs
            for table in RUN_TABLES
        ]


def test_rows_agree_with_their_ledger(store: Store, tmp_path: Path) -> None:
    runs = write_sample_runs(tmp_path / "home")
    assert catch_up(store, tmp_path / "home").runs == len(runs)

    with store.read_transaction() as connection:
        row_by_run = {row.run_id: row for row in connection.execute(select(tasks))}

    assert set(row_by_run) == {run.id for run in runs}
    for run in runs:
        row, reading = row_by_run[run.id], read_ledger(run.ledger_path)
        spend = total_spend(reading.events)
        assert (row.outcome, row.kind, row.namespace) == ("healed", run.id.rpartition("-")[2], "default")
        assert (row.events, row.tokens, row.attempts) == (len(reading.events), spend.tokens, spend.attempts)
        assert row.started_s == reading.events[0].time_s

    assert check_database(store, tmp_path / "home") == []


def test_the_code_as_it_was_given_is_no_failed_candidate(tmp_path: Path) -> None:
    rows = [project_run(run) for run in write_sample_runs(tmp_path / "home")]
    steps = [step for run_rows in rows for step in run_rows.iterations if step["error_kind"]]
    assert any(step["number"] == 0 for step in steps)  # the user's failing code
    counted = sum(row["value"] for run_rows in rows for row in run_rows.metrics if row["name"] == "errors")
    assert counted == sum(step["number"] > 0 for step in steps)


@pytest.mark.parametrize(
    ("payloads", "delivery"),
    [
        ((), ""),
        ((TreeApplied(root="/p", files=("a.py",), undo="undo.patch"),), "applied"),
        ((TreeApplied(root="/p", files=("a.py",), undo="undo.patch"), TreeUndone(root="/p")), "undone"),
        ((CommitMade(root="/p", commit="1a2b3c"),), "committed"),
    ],
)
def test_a_row_says_what_became_of_the_change(
    payloads: tuple[Payload, ...], delivery: str, tmp_path: Path
) -> None:
    run = write_run(tmp_path / "home", "2027-heal", 2)
    with Ledger(run.ledger_path) as ledger:
        ledger.append_all(list(payloads))
    assert project_run(run).task["delivery"] == delivery


def test_rebuilding_gives_the_same_rows(store: Store, tmp_path: Path) -> None:
    runs = write_sample_runs(tmp_path / "home")
    rebuild_projections(store, tmp_path / "home")
    first = read_all_rows(store, runs)
    assert sum(len(rows) for _, _, rows in first) > 30

    rebuild_projections(store, tmp_path / "home")
    catch_up(store, tmp_path / "home")
    assert read_all_rows(store, runs) == first


def test_only_grown_ledgers_are_read_again(store: Store, tmp_path: Path) -> None:
    run, *_ = write_sample_runs(tmp_path / "home")

    assert catch_up(store, tmp_path / "home").up_to_date == 0
    assert catch_up(store, tmp_path / "home").runs == 0
    with Ledger(run.ledger_path) as ledger:
        ledger.append(RunResumed(next_nodes=(), project=""))
        assert catch_up(store, tmp_path / "home").runs == 1
        with store.read_transaction() as connection:
            outcome = connection.execute(select(tasks.c.outcome).where(tasks.c.run_id == run.id)).scalar()

    assert outcome == "running"
    # The process of the run has ended, although its ledger did not grow.
    assert catch_up(store, tmp_path / "home").runs == 1

    with store.read_transaction() as connection:
        outcome = connection.execute(select(tasks.c.outcome).where(tasks.c.run_id == run.id)).scalar()
    assert outcome == "stopped"


def read_outcomes(home: Path) -> dict[str, str]:
    """Return run id -> outcome, as a list of the runs in a home folder shows them."""
    settings = Settings(paths=PathSettings(home=home))
    with open_current_index(settings) as (index, _):
        return dict(index.execute("SELECT run_id, outcome FROM tasks"))


def test_runs_that_were_deleted_replaced_or_copied_in_are_noticed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    kept, replaced, deleted, *_ = write_sample_runs(home)
    assert set(read_outcomes(home).values()) == {"healed"}

    shutil.copytree(kept.path, home / "runs" / "2031-copied")
    shutil.rmtree(deleted.path)
    healed = replaced.ledger_path.read_text()
    replaced.ledger_path.write_text(healed.replace('"outcome":"healed"', '"outcome":"stuck" '))
    assert len(replaced.ledger_path.read_text()) == len(healed)
    outcomes = read_outcomes(home)

    assert outcomes["2031-copied"] == outcomes[kept.id] == "healed"
    assert outcomes[replaced.id] == "stuck"
    assert deleted.id not in outcomes


def test_a_torn_run_of_another_team_has_one_row(tmp_path: Path) -> None:
    home = tmp_path / "home"
    run, *_ = write_sample_runs(home)
    ledger = run.ledger_path.read_text()
    run.ledger_path.write_text(ledger.replace('"namespace":"default"', '"namespace":"team"'))
    assert read_outcomes(home)[run.id] == "healed"

    run.ledger_path.write_text(ledger[: len(ledger) // 2])
    assert read_outcomes(home)[run.id] == "stopped"
    run.ledger_path.write_text('{"seq":"x","time_s":1,"kind":"moves.decided"}\n')

    assert read_outcomes(home)[run.id] == "damaged"
    with open_store(None, home) as store, store.read_transaction() as connection:
        rows = select(func.count()).where(tasks.c.run_id == run.id)
        assert connection.execute(rows).scalar() == 1


@pytest.mark.parametrize("is_recorded", [False, True])
def test_a_run_that_was_read_before_it_named_its_namespace_has_one_row(
    store: Store, tmp_path: Path, *, is_recorded: bool
) -> None:
    home = tmp_path / "home"
    run = write_run(home, "r", 3)
    ledger = run.ledger_path.read_text()
    run.ledger_path.write_text("")
    catch_up(store, home)

    run.ledger_path.write_text(ledger.replace('"namespace":"default"', '"namespace":"team"'))
    if is_recorded:
        write_rows(store, [project_run(run)])
    catch_up(store, home)

    with store.read_transaction() as connection:
        assert connection.execute(select(tasks.c.namespace)).scalars().all() == ["team"]
    assert catch_up(store, home).runs == 0


def test_a_run_that_starts_during_an_update_keeps_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    run = write_run(home, "r", 3)
    assert read_outcomes(home) == {"r": "healed"}

    monkeypatch.setattr(run_changes, "_list_names", lambda home: [])
    assert read_outcomes(home) == {"r": "healed"}
    shutil.rmtree(run.path)
    assert read_outcomes(home) == {}


def test_an_old_sqlite_without_optional_functions_is_enough(tmp_path: Path) -> None:
    write_sample_runs(tmp_path)
    statements: list[str] = []
    with open_store(None, tmp_path) as store:
        event.listen(store.engine, "before_cursor_execute", lambda *call: statements.append(call[2].lower()))
        catch_up(store, tmp_path)
    connection = sqlite3.connect(tmp_path / DATABASE_FILE)
    connection.set_trace_callback(lambda sql: statements.append(sql.lower()))
    with contextlib.closing(connection):
        index = RunIndex(connection, namespace="default", location="", is_beside_runs=True)
        summarise_runs(index, RunQuery())
    assert any("from metrics" in sql for sql in statements)
    assert [sql for sql in statements if "returning" in sql or "floor(" in sql] == []


def test_an_older_copy_of_a_run_does_not_replace_a_newer_row(
    postgres_with_tables: str, tmp_path: Path
) -> None:
    run = write_run(tmp_path / "first", "r", 9)
    older = RunFolder(tmp_path / "second" / "runs" / "r")
    shutil.copytree(run.path, older.path)
    lines = run.ledger_path.read_text().splitlines(keepends=True)
    older.ledger_path.write_text("".join(lines[:4]))

    with open_store(postgres_with_tables, tmp_path) as store:
        catch_up(store, tmp_path / "first")
        with store.read_transaction() as connection:
            newer_rows = stored_rows(connection, tasks, "default", "r")
        assert catch_up(store, tmp_path / "second").runs == 0
        rebuild_projections(store, tmp_path / "second")
        write_rows(store, [project_run(older)])
        with store.read_transaction() as connection:
            assert stored_rows(connection, tasks, "default", "r") == newer_rows
    assert newer_rows[0]["outcome"] == "healed"


def test_a_damaged_ledger_hides_no_other_run(store: Store, tmp_path: Path) -> None:
    damaged, *others = write_sample_runs(tmp_path / "home")
    damaged.ledger_path.write_text('{"seq":"x","time_s":1,"kind":"moves.decided"}\n')
    catch_up(store, tmp_path / "home")
    with store.read_transaction() as connection:
        outcomes = {row.run_id: row.outcome for row in connection.execute(select(tasks))}
    assert outcomes == {damaged.id: "damaged", **{run.id: "healed" for run in others}}


def test_a_wrong_row_is_found_by_the_check(store: Store, tmp_path: Path) -> None:
    run, *_ = write_sample_runs(tmp_path / "home")
    catch_up(store, tmp_path / "home")
    with store.write_transaction() as connection:
        connection.execute(tasks.update().where(tasks.c.run_id == run.id).values(outcome="stuck"))
        connection.execute(iterations.delete().where(iterations.c.run_id == run.id))

    assert check_database(store, tmp_path / "home") == [
        f"run {run.id}: tasks, iterations differ from its ledger"
    ]

    rebuild_projections(store, tmp_path / "home")
    assert check_database(store, tmp_path / "home") == []


def test_rows_keep_the_namespace_of_their_run(store_url: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    write_run(home, "mine", 3)
    with open_store(store_url, home, namespace="theirs") as theirs:
        catch_up(theirs, home)
        with theirs.read_transaction() as connection:
            assert {row.namespace for row in connection.execute(select(tasks))} == {"default"}


def write_and_record_runs(home: str, url: str, writer: int) -> None:
    """The program of a process that writes runs and records each in the database."""
    settings = Settings(paths=PathSettings(home=Path(home)), store=StoreSettings(url=url))
    for number in range(RUNS_PER_PROCESS):
        record_finished_run(settings, write_run(Path(home), f"{writer}-{number}", EVENTS_PER_RUN))


def test_eight_processes_write_ten_thousand_events(store: Store, store_url: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    writers = [
        FORK_SERVER.Process(target=write_and_record_runs, args=(str(home), store_url, number))
        for number in range(PROCESSES)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(100)

    assert [writer.exitcode for writer in writers] == [0] * PROCESSES

    with store.read_transaction() as connection:
        events, rows = connection.execute(select(func.sum(tasks.c.events), func.count())).one()
    assert (events, rows) == (10_000, PROCESSES * RUNS_PER_PROCESS)
    assert check_database(store, home) == []


def rebuild_for_ever(home: str, url: str) -> None:
    """The program of a process that rebuilds the projections until it is killed."""
    with open_store(url, Path(home)) as store:
        while True:
            rebuild_projections(store, Path(home))


def test_a_killed_writer_leaves_only_complete_runs(store: Store, store_url: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    runs = write_sample_runs(home)
    expected = [project_run(run) for run in runs]
    pause = random.Random(19)

    for _ in range(20):
        writer = FORK_SERVER.Process(target=rebuild_for_ever, args=(str(home), store_url))
        writer.start()
        time.sleep(0.05 + pause.random() * 0.3)
        assert writer.pid is not None
        os.kill(writer.pid, signal.SIGKILL)
        writer.join(20)
        with store.read_transaction() as connection:
            for table in RUN_TABLES:
                for run, rows in zip(runs, expected, strict=True):
                    stored = stored_rows(connection, table, "default", run.id)
                    assert not stored or len(stored) == count_expected_rows(table.name, rows)

    problems = [problem for problem in check_database(store, home) if "differ" not in problem]
    assert problems == []

    write_rows(store, expected)
    first = read_all_rows(store, runs)
    rebuild_projections(store, home)

    assert read_all_rows(store, runs) == first
    assert check_database(store, home) == []


def count_expected_rows(table: str, rows: Any) -> int:
    """Return how many rows a run has in a table."""
    return 1 if table == "tasks" else len(getattr(rows, table))


async def test_a_finished_run_is_in_the_database(store: Store, store_url: str, tmp_path: Path) -> None:
    from suture.api import solve
    from suture.testing import ScriptedModel

    settings = Settings(
        paths=PathSettings(home=tmp_path / "home"), store=StoreSettings(url=store_url, namespace="team.a")
    )
    wrong, correct = "```python\ndef f(n):\n    return n\n```", "```python\ndef f(n):\n    return n + 1\n```"
    model = ScriptedModel([wrong, *[correct] * 4])
    result = await solve("Write f(n).\n\n>>> f(1)\n2\n", WriteOptions(settings=settings, model=model))
    assert result.outcome == "healed"
    with store.read_transaction() as connection:
        task = connection.execute(select(tasks)).one()
        steps = connection.execute(select(iterations).order_by(iterations.c.number)).all()
    assert (task.run_id, task.namespace, task.outcome) == (result.run_id, "team.a", "healed")
    assert [(step.move, step.passed, step.failed) for step in steps] == [("sample", 0, 1), ("sample", 1, 0)]
    assert steps[0].error_kind == "wrong_answer"
    assert "f(1); expected 2; got 1" in steps[0].error
    assert check_database(store, settings.paths.home) == []


async def test_a_failing_database_only_causes_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from suture.api import solve
    from suture.testing import ScriptedModel

    settings = Settings(
        paths=PathSettings(home=tmp_path / "home"),
        store=StoreSettings(url="postgresql://me:secret@127.0.0.1:1/x"),
    )
    model = ScriptedModel(["```python\ndef f(n):\n    return n + 1\n```"])
    result = await solve("Write f(n).\n\n>>> f(1)\n2\n", WriteOptions(settings=settings, model=model))
    assert result.outcome == "healed"
    assert find_run(settings.paths.home, result.run_id)
    (warning,) = caplog.messages
    assert "\n" not in warning
    assert "secret" not in warning
    assert f"run {result.run_id} is not in the database yet" in warning


@pytest.mark.parametrize(
    ("exception", "kind"),
    [
        ("TypeError: an integer is required", "TypeError"),
        ("json.decoder.JSONDecodeError: Expecting value", "JSONDecodeError"),
        ("Uncaught AssertionError [ERR_ASSERTION]: 1 !== 2", "wrong_answer"),
        ("shop.make.<locals>.StockError", "StockError"),
        ("Error: expected TypeError to be thrown", "Error"),
        ("Failed: DID NOT RAISE ValueError", "Failed"),
    ],
)
def test_the_kind_of_an_error_is_the_class_that_was_raised(exception: str, kind: str) -> None:
    fact = Counterexample(check_id="t", exception=exception)
    outcome = CheckOutcome(check_id="t", status="failed", evidence="nonce", counterexample=fact)
    assert first_error(Verdict(candidate="c", outcomes=(outcome,), evidence="nonce"))[0] == kind
