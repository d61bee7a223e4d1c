"""`suture bench track`: a benchmark in MLflow."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from suture.cli.bench.options import Benchmark
from suture.cli.terminal.faults import reports_faults
from suture.cli.terminal.options import Debug, Json, load
from suture.cli.terminal.output import answer, answer_json

__all__ = ["track_command"]

VARIABLE = "MLFLOW_TRACKING_URI"


@reports_faults
def track_command(
    benchmark: Benchmark,
    uri: Annotated[
        str | None,
        typer.Option("--uri", help=f"The tracking URI; {VARIABLE}, or an SQLite file of Suture's own."),
    ] = None,
    experiment: Annotated[str, typer.Option("--experiment", help="The experiment's name.")] = "suture",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Write a benchmark to MLflow: a run for it, and one below for each row, with artifacts and a trace.

    Everything is read from the benchmark's folder. What is there already is not written again, so that a
    benchmark which goes on can be tracked now and later.
    """
    from dataclasses import asdict

    from suture.cli.bench.planning import bench_folder
    from suture.evals.tracking import track_benchmark

    settings = load(Path(), looks=True).settings
    own = settings.paths.home / "mlflow" / "mlflow.db"
    where = uri or os.environ.get(VARIABLE)
    if not where:
        own.parent.mkdir(parents=True, exist_ok=True)
        where = f"sqlite:///{own.resolve()}"
    told = track_benchmark(bench_folder(settings, benchmark), uri=where, experiment=experiment)
    if as_json:
        answer_json(asdict(told))
        return
    answer(f"{told.uri}: experiment {told.experiment!r}, {told.rows} rows written, {told.known} were there")
