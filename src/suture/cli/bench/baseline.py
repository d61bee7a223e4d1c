"""`suture bench baseline`: fix the list of tasks that a gate tests."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suture.cli.bench.options import Benchmark
from suture.cli.terminal.faults import reports_faults
from suture.cli.terminal.options import Debug, load
from suture.cli.terminal.output import answer, printable

__all__ = ["baseline_command"]


@reports_faults
def baseline_command(
    run: Benchmark,
    path: Annotated[Path, typer.Argument(metavar="BASELINE.json", help="The file to write.")],
    arm: Annotated[
        str, typer.Option("--arm", metavar="RECIPE", help="Whose results, where there are several.")
    ] = "",
    cap: Annotated[
        int | None, typer.Option("--cap", metavar="TOKENS", help="Of which cap, where there are several.")
    ] = None,
    tasks: Annotated[int | None, typer.Option("--tasks", metavar="N", min=1, help="At most so many.")] = None,
    debug: Debug = False,
) -> None:
    """Write down which tasks `suture bench gate` tests, in which order, and what was solved of them.

    The order follows the hash of the tasks' ids, so that nobody chooses it.
    """
    from suture.cli.bench.planning import bench_folder
    from suture.evals.gate.judging import record_baseline, write_baseline
    from suture.evals.reports import read_rows

    folder = bench_folder(load(Path(), looks=True).settings, run)
    rows = [row for row in read_rows([folder.path]) if cap in (None, row.cap)]
    sessions = folder.plan().sessions if folder.exists else ()
    made = record_baseline(rows, arm, tasks, sessions[-1] if sessions else None)
    write_baseline(made, path)
    solved = sum(task.solved for task in made.tasks)
    answer(printable(f"{path}: {made.arm} solved {solved} of {len(made.tasks)} tasks ({made.rate:.1%})"))
