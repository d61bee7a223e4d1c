"""Commands on finished benchmarks: report, compare, baseline, regrade and track."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from suture.interfaces.cli.bench.plan_options import Benchmark, Parallel
from suture.interfaces.cli.terminal.command_options import Assignments, Json, load_command_settings
from suture.interfaces.cli.terminal.error_reporting import handle_errors
from suture.interfaces.cli.terminal.terminal_output import (
    format_table,
    print_answer,
    print_json,
    print_note,
    print_raw,
    print_text,
)

if TYPE_CHECKING:
    from suture.bench.rows import BenchmarkRow
    from suture.bench.running.bench_folder import BenchFolder

TRACKING_VARIABLE = "MLFLOW_TRACKING_URI"
"""MLflow's own environment variable."""


@handle_errors
def report_command(
    runs: Annotated[list[str], Argument(metavar="RUN", help="Benchmarks: their names or folders.")],
    out: Annotated[
        Path | None,
        Option(
            "--out",
            metavar="DIR",
            help="The folder to write; default: `report` in the first benchmark's folder.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the report of some benchmarks as Markdown and JSON, and print it.

    Everything is computed from the benchmarks' rows; no model is asked and no code is run. Rows that differ
    in dataset, regime, model or cap are reported separately.
    """
    from suture.bench.reports import (
        build_report,
        load_sessions,
        read_rows,
        render_json_report,
        render_markdown_report,
        write_report,
    )

    folders = [folder.path for folder in _bench_folders(runs)]
    report = build_report(read_rows(folders), load_sessions(folders))
    for path in write_report(report, out or folders[0] / "report"):
        print_note(f"written: {path}")
    print_raw(render_json_report(report) if as_json else render_markdown_report(report))


@handle_errors
def compare_command(
    first: Annotated[str, Argument(metavar="A", help="A benchmark: its name or its folder.")],
    second: Annotated[str, Argument(metavar="B", help="Another benchmark, or the same.")],
    arms: Annotated[
        list[str] | None,
        Option(
            "--arm",
            metavar="ARM",
            help="Once: compare this arm in both; twice: the first in A with the second in B.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Test whether two benchmarks solve different numbers of the same tasks, by McNemar's exact test.

    Tasks that only one of them ran are excluded and counted. Without --arm, every arm is compared with itself
    in the other benchmark; p-values are adjusted (Holm) for all comparisons.
    """
    from suture.bench.reports import compare_runs, comparison_table, read_rows, render_arm_comparison
    from suture.core.records import encode_record

    folders = [folder.path for folder in _bench_folders((first, second))]
    names = ("A", "B") if folders[0].name == folders[1].name else (folders[0].name, folders[1].name)
    sections = compare_runs(read_rows(folders[:1]), read_rows(folders[1:]), arms or (), names)
    if as_json:
        print_json([encode_record(section) for section in sections])
        return
    for section in sections:
        print_text(section.title)
        for line in (*map(render_arm_comparison, section.comparisons), *section.warnings):
            print_text(f"  {line}")
        table = comparison_table(section.comparisons)
        print_text(format_table([table.head, *table.rows]) + "\n")


@handle_errors
def baseline_command(
    run: Benchmark,
    path: Annotated[Path, Argument(metavar="BASELINE.json", help="The file to write.")],
    arm: Annotated[str, Option("--arm", metavar="RECIPE", help="The arm, if there are several.")] = "",
    cap: Annotated[
        int | None, Option("--cap", metavar="TOKENS", help="The token cap, if there are several.")
    ] = None,
    tasks: Annotated[int | None, Option("--tasks", metavar="N", min=1, help="Max number of tasks.")] = None,
) -> None:
    """Record which tasks `suture bench gate` tests, in which order, and which of them were solved.

    The order follows the hash of the tasks' ids, so that nobody can choose it.
    """
    from suture.bench.gate.gate_decision import record_baseline, write_baseline
    from suture.bench.reports import read_rows

    (folder,) = _bench_folders([run])
    rows = [row for row in read_rows([folder.path]) if cap in (None, row.cap)]
    sessions = folder.plan().sessions if folder.exists else ()
    # A benchmark has one session for each call that measured a part of it; the newest one is recorded.
    baseline = record_baseline(rows, arm, tasks, sessions[-1] if sessions else None)
    write_baseline(baseline, path)
    solved = sum(task.solved for task in baseline.tasks)
    print_text(f"{path}: {baseline.arm} solved {solved} of {len(baseline.tasks)} tasks ({baseline.rate:.1%})")


@handle_errors
def regrade_command(
    name: Benchmark,
    parallel: Parallel = 4,
    assignments: Assignments = None,
    as_json: Json = False,
) -> None:
    """Grade every candidate again from the run folders; no model is asked, and old grades are ignored.

    The two solvers with known scores run first, as before a measurement. A row without a number gets one if
    its run has ended. Exit code 6: no row has a number.
    """
    from suture.api import run_sync
    from suture.bench.running.regrading import regrade
    from suture.interfaces.cli.bench.bench_progress import BenchProgress, print_rows, require_a_number
    from suture.interfaces.cli.bench.plan_options import bench_folder

    settings = load_command_settings(Path(), assignments).settings
    folder = bench_folder(settings, name)
    with BenchProgress() as progress:
        changes = run_sync(regrade(folder, settings, parallel=parallel, on_progress=progress))
    print_rows(folder.rows(), as_json=as_json)
    print_note(f"{len(changes)} of {len(folder.rows())} rows changed")
    for old, new in changes:
        print_note(f"  {new.problem} under {new.arm}: {_grade_text(old)}, now {_grade_text(new)}")
    require_a_number(folder.rows())


def _bench_folders(names: Iterable[str]) -> list[BenchFolder]:
    """Return the folders of benchmarks, given by their names or folders."""
    from suture.interfaces.cli.bench.plan_options import bench_folder

    settings = load_command_settings(Path(), read_only=True).settings
    return [bench_folder(settings, name) for name in names]


def _grade_text(row: BenchmarkRow) -> str:
    if row.fault or row.sandbox_failure:
        return row.fault or row.sandbox_failure
    step = row.best_step()
    return step.grade.status if step and step.grade else "not graded"


@handle_errors
def track_command(
    benchmark: Benchmark,
    uri: Annotated[
        str | None,
        Option(
            "--uri",
            help=f"The tracking URI; default: {TRACKING_VARIABLE}, or an SQLite file in Suture's home.",
        ),
    ] = None,
    experiment: Annotated[str, Option("--experiment", help="The experiment's name.")] = "suture",
    as_json: Json = False,
) -> None:
    """Write a benchmark to MLflow: one run for it, and a child run for each row, with artifacts and a trace.

    Everything is read from the benchmark's folder. Existing rows are not written again, so a benchmark that
    is still in progress can be tracked repeatedly.
    """
    from dataclasses import asdict

    from suture.bench.mlflow_tracking import track_benchmark
    from suture.interfaces.cli.bench.plan_options import bench_folder

    settings = load_command_settings(Path(), read_only=True).settings
    tracking_uri = uri or os.environ.get(TRACKING_VARIABLE)
    if not tracking_uri:
        database = settings.paths.home / "mlflow" / "mlflow.db"
        database.parent.mkdir(parents=True, exist_ok=True)
        tracking_uri = f"sqlite:///{database.resolve()}"
    tracked = track_benchmark(bench_folder(settings, benchmark), uri=tracking_uri, experiment=experiment)
    counts = f"{tracked.rows} rows written, {tracked.known} existed already"
    text = f"{tracked.uri}: experiment {tracked.experiment!r}, {counts}"
    print_answer(asdict(tracked), text, as_json=as_json)
