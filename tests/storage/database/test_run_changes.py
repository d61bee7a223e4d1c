"""Runs that have changed are found without comparing the ledgers of all runs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from storage.database.sample_runs import write_run
from suture.core.change_log import CHANGE_LOG
from suture.core.ledger import Ledger, RunFolder
from suture.core.ledger.kinds import RunResumed, TreeApplied
from suture.core.settings import PathSettings, Settings, StoreSettings
from suture.interfaces.narrative import run_list
from suture.interfaces.narrative.run_list import list_matching_runs
from suture.storage.database import current_index, run_changes
from suture.storage.database.current_index import open_current_index
from suture.storage.database.run_changes import find_run_changes
from suture.storage.database.run_index import open_index_of_store
from suture.storage.database.run_query import RunQuery
from suture.storage.database.store import open_store

APPLIED = TreeApplied(root="/p", files=("a.py",), undo="undo.patch")
WRITER = """
import sys, time
from pathlib import Path
from suture.core.ledger import Ledger
from suture.core.ledger.kinds import RunResumed
with Ledger(Path(sys.argv[1])) as ledger:
    ledger.append(RunResumed(next_nodes=(), project=""))
    print("written", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def settings(store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings with a home of five ended runs, all of which are in the database and older than a moment."""
    monkeypatch.setattr(run_changes, "MAX_UNSAVED_COMPARISONS", 0)
    home = tmp_path / "home"
    for number in range(5):
        make_older(write_run(home, f"2027-{number}", 4))
    settings = Settings(paths=PathSettings(home=home), store=StoreSettings(url=store_url))
    assert set(read_outcomes(settings).values()) == {"healed"}
    return settings


def make_older(run: RunFolder) -> None:
    """Give a ledger a time at which a copy of it would be complete."""
    past_s = time.time() - 100
    os.utime(run.ledger_path, (past_s, past_s))


def find_run(settings: Settings, number: int) -> RunFolder:
    """Return one of the five runs."""
    return RunFolder(settings.paths.home / "runs" / f"2027-{number}")


def read_outcomes(settings: Settings) -> dict[str, str]:
    """Return run id -> outcome and delivery, as a query finds them."""
    with open_current_index(settings) as (index, unread):
        assert unread == 0
        return {
            run: " ".join(filter(None, state))
            for run, *state in index.execute("SELECT run_id, outcome, delivery FROM tasks")
        }


def count_compared(settings: Settings) -> int:
    """Return how many ledgers the next query compares with their rows."""
    home = settings.paths.home
    with open_store(settings.store.url, home) as store, open_index_of_store(store, home) as index:
        return find_run_changes(index, home).compared


def test_only_runs_of_the_log_are_compared(settings: Settings) -> None:
    assert count_compared(settings) == 0
    with Ledger(find_run(settings, 2).ledger_path) as ledger:
        ledger.append(APPLIED)

    assert count_compared(settings) == 1
    assert read_outcomes(settings)["2027-2"] == "healed applied"
    make_older(find_run(settings, 2))
    read_outcomes(settings)
    assert count_compared(settings) == 0


def test_a_run_is_compared_as_long_as_a_process_has_its_ledger_open(settings: Settings) -> None:
    run = find_run(settings, 2)
    with Ledger(run.ledger_path) as ledger:
        assert read_outcomes(settings)["2027-2"] == "healed"
        make_older(run)
        assert count_compared(settings) == 1
        ledger.append(APPLIED)
        assert read_outcomes(settings)["2027-2"] == "healed applied"


def test_a_killed_run_is_stopped(settings: Settings) -> None:
    ledger = find_run(settings, 1).ledger_path
    with subprocess.Popen([sys.executable, "-c", WRITER, ledger], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"written\n"
        assert read_outcomes(settings)["2027-1"] == "running"
        writer.send_signal(signal.SIGKILL)
    assert read_outcomes(settings)["2027-1"] == "stopped"

    with Ledger(ledger) as resumed:
        resumed.append(RunResumed(next_nodes=(), project=""))
        assert read_outcomes(settings)["2027-1"] == "running"


def test_a_new_run_does_not_make_a_query_compare_the_others(settings: Settings) -> None:
    make_older(write_run(settings.paths.home, "2028-new", 4))
    assert count_compared(settings) == 1
    assert read_outcomes(settings)["2028-new"] == "healed"
    read_outcomes(settings)
    assert count_compared(settings) == 0


def test_a_run_that_arrives_in_pieces_is_complete_at_last(settings: Settings) -> None:
    arriving = RunFolder(settings.paths.home / "runs" / "2029-copied")
    arriving.path.mkdir()
    assert "2029-copied" not in read_outcomes(settings)

    content = find_run(settings, 0).ledger_path.read_bytes()
    for end, outcome in ((len(content) // 2, "stopped"), (len(content), "healed")):
        arriving.ledger_path.write_bytes(content[:end])
        make_older(arriving)
        assert read_outcomes(settings)["2029-copied"] == outcome


def test_deleted_runs_are_noticed_in_the_file_beside_them(settings: Settings, store_url: str) -> None:
    own = settings.model_copy(update={"store": StoreSettings()})
    assert len(read_outcomes(own)) == 5
    for deleted in (0, 3):
        shutil.rmtree(find_run(settings, deleted).path)
    shutil.copytree(find_run(settings, 1).path, settings.paths.home / "runs" / "2029-copied")

    assert sorted(read_outcomes(own)) == ["2027-1", "2027-2", "2027-4", "2029-copied"]
    # A shared database keeps the rows, because the run may be on another machine.
    assert len(read_outcomes(settings)) == 6


def test_each_database_follows_the_log_on_its_own(settings: Settings) -> None:
    own = settings.model_copy(update={"store": StoreSettings()})
    read_outcomes(own)
    with Ledger(find_run(settings, 2).ledger_path) as ledger:
        ledger.append(APPLIED)
    for each in (own, settings):
        assert read_outcomes(each)["2027-2"] == "healed applied"


@pytest.mark.parametrize("damage", ["removed", "replaced", "cut"])
def test_without_the_log_all_ledgers_are_compared(settings: Settings, damage: str) -> None:
    log = settings.paths.home / CHANGE_LOG
    ledger = find_run(settings, 2).ledger_path
    with Ledger(ledger) as writer:
        writer.append(APPLIED)
    make_older(find_run(settings, 2))
    if damage == "removed":
        log.unlink()
    elif damage == "replaced":
        log.write_bytes(b"0" * 32 + b"\n" + b"another\n" * 99)
    else:
        log.write_bytes(log.read_bytes()[:40])
    assert count_compared(settings) == 5
    assert read_outcomes(settings)["2027-2"] == "healed applied"
    assert count_compared(settings) <= 1


def test_a_copy_of_a_home_is_compared_with_its_database(tmp_path: Path, settings: Settings) -> None:
    own = settings.model_copy(update={"store": StoreSettings()})
    read_outcomes(own)
    copy = tmp_path / "copy"
    shutil.copytree(settings.paths.home, copy)
    ledger = copy / "runs" / "2027-4" / "ledger.jsonl"
    ledger.write_text(ledger.read_text().partition("\n")[0] + "\n")
    make_older(RunFolder(ledger.parent))

    copied = own.model_copy(update={"paths": PathSettings(home=copy)})
    assert read_outcomes(copied)["2027-4"] == "stopped"


def test_a_ledger_that_another_program_replaced_is_noticed_when_its_run_is_listed(settings: Settings) -> None:
    ledger = find_run(settings, 2).ledger_path
    ledger.write_text(ledger.read_text() + "\n")
    ledger.write_text(ledger.read_text().replace('"outcome":"healed"', '"outcome":"stuck"' + " " * 9))
    make_older(find_run(settings, 2))
    assert count_compared(settings) == 0

    found = list_matching_runs(settings, RunQuery(kind="write"), 9)
    assert {run["run"]: run["outcome"] for run in found.runs}["2027-2"] == "stuck"


def test_many_changed_runs_are_read_in_the_background(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(current_index, "MAX_RUNS_READ_AT_ONCE", 10)
    monkeypatch.setattr(current_index, "MAX_RUNS_READ_EARLY", 3)
    monkeypatch.setattr(run_list, "MAX_RUNS_WITHOUT_INDEX", 10)
    for number in range(20):
        write_run(settings.paths.home, f"2028-{number:02}", 4)

    found = list_matching_runs(settings, RunQuery(kind="write"), 99)
    assert found.unindexed == 17
    assert [run["run"] for run in found.runs[:3]] == ["2028-19", "2028-18", "2028-17"]
    assert len(found.runs) == found.total == 8

    deadline_s = time.monotonic() + 60
    while (found := list_matching_runs(settings, RunQuery(kind="write"), 99)).unindexed:
        assert time.monotonic() < deadline_s
        time.sleep(0.1)
    assert found.total == 25
    assert list_matching_runs(settings, RunQuery(), 5).total == 25
