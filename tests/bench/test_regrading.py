"""Everything graded anew: what a grade that failed left out comes back, and nothing else changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.bench_tasks import LuckyModel, told_of, write_set
from suture.bench.rows import BenchmarkRow
from suture.bench.running.bench_folder import BenchFolder
from suture.bench.running.benchmark import run_benchmark
from suture.bench.running.benchmark_plan import BenchmarkPlan
from suture.bench.running.regrading import regrade
from suture.core.settings import Settings
from suture.errors import PrerequisiteError, StorageError
from suture.sandbox import BubblewrapSandbox

HUNGRY = "    room = bytearray(600 << 20)\n"
"""In a solution: it fails where the memory of a process is limited to less."""


@pytest.fixture
async def measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: BubblewrapSandbox
) -> BenchFolder:
    """Three tasks, of which the reference of the first needs much memory."""
    monkeypatch.setenv("SUTURE_DATA", str(tmp_path / "data"))
    ids = tuple(write_set(tmp_path / "data", 3))
    file = tmp_path / "data" / "sanitized-mbpp.jsonl"
    head = "def times_2(x):\\n"
    file.write_text(file.read_text().replace(head, head + HUNGRY.replace("\n", "\\n")))
    folder = BenchFolder(tmp_path / "bench")
    plan = BenchmarkPlan(ids={"mbpp": ids}, arms=("greedy",), models=("lucky:model",), caps=(700,))
    await run_benchmark(plan, folder, Settings(), opener=lambda settings, name: LuckyModel(tmp_path / "log"))
    assert [row.fault for row in folder.rows()] == [""] * 3
    return folder


def ungraded(row: BenchmarkRow, fault: str) -> BenchmarkRow:
    return replace(row, steps=tuple(replace(step, grade=None) for step in row.steps), fault=fault)


def little_memory() -> Settings:
    settings = Settings()
    return settings.model_copy(update={"sandbox": settings.sandbox.model_copy(update={"memory_mb": 512})})


@pytest.mark.heavy
async def test_rows_whose_grading_failed_get_their_number(measured: BenchFolder) -> None:
    rows = measured.rows()
    why = ("grading failed: the wall fell", "its own reference does not pass here: no reason", "")
    measured.write_rows([ungraded(row, fault) for row, fault in zip(rows, why, strict=True)])
    (measured.path / "controls.json").unlink()
    changed = await regrade(measured, Settings())
    assert told_of(measured.rows()) == told_of(rows)
    assert [was.fault for was, _ in changed] == list(why)
    assert measured.controls()[0] == ("mbpp", "MBPP/2")


@pytest.mark.heavy
async def test_a_task_whose_reference_fails_now_loses_its_number_and_gets_it_back(
    measured: BenchFolder,
) -> None:
    rows = measured.rows()
    await regrade(measured, little_memory())
    faults = {row.problem: row.fault for row in measured.rows()}
    assert faults.pop("MBPP/2").startswith("its own reference does not pass here: MemoryError")
    assert set(faults.values()) == {""}
    assert ("mbpp", "MBPP/2") not in measured.controls()
    await regrade(measured, Settings())
    assert told_of(measured.rows()) == told_of(rows)


@pytest.mark.heavy
async def test_nothing_is_graded_anew_where_no_reference_passes(measured: BenchFolder) -> None:
    rows = measured.rows()
    settings = Settings()
    no_time = settings.sandbox.model_copy(update={"check_timeout_s": 1e-6})
    with pytest.raises(PrerequisiteError, match="none of 3 references of 'mbpp' passes here"):
        await regrade(measured, settings.model_copy(update={"sandbox": no_time}))
    assert measured.rows() == rows


@pytest.mark.heavy
async def test_what_never_ran_or_never_ended_or_is_of_another_task_stays_as_it_was(
    measured: BenchFolder,
) -> None:
    first, second, third = measured.rows()
    never_ran = replace(ungraded(first, "its own reference does not pass here: no reason"), run="")
    crashed = ungraded(second, "ZeroDivisionError: a bug of the machinery")
    other = replace(ungraded(third, "grading failed: the wall fell"), problem_hash="of another task")
    measured.write_rows([never_ran, crashed, other])
    cut_short(measured, second)
    assert await regrade(measured, Settings()) == []
    assert measured.rows() == [never_ran, crashed, other]


@pytest.mark.heavy
async def test_a_number_whose_run_did_not_end_is_not_believed(measured: BenchFolder) -> None:
    row = measured.rows()[1]
    cut_short(measured, row)
    with pytest.raises(StorageError, match=f"the run '{row.run}' of '{row.problem}' did not end"):
        await regrade(measured, Settings())


def cut_short(folder: BenchFolder, row: BenchmarkRow) -> None:
    """Take the last event from a run's ledger."""
    ledger = folder.path / "runs" / row.run / "ledger.jsonl"
    kept = [line for line in ledger.read_text().splitlines(True) if '"run.finished"' not in line]
    ledger.write_text("".join(kept))
