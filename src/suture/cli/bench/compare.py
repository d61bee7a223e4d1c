"""`suture bench compare`: two benchmark runs, task by task."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suture.cli.terminal.faults import reports_faults
from suture.cli.terminal.options import Debug, Json, load
from suture.cli.terminal.output import answer, answer_json, printable, table

__all__ = ["compare_command"]


@reports_faults
def compare_command(
    first: Annotated[str, typer.Argument(metavar="A", help="A benchmark: its name, or its folder.")],
    second: Annotated[str, typer.Argument(metavar="B", help="Another, or the same.")],
    arms: Annotated[
        list[str] | None,
        typer.Option(
            "--arm",
            metavar="ARM",
            help="Once: this arm in both; twice: the first in A against the second in B.",
        ),
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Say whether two runs solve different numbers of the same tasks, by McNemar's exact test.

    Tasks that only one of them ran are left out and counted. Without --arm every arm is held against itself
    in the other run; p-values are adjusted (Holm) for all comparisons made.
    """
    from suture.cli.bench.planning import bench_folder
    from suture.evals.reports import compare_runs, comparison_table, in_words, read_rows
    from suture.records import to_plain

    settings = load(Path(), looks=True).settings
    folders = [bench_folder(settings, name).path for name in (first, second)]
    names = ("A", "B") if folders[0].name == folders[1].name else (folders[0].name, folders[1].name)
    found = compare_runs(read_rows(folders[:1]), read_rows(folders[1:]), arms or (), names)
    if as_json:
        answer_json([to_plain(one) for one in found])
        return
    for one in found:
        answer(printable(one.title))
        for line in (*map(in_words, one.comparisons), *one.warnings):
            answer(printable(f"  {line}"))
        shown = comparison_table(one.comparisons)
        answer(table([shown.head, *shown.rows]) + "\n")
