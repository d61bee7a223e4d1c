"""`suture metrics`: what all runs add up to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from suture.interfaces.cli.commands.look_back.history import KindOf, ModelPart, Project, Since, since_s
from suture.interfaces.cli.terminal.faults import reports_faults
from suture.interfaces.cli.terminal.options import Json, Set, load
from suture.interfaces.cli.terminal.output import answer, answer_json, note, table

NUMBERS = (
    ("tokens_by_role", "tokens, {}"),
    ("seconds_by_phase", "seconds, {}"),
    ("errors", "errors, {}"),
    ("candidates", "candidates, {}"),
)


@reports_faults
def metrics(
    since: Since = "",
    kind: KindOf = "",
    model: ModelPart = "",
    project: Project = "",
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page with plots there.")
    ] = None,
    assignments: Set = None,
    as_json: Json = False,
) -> None:
    """Add up all runs: pass rate, seconds of iterations, tokens by role, kinds of errors, use of memory."""
    from suture.storage.database.database import store_of
    from suture.storage.database.looking_back import RunFilter, summary_of
    from suture.storage.database.recording import catch_up

    question = RunFilter(kind=kind, model=model, project=project, since_s=since_s(since))
    settings = load(Path(), assignments, looks=True).settings
    with store_of(settings) as store:
        catch_up(store, settings.paths.home)
        summary = summary_of(store, question)
    if html is not None:
        from suture.bench.reports.metrics_page import metrics_page
        from suture.core.safe_files import write_atomically

        page = metrics_page(summary, f"Suture: {summary['runs']:,} runs of {settings.store.namespace}")
        write_atomically(html, page.encode("utf-8", "replace"), remedy="name a file that you can write")
        note(f"the page is in {html}")
    if as_json:
        answer_json(summary)
    elif html is None:
        answer(table(list(_rows(summary))))


def _rows(summary: dict[str, Any]) -> Iterator[tuple[str, str]]:
    rate = summary["pass_rate"]
    yield "runs", f"{summary['runs']:,}"
    yield from ((f"  {outcome}", f"{count:,}") for outcome, count in summary["outcomes"].items())
    yield "pass rate", "unknown" if rate is None else f"{rate:.1%} of {summary['decided']:,} decided"
    yield "tokens", f"{summary['tokens']:,}"
    yield "money", f"${summary['money']:.4f}"
    run = summary["run_seconds"]
    yield "seconds of a run", f"median {run['median']:,}, p95 {run['p95']:,}"
    for move, spread in summary["iteration_seconds"].items():
        said = f"median {spread['median']:,}, p95 {spread['p95']:,}, {spread['count']:,} of them"
        yield f"seconds, iteration of {move}", said
    for key, label in NUMBERS:
        yield from ((label.format(name), f"{round(value, 1):,}") for name, value in summary[key].items())
    memory = summary["memory"]
    yield "memories", f"{memory['items']:,}"
    yield "memories shown", f"{memory['recalled']:,}, {memory['healed_recalled']:,} of these in healed runs"
    yield (
        "memories held back",
        f"{memory['withheld']:,}, {memory['healed_withheld']:,} of these in healed runs",
    )
