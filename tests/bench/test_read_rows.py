"""Rows and circumstances from the folders of benchmarks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.made_rows import benchmark_rows, row, write_rows
from suture.bench.reports import load_sessions, read_rows
from suture.bench.running.bench_folder import BenchFolder
from suture.bench.running.benchmark_plan import BenchmarkPlan
from suture.errors import StorageError, UsageError


def test_rows_are_read_back_whole(tmp_path: Path) -> None:
    rows = benchmark_rows(4)
    assert read_rows([write_rows(tmp_path / "a", rows)]) == rows
    again = write_rows(tmp_path / "b", rows)
    assert read_rows([tmp_path / "a", again]) == rows


def test_a_row_that_is_being_written_is_passed_over(tmp_path: Path) -> None:
    folder = write_rows(tmp_path / "a", [row(), row("greedy", 1)])
    whole = (folder / "rows.jsonl").read_text()
    (folder / "rows.jsonl").write_text(whole[:-20])
    assert read_rows([folder]) == [row()]


def test_two_answers_to_one_question_are_refused(tmp_path: Path) -> None:
    one = write_rows(tmp_path / "a", [row()])
    other = write_rows(tmp_path / "b", [row(right=False, run="later")])
    with pytest.raises(UsageError, match="two different rows of 'greedy' on 'Set/0' with seed 0"):
        read_rows([one, other])


def test_folders_without_rows_and_damaged_rows_are_faults(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no rows"):
        read_rows([tmp_path])
    folder = write_rows(tmp_path / "a", [row(), row("greedy", 1)])
    text = (folder / "rows.jsonl").read_text()
    (folder / "rows.jsonl").write_text(text.replace('"seed": 0', '"seed": "x"', 1))
    with pytest.raises(StorageError, match="line 1"):
        read_rows([folder])


def test_folders_of_one_name_are_told_apart(tmp_path: Path) -> None:
    plan = BenchmarkPlan(ids={}, arms=(), models=())
    folders = [tmp_path / place for place in ("a/same", "b/same", "other")]
    for folder in folders:
        folder.mkdir(parents=True)
        BenchFolder(folder).write_plan(replace(plan, sessions=({"in": str(folder.parent.name)},)))
    made = load_sessions(folders)
    assert made[str(folders[0])] == ({"in": "a"},)
    assert made[str(folders[1])] == ({"in": "b"},)
    assert "other" in made
