"""Queries over runs and their summary, in both engines and through the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from typer.testing import CliRunner, Result

from storage.database.sample_runs import write_run, write_sample_runs
from suture.core.ledger import RunFolder, read_ledger
from suture.errors import UsageError
from suture.interfaces.cli.app import app
from suture.interfaces.narrative.run_list import make_run_title
from suture.storage.database.projection_updates import catch_up
from suture.storage.database.run_index import RunIndex, open_index_of_store
from suture.storage.database.run_queries import query_runs, summarise_runs
from suture.storage.database.run_query import RunQuery
from suture.storage.database.store import Store
from suture.storage.database.tables import tasks


@pytest.fixture
def index(store: Store, tmp_path: Path) -> Iterator[RunIndex]:
    """The open database, for queries."""
    with open_index_of_store(store, tmp_path / "home") as index:
        yield index


@pytest.fixture
def runs(store: Store, tmp_path: Path) -> list[RunFolder]:
    """Sample runs, and one whose statement mentions a mug."""
    sample_runs = write_sample_runs(tmp_path / "home")
    sample_runs.append(write_run(tmp_path / "home", "2027-mug", 4, statement="cart_total of a mug: KeyError"))
    catch_up(store, tmp_path / "home")
    return sample_runs


def find_run_ids(index: RunIndex, query: RunQuery, limit: int = 99) -> list[str]:
    """Return the ids of the runs that a query finds."""
    return [row["run_id"] for row in query_runs(index, query, limit)[0]]


def test_all_runs_are_listed_newest_first(index: RunIndex, runs: list[RunFolder]) -> None:
    start_times = {run.id: read_ledger(run.ledger_path).events[0].time_s for run in runs}
    run_ids = find_run_ids(index, RunQuery())
    assert sorted(run_ids) == sorted(start_times)
    assert [start_times[run] for run in run_ids] == sorted(start_times.values(), reverse=True)
    rows, total = query_runs(index, RunQuery(), 2)
    assert ([row["run_id"] for row in rows], total) == (run_ids[:2], len(runs))


def test_a_query_returns_how_many_tests_failed_at_first(index: RunIndex, runs: list[RunFolder]) -> None:
    failing = {row["run_id"]: row["failing"] for row in query_runs(index, RunQuery(), 99)[0]}
    mug = runs[-1].id  # a run that ran no tests before its change
    assert failing == {run.id: int(run.id != mug) for run in runs}


@pytest.mark.parametrize(
    ("failing", "test", "title"),
    [
        (1, "tests/test_cart.py::TestCart::test_total[1-2]", "cart: test_total[1-2]"),
        (1, "tests/test_cart.py::test_total[a::b]", "cart: test_total[a::b]"),
        (3, "a cart adds prices", "cart: a cart adds prices and 2 more"),
        (2, "", "cart: 2 failing tests"),
        (0, "", "heal cart"),
    ],
)
def test_a_repair_is_known_by_what_failed(failing: int, test: str, title: str) -> None:
    row = {"kind": "heal", "project": "/home/me/cart", "failing": failing, "failing_test": test}
    assert make_run_title(row) == title


def test_an_uploaded_archive_is_not_titled_by_its_hash() -> None:
    row = {"kind": "heal", "project": f"/srv/archives/{'0a' * 32}", "failing": 2, "failing_test": ""}
    assert make_run_title(row) == "archive: 2 failing tests"


def test_a_query_finds_matching_runs(index: RunIndex, runs: list[RunFolder]) -> None:
    heal_ids = {run.id for run in runs if run.id.endswith("-heal")}

    assert set(find_run_ids(index, RunQuery(kind="heal"))) == heal_ids
    assert (
        find_run_ids(index, RunQuery(search="MUG cart"))
        == find_run_ids(index, RunQuery(recipe="greedy"))
        == ["2027-mug"]
    )
    assert find_run_ids(index, RunQuery(search="mug", kind="heal")) == []
    assert find_run_ids(index, RunQuery(search="mug spoon")) == []
    assert len(find_run_ids(index, RunQuery(outcome="healed"))) == len(runs)
    assert find_run_ids(index, RunQuery(model="100%")) == []

    latest_start_s = max(read_ledger(run.ledger_path).events[0].time_s for run in runs)
    assert find_run_ids(index, RunQuery(since_s=latest_start_s)) == ["2027-mug"]


def test_a_query_by_error_finds_its_runs(index: RunIndex, runs: list[RunFolder]) -> None:
    # The sample runs have no blobs, so their errors are unknown.
    run_ids = set(find_run_ids(index, RunQuery(error="UNKNOWN")))
    assert run_ids
    assert "2027-mug" not in run_ids
    assert find_run_ids(index, RunQuery(error="KeyError")) == []


@pytest.mark.parametrize("values", [{"search": "a" * 201}, {"since_s": float("nan")}, {"since_s": 1e300}])
def test_a_query_that_no_run_can_match_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        RunQuery(**values)
    assert caught.value.remedy


def test_the_summary_is_the_sum_of_the_rows(index: RunIndex, store: Store, runs: list[RunFolder]) -> None:
    summary = summarise_runs(index, RunQuery())
    with store.read_transaction() as connection:
        rows = connection.execute(select(tasks)).all()

    assert summary["runs"] == len(runs) == len(rows)
    assert summary["outcomes"] == {"healed": len(runs)}
    assert (summary["pass_rate"], summary["decided"]) == (1.0, len(runs))
    assert summary["tokens"] == sum(row.tokens for row in rows)
    assert 0 < sum(summary["tokens_by_role"].values()) <= summary["tokens"]
    assert sum(day["runs"] for day in summary["by_day"].values()) == len(runs)

    heal_summary = summarise_runs(index, RunQuery(kind="heal"))
    assert heal_summary["runs"] == 3
    assert heal_summary["seconds_by_phase"]["search"] > 0
    assert summarise_runs(index, RunQuery(search="nowhere"))["pass_rate"] is None


def run_command(home: Path, *arguments: str) -> Result:
    """Run a command of the command line on a home folder."""
    return CliRunner().invoke(app, list(arguments), env={"SUTURE_HOME": str(home), "NO_COLOR": "1"})


def test_history_searches_runs(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write_sample_runs(home)
    write_run(home, "2027-mug", 4, statement="cart_total of a mug: KeyError")
    matches = json.loads(run_command(home, "history", "--search", "mug", "--json").stdout)

    assert [(run["run"], run["task"]) for run in matches] == [("2027-mug", "cart_total of a mug: KeyError")]

    all_runs = json.loads(run_command(home, "history", "--json").stdout)
    assert [run for run in all_runs if run["run"] == "2027-mug"] == matches
    heal_runs = json.loads(run_command(home, "history", "--kind", "heal", "--json").stdout)
    assert heal_runs == [run for run in all_runs if run["kind"] == "heal"]
    assert any(run["title"].endswith("failing test") for run in heal_runs)
    assert "no run matches" in run_command(home, "history", "--outcome", "stuck").output

    unknown = run_command(home, "history", "--outcome", "fine")
    assert unknown.exit_code == 2
    assert "healed, nothing_to_heal" in unknown.output
    invalid = run_command(home, "history", "--since", "yesterday")
    assert invalid.exit_code == 2


def test_metrics_are_printed_as_a_table_and_as_json(tmp_path: Path) -> None:
    home = tmp_path / "home"
    runs = write_sample_runs(home)
    write_run(home, "2027-mug", 4)
    table = run_command(home, "metrics")

    assert table.exit_code == 0, table.output
    assert f"100.0% of {len(runs) + 1} decided" in table.stdout

    summary = json.loads(run_command(home, "metrics", "--json").stdout)
    assert summary["runs"] == len(runs) + 1


def test_the_database_is_checked_and_rebuilt(tmp_path: Path) -> None:
    home = tmp_path / "home"
    runs = write_sample_runs(home)
    stats = json.loads(run_command(home, "db", "stats", "--json").stdout)
    assert stats["rows"]["tasks"] == len(runs)

    check = run_command(home, "db", "check")
    assert (check.exit_code, "is intact" in check.stdout) == (0, True)

    (home / "suture.db").unlink()
    assert run_command(home, "db", "check").exit_code == 1
    assert f"{len(runs)} runs read" in run_command(home, "db", "rebuild").stdout
    assert run_command(home, "db", "check").exit_code == 0
