"""`suture bench report`: what one or several benchmark runs say."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suture.cli.terminal.faults import reports_faults
from suture.cli.terminal.options import Debug, Json, load
from suture.cli.terminal.output import answer, note

__all__ = ["report_command"]


@reports_faults
def report_command(
    runs: Annotated[list[str], typer.Argument(metavar="RUN", help="Benchmarks: their names, or folders.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Where to write it; `report` in the first one's folder."),
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Write the report of some runs as Markdown, JSON and one HTML page, and print it.

    Everything is computed from the runs' rows: no model is asked and no code is run. What differs in dataset,
    regime, model or cap stays apart.
    """
    from suture.cli.bench.planning import bench_folder
    from suture.evals.reports import (
        read_rows,
        report_json,
        report_markdown,
        report_of,
        sessions_of,
        write_report,
    )

    settings = load(Path(), looks=True).settings
    folders = [bench_folder(settings, name).path for name in runs]
    found = report_of(read_rows(folders), sessions_of(folders))
    for path in write_report(found, out or folders[0] / "report"):
        note(f"written: {path}")
    answer(report_json(found) if as_json else report_markdown(found))
