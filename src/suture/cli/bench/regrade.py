"""`suture bench regrade`: grade everything anew from the run folders, without a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from suture.cli.bench.options import Benchmark, Parallel
from suture.cli.terminal.faults import reports_faults
from suture.cli.terminal.options import Debug, Json, Set, load
from suture.cli.terminal.output import note

if TYPE_CHECKING:
    from suture.evals.rows import Row

__all__ = ["regrade_command"]


@reports_faults
def regrade_command(
    name: Benchmark,
    parallel: Parallel = 4,
    assignments: Set = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Grade every candidate anew from the run folders; no model is asked, and no old grade believed.

    The two solvers whose scores are known go first, as before a measurement. A row without a number gets one
    where its run has ended. Exit code 6: not one row has a number.
    """
    from suture.api import run_sync
    from suture.cli.bench.planning import bench_folder
    from suture.cli.bench.progress import Bar
    from suture.cli.bench.summary import require_a_number, tell_rows
    from suture.evals.running.regrading import regrade

    settings = load(Path(), assignments).settings
    folder = bench_folder(settings, name)
    with Bar() as bar:
        changed = run_sync(regrade(folder, settings, parallel=parallel, told=bar))
    tell_rows(folder.rows(), as_json=as_json)
    note(f"{len(changed)} of {len(folder.rows())} rows came out otherwise")
    for was, now in changed:
        note(f"  {now.problem} under {now.arm}: {_standing(was)}, now {_standing(now)}")
    require_a_number(folder.rows())


def _standing(row: Row) -> str:
    step = row.leader()
    if row.fault or row.felled:
        return row.fault or row.felled
    return step.grade.standing if step and step.grade else "not graded"
