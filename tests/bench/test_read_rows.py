"""Rows and sessions are read from the folders of benchmarks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.made_rows import make_benchmark_rows, make_row, write_rows
from suture.bench.reports import load_sessions, read_rows
from suture.bench.running.bench_folder import BenchFolder
from suture.bench.running.benchmark_plan import BenchmarkPlan
from suture.errors import StorageError, UsageError


def test_written_rows_can_be_read(tmp_path: Path) -> None:
    rows = make_benchmark_rows(4)
    assert read_rows([write_rows(tmp_path / "a", rows)]) == rows
    copy = write_rows(tmp_path / "b", rows)
    assert read_rows([tmp_path / "a", copy]) == rows


def test_an_incomplete_row_is_ignored(tmp_path: Path) -> None:
    folder = write_rows(tmp_path / "a", [make_row(), make_row("greedy", 1)])
    original = (folder / "rows.jsonl").read_text()
    (folder / "rows.jsonl").write_text(original[:-20])
    assert read_rows([folder]) == [make_row()]


def test_two_different_rows_of_one_run_are_refused(tmp_path: Path) -> None:
    first_folder = write_rows(tmp_path / "a", [make_row()])
    second_folder = write_rows(tmp_path / "b", [make_row(right=False, run="later")])
    with pytest.raises(UsageError, match="two different rows of 'greedy' on 'Set/0' with seed 0"):
        read_rows([first_folder, second_folder])


def test_missing_and_damaged_rows_are_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no rows"):
        read_rows([tmp_path])

    folder = write_rows(tmp_path / "a", [make_row(), make_row("greedy", 1)])
    text = (folder / "rows.jsonl").read_text()
    (folder / "rows.jsonl").write_text(text.replace('"seed": 0', '"seed": "x"', 1))
    with pytest.raises(StorageError, match="line 1"):
        read_rows([folder])


def test_folders_with_the_same_name_are_distinguished(tmp_path: Path) -> None:
    plan = BenchmarkPlan(ids={}, arms=(), models=())
    folders = [tmp_path / name for name in ("a/same", "b/same", "other")]
    for folder in folders:
        folder.mkdir(parents=True)
        BenchFolder(folder).write_plan(replace(plan, sessions=({"in": str(folder.parent.name)},)))

    loaded_sessions = load_sessions(folders)

    assert loaded_sessions[str(folders[0])] == ({"in": "a"},)
    assert loaded_sessions[str(folders[1])] == ({"in": "b"},)
    assert "other" in loaded_sessions
