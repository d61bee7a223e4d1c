"""Queries over runs and their summary, in both engines and through the command line."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
from sqlalchemy import select
from typer.testing import CliRunner, Result

from storage.database.sample_runs import home_with_runs, write_run
from suture.core.ledger import RunFolder, read_ledger
from suture.interfaces.cli.app import app
from suture.storage.database.projection_updates import catch_up
from suture.storage.database.run_queries import RunQuery, query_runs, summarise_runs
from suture.storage.database.store import Store
from suture.storage.database.tables import tasks

VOID = {"meta", "circle", "line", "path", "polyline", "rect"}


@pytest.fixture
def runs(store: Store, tmp_path: Path) -> list[RunFolder]:
    """Sample runs, and one whose statement mentions a mug."""
    found = home_with_runs(tmp_path / "home")
    found.append(write_run(tmp_path / "home", "2027-mug", 4, statement="cart_total of a mug: KeyError"))
    catch_up(store, tmp_path / "home")
    return found


def ids(store: Store, question: RunQuery, limit: int = 99) -> list[str]:
    return [row["run_id"] for row in query_runs(store, question, limit)[0]]


def test_all_runs_are_listed_newest_first(store: Store, runs: list[RunFolder]) -> None:
    began = {run.id: read_ledger(run.ledger_path).events[0].time_s for run in runs}
    everything = ids(store, RunQuery())
    assert sorted(everything) == sorted(began)
    assert [began[run] for run in everything] == sorted(began.values(), reverse=True)
    rows, total = query_runs(store, RunQuery(), 2)
    assert ([row["run_id"] for row in rows], total) == (everything[:2], len(runs))


def test_a_query_finds_matching_runs(store: Store, runs: list[RunFolder]) -> None:
    heals = {run.id for run in runs if run.id.endswith("-heal")}
    assert set(ids(store, RunQuery(kind="heal"))) == heals
    assert ids(store, RunQuery(words="MUG cart")) == ids(store, RunQuery(recipe="greedy")) == ["2027-mug"]
    assert ids(store, RunQuery(words="mug", kind="heal")) == []
    assert ids(store, RunQuery(words="mug spoon")) == []
    assert len(ids(store, RunQuery(outcome="healed"))) == len(runs)
    assert ids(store, RunQuery(model="100%")) == []
    began = max(read_ledger(run.ledger_path).events[0].time_s for run in runs)
    assert ids(store, RunQuery(since_s=began)) == ["2027-mug"]


def test_a_query_by_error_finds_its_runs(store: Store, runs: list[RunFolder]) -> None:
    found = set(ids(store, RunQuery(error="UNKNOWN")))  # the blobs of these ledgers are gone
    assert found
    assert "2027-mug" not in found
    assert ids(store, RunQuery(error="KeyError")) == []


def test_the_summary_is_the_sum_of_the_rows(store: Store, runs: list[RunFolder]) -> None:
    summary = summarise_runs(store, RunQuery())
    with store.read_transaction() as connection:
        rows = connection.execute(select(tasks)).all()
    assert summary["runs"] == len(runs) == len(rows)
    assert summary["outcomes"] == {"healed": len(runs)}
    assert (summary["pass_rate"], summary["decided"]) == (1.0, len(runs))
    assert summary["tokens"] == sum(row.tokens for row in rows)
    assert 0 < sum(summary["tokens_by_role"].values()) <= summary["tokens"]
    assert sum(day["runs"] for day in summary["by_day"].values()) == len(runs)
    of_heals = summarise_runs(store, RunQuery(kind="heal"))
    assert of_heals["runs"] == 3
    assert of_heals["seconds_by_phase"]["search"] > 0
    assert summarise_runs(store, RunQuery(words="nowhere"))["pass_rate"] is None


def call(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), env={"SUTURE_HOME": str(home), "NO_COLOR": "1"})


def test_history_by_the_command_line(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home_with_runs(home)
    write_run(home, "2027-mug", 4, statement="cart_total of a mug: KeyError")
    told = json.loads(call(home, "history", "--search", "mug", "--json").stdout)
    assert [(one["run"], one["task"]) for one in told] == [("2027-mug", "cart_total of a mug: KeyError")]
    plain = json.loads(call(home, "history", "--json").stdout)
    assert [one for one in plain if one["run"] == "2027-mug"] == told
    assert "no run matches" in call(home, "history", "--outcome", "stuck").output
    bad = call(home, "history", "--since", "yesterday")
    assert bad.exit_code == 2


class _Balanced(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        assert not [value for name, value in attrs if name in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


def test_metrics_by_the_command_line(tmp_path: Path) -> None:
    home = tmp_path / "home"
    runs = home_with_runs(home)
    write_run(home, "2027-mug", 4)
    table = call(home, "metrics")
    assert table.exit_code == 0, table.output
    assert f"100.0% of {len(runs) + 1} decided" in table.stdout
    summary = json.loads(call(home, "metrics", "--json").stdout)
    assert summary["runs"] == len(runs) + 1
    page = tmp_path / "metrics.html"
    assert call(home, "metrics", "--html", str(page)).exit_code == 0
    text = page.read_text()
    parser = _Balanced()
    parser.feed(text)
    assert parser.open == []
    assert parser.seen.count("svg") >= 4
    assert "script" not in parser.seen
    assert "http" not in text


def test_the_database_by_the_command_line(tmp_path: Path) -> None:
    home = tmp_path / "home"
    runs = home_with_runs(home)
    stats = json.loads(call(home, "db", "stats", "--json").stdout)
    assert stats["rows"]["tasks"] == len(runs)
    checked = call(home, "db", "check")
    assert (checked.exit_code, "is intact" in checked.stdout) == (0, True)
    (home / "suture.db").unlink()
    assert call(home, "db", "check").exit_code == 1
    assert f"{len(runs)} runs read" in call(home, "db", "rebuild").stdout
    assert call(home, "db", "check").exit_code == 0
