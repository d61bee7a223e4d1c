"""Regrading restores results whose grading failed, and changes nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.bench_tasks import LuckyModel, normalize_rows, write_mbpp_tasks
from suture.bench.rows import BenchmarkRow
from suture.bench.running.bench_folder import BenchFolder
from suture.bench.running.benchmark import run_benchmark
from suture.bench.running.benchmark_plan import BenchmarkPlan
from suture.bench.running.regrading import regrade
from suture.core.settings import Settings
from suture.errors import PrerequisiteError, StorageError
from suture.sandbox import BubblewrapSandbox

MEMORY_HUNGRY_LINE = "    room = bytearray(600 << 20)\n"
"""A line of a solution that fails if a process may use less memory."""


@pytest.fixture
async def measured_bench(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: BubblewrapSandbox
) -> BenchFolder:
    """Measure three tasks, of which the first has a reference that needs much memory."""
    monkeypatch.setenv("SUTURE_DATA", str(tmp_path / "data"))
    ids = tuple(write_mbpp_tasks(tmp_path / "data", 3))
    file = tmp_path / "data" / "sanitized-mbpp.jsonl"
    head = "def times_2(x):\\n"
    file.write_text(file.read_text().replace(head, head + MEMORY_HUNGRY_LINE.replace("\n", "\\n")))
    folder = BenchFolder(tmp_path / "bench")
    plan = BenchmarkPlan(ids={"mbpp": ids}, arms=("greedy",), models=("lucky:model",), caps=(700,))
    await run_benchmark(plan, folder, Settings(), opener=lambda settings, name: LuckyModel(tmp_path / "log"))
    assert [row.fault for row in folder.rows()] == [""] * 3
    return folder


def remove_grades(row: BenchmarkRow, fault: str) -> BenchmarkRow:
    """Return a row without grades and with a fault."""
    return replace(row, steps=tuple(replace(step, grade=None) for step in row.steps), fault=fault)


def make_low_memory_settings() -> Settings:
    """Return settings under which the memory-hungry reference fails."""
    settings = Settings()
    return settings.model_copy(update={"sandbox": settings.sandbox.model_copy(update={"memory_mb": 512})})


@pytest.mark.heavy
async def test_rows_whose_grading_failed_get_a_result(measured_bench: BenchFolder) -> None:
    rows = measured_bench.rows()
    faults = ("grading failed: the sandbox failed", "its own reference does not pass here: no reason", "")
    measured_bench.write_rows([remove_grades(row, fault) for row, fault in zip(rows, faults, strict=True)])
    (measured_bench.path / "controls.json").unlink()

    regraded = await regrade(measured_bench, Settings())

    assert normalize_rows(measured_bench.rows()) == normalize_rows(rows)
    assert [before.fault for before, _ in regraded] == list(faults)
    assert measured_bench.controls()[0] == ("mbpp", "MBPP/2")


@pytest.mark.heavy
async def test_a_result_is_lost_while_the_reference_fails_and_then_restored(
    measured_bench: BenchFolder,
) -> None:
    rows = measured_bench.rows()
    await regrade(measured_bench, make_low_memory_settings())
    fault_by_task = {row.problem: row.fault for row in measured_bench.rows()}
    assert fault_by_task.pop("MBPP/2").startswith("its own reference does not pass here: MemoryError")
    assert set(fault_by_task.values()) == {""}
    assert ("mbpp", "MBPP/2") not in measured_bench.controls()

    await regrade(measured_bench, Settings())
    assert normalize_rows(measured_bench.rows()) == normalize_rows(rows)


@pytest.mark.heavy
async def test_nothing_is_regraded_if_no_reference_passes(measured_bench: BenchFolder) -> None:
    rows = measured_bench.rows()
    settings = Settings()
    settings_without_time = settings.sandbox.model_copy(update={"check_timeout_s": 1e-6})
    with pytest.raises(PrerequisiteError, match="none of 3 references of 'mbpp' passes here"):
        await regrade(measured_bench, settings.model_copy(update={"sandbox": settings_without_time}))
    assert measured_bench.rows() == rows


@pytest.mark.heavy
async def test_rows_without_a_finished_run_or_of_another_task_stay_unchanged(
    measured_bench: BenchFolder,
) -> None:
    first, second, third = measured_bench.rows()
    never_ran = replace(remove_grades(first, "its own reference does not pass here: no reason"), run="")
    crashed = remove_grades(second, "ZeroDivisionError: a bug of the machinery")
    changed_task = replace(
        remove_grades(third, "grading failed: the sandbox failed"), problem_hash="of another task"
    )
    measured_bench.write_rows([never_ran, crashed, changed_task])

    remove_run_end(measured_bench, second)

    assert await regrade(measured_bench, Settings()) == []
    assert measured_bench.rows() == [never_ran, crashed, changed_task]


@pytest.mark.heavy
async def test_a_result_whose_run_did_not_end_is_an_error(measured_bench: BenchFolder) -> None:
    row = measured_bench.rows()[1]
    remove_run_end(measured_bench, row)
    with pytest.raises(StorageError, match=f"the run '{row.run}' of '{row.problem}' did not end"):
        await regrade(measured_bench, Settings())


def remove_run_end(folder: BenchFolder, row: BenchmarkRow) -> None:
    """Remove the last event from the ledger of a run."""
    ledger = folder.path / "runs" / row.run / "ledger.jsonl"
    lines = [line for line in ledger.read_text().splitlines(True) if '"run.finished"' not in line]
    ledger.write_text("".join(lines))
