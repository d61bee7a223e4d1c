"""`suture history` lists runs, and `suture metrics` summarizes them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Annotated, Any

from typer import Option

from suture.errors import UsageError
from suture.interfaces.cli.terminal.command_options import Assignments, Json, load_command_settings
from suture.interfaces.cli.terminal.error_reporting import handle_errors
from suture.interfaces.cli.terminal.line_folding import MAX_PADDED_CELL, cell_width
from suture.interfaces.cli.terminal.terminal_output import (
    format_table,
    print_json,
    print_note,
    print_text,
    stdout_columns,
)
from suture.interfaces.narrative.plain_text import format_count
from suture.interfaces.narrative.wording import ORIGIN_TEXTS, PHASE_TEXTS, name_outcome, render_moves

COLUMNS = ("run", "folder", "task", "outcome", "spent", "when")
MIN_TITLE_CHARS = 28
"""With less room for the titles, the folder's column is left out."""
MIN_TITLE_CHARS_WITHOUT_FOLDER = 8
"""With an outcome such as `budget exhausted`, tokens and money, a row then still fits into 80 columns."""
MAX_TITLE_CHARS = 80
MAX_FOLDER_CHARS = 20
"""Maximum number of characters of a title, and of a folder's name. Both limits are chosen by judgement."""
COLUMN_GAP = 2
SHORT_ID_CHARS = 6
USUAL_BEGINNING = re.compile(
    r"(?:write|create) an? (?:python )?function (?:called |named |that )?", re.IGNORECASE
)
"""What most tasks begin with, so that it tells none of them from the others."""
SinceOption = Annotated[
    str, Option("--since", metavar="DAY", help="Started on this day or later, such as 2026-11-01 or 7d.")
]
Project = Annotated[str, Option("--project", metavar="PART", help="Part of the project's folder name.")]
ModelPart = Annotated[str, Option("--model", metavar="PART", help="Part of the model's name.")]
RunKind = Annotated[str, Option("--kind", metavar="KIND", help="`write` or `heal`.")]
BREAKDOWNS: dict[str, tuple[str, Mapping[str, str]]] = {
    "tokens_by_role": ("tokens of the role", {}),
    "seconds_by_phase": ("seconds in all", PHASE_TEXTS),
    "errors": ("errors", {}),
    "candidates": ("candidates", {str(origin): text for origin, text in ORIGIN_TEXTS.items()}),
}
"""Keys of the summary that hold a number for each role, phase or kind -> the label of their rows, and the words for
these."""


@handle_errors
def history(
    limit: Annotated[
        int, Option("--limit", "-n", metavar="N", min=1, help="Max number of runs to list.")
    ] = 20,
    search: Annotated[
        str,
        Option("--search", "-s", metavar="WORDS", help="Words that all appear in the task or its errors."),
    ] = "",
    outcome: Annotated[str, Option("--outcome", metavar="OUTCOME", help="Such as healed.")] = "",
    kind: RunKind = "",
    language: Annotated[str, Option("--language", metavar="NAME", help="Such as python.")] = "",
    recipe: Annotated[str, Option("--recipe", metavar="NAME", help="The recipe.")] = "",
    model: ModelPart = "",
    project: Project = "",
    error: Annotated[
        str, Option("--error", metavar="KIND", help="Such as KeyError, wrong_answer or timeout.")
    ] = "",
    since: SinceOption = "",
    assignments: Assignments = None,
    as_json: Json = False,
) -> None:
    """List the runs, newest first, with task, outcome, spend and time; --json has the rest.

    The outcome says whether a healed result is doubtful (undecided, unverified, unsure), and whether the change
    is applied to your project, committed or undone.
    """
    since_s = parse_since(since)
    from suture.interfaces.narrative.run_list import describe_unindexed, list_matching_runs
    from suture.storage.database.run_query import RunQuery

    query = RunQuery(
        search=search,
        outcome=outcome.replace(" ", "_"),  # as the list names it
        kind=kind,
        language=language,
        recipe=recipe,
        model=model,
        project=project,
        error=error,
        since_s=since_s,
    )
    settings = load_command_settings(Path(), assignments, read_only=True).settings
    found = list_matching_runs(settings, query, limit)
    if as_json:
        print_json(found.runs)
    elif found.runs:
        print_text(format_table(history_rows(found.runs, stdout_columns())))
    elif query.is_set:
        print_note("no run matches")
    else:
        print_note("no runs yet; start one with `suture run --example`")
    if found.total > limit and not as_json:
        print_note(f"{found.total - limit} older runs are not listed (--limit)")
    if found.unindexed:
        print_note(describe_unindexed(found.unindexed))


def parse_since(day: str) -> float | None:
    """Return the start of a day in seconds since the epoch, or `None` for an empty string."""
    if not day:
        return None
    if day[:-1].isdecimal() and day.endswith("d"):
        return time.time() - int(day[:-1]) * 86_400
    from datetime import datetime

    try:
        return datetime.fromisoformat(day).timestamp()
    except (ValueError, OverflowError, OSError) as fault:
        raise UsageError(
            f"--since {day!r} is not a day", remedy="use a value such as 2026-11-01 or 7d"
        ) from fault


def history_rows(runs: Sequence[dict[str, Any]], columns: int | None) -> list[tuple[str, ...]]:
    """Return the rows of the table of runs, with titles as long as the terminal allows.

    On a narrow terminal, the folder's column is left out.

    Args:
        columns: Width of the terminal; `None` if there is none.
    """
    rows = [COLUMNS, *map(_row, runs)]
    widths = [max(map(cell_width, column)) for column in zip(*rows, strict=True)]
    task = COLUMNS.index("task")
    widths[task] = 0
    for left_out in ((), (COLUMNS.index("folder"),)):
        shown = [number for number in range(len(COLUMNS)) if number not in left_out]
        used = sum(widths[number] for number in shown) + COLUMN_GAP * (len(shown) - 1)
        # Without a terminal, a longer cell would shift the other columns of its row.
        available = MAX_PADDED_CELL if columns is None else min(columns - used, MAX_TITLE_CHARS)
        if available >= MIN_TITLE_CHARS:
            break
    limits = {task: max(available, MIN_TITLE_CHARS_WITHOUT_FOLDER)}
    return [tuple(_shorten(row[n], limits.get(n, MAX_TITLE_CHARS)) for n in shown) for row in rows]


def _shorten(text: str, max_columns: int) -> str:
    if cell_width(text) <= max_columns:
        return text
    while cell_width(text) > max_columns - 3:
        text = text[:-1]
    return f"{text.rstrip()}..."


def _row(run: dict[str, Any]) -> tuple[str, ...]:
    spend, started_s, folder = run["spend"], run["started_s"], PurePath(run["project"]).name
    title = USUAL_BEGINNING.sub("", run["title"].removeprefix(f"{folder}: "), count=1)
    if run["fork_of"]:
        title = f"fork of {run['fork_of'][-SHORT_ID_CHARS:]} at {run['fork_at']}: {title}"
    if run["replay_of"]:
        title = f"replay of {run['replay_of'][-SHORT_ID_CHARS:]}: {title}"
    spent = f"{spend['seconds']:.0f} s"
    if spend["tokens"]:
        spent += f", {spend['tokens']:,} tokens"
    if spend["money"]:
        spent += f", ${spend['money']:.4f}"
    start = time.strftime("%m-%d %H:%M", time.localtime(started_s)) if started_s is not None else ""
    run_id = run["run"][-SHORT_ID_CHARS:]
    outcome = name_outcome(run["outcome"], run["kind"])
    outcome = ", ".join(filter(None, (outcome, run["doubt"], run["delivery"])))
    return (run_id, _shorten(folder, MAX_FOLDER_CHARS), " ".join(title.split()), outcome, spent, start)


@handle_errors
def metrics(
    since: SinceOption = "",
    kind: RunKind = "",
    model: ModelPart = "",
    project: Project = "",
    assignments: Assignments = None,
    as_json: Json = False,
) -> None:
    """Summarize all runs: pass rate, seconds, tokens by role, kinds of errors."""
    from suture.interfaces.narrative.run_list import describe_unindexed, open_indexed_runs
    from suture.storage.database.run_queries import summarise_runs
    from suture.storage.database.run_query import RunQuery

    query = RunQuery(kind=kind, model=model, project=project, since_s=parse_since(since))
    settings = load_command_settings(Path(), assignments, read_only=True).settings
    with open_indexed_runs(settings) as (index, unindexed):
        summary = summarise_runs(index, query)
    if as_json:
        print_json(summary)
    else:
        print_text(format_table(list(_rows(summary))))
    if unindexed:
        print_note(describe_unindexed(unindexed))


def _rows(summary: dict[str, Any]) -> Iterator[tuple[str, str]]:
    rate = summary["pass_rate"]
    yield "runs", f"{summary['runs']:,}"
    yield from (
        (f"  {name_outcome(outcome)}", f"{count:,}") for outcome, count in summary["outcomes"].items()
    )
    yield "pass rate", "unknown" if rate is None else f"{rate:.1%} of {summary['decided']:,} decided"
    yield "tokens", f"{summary['tokens']:,}"
    yield "money", f"${summary['money']:.4f}"
    seconds = summary["run_seconds"]
    yield "seconds of a run", _render_spread(seconds)
    for move, spread in summary["iteration_seconds"].items():
        text = f"{_render_spread(spread)}, {format_count(spread['count'], 'move')}"
        yield f"seconds of one move: {render_moves(move)}", text
    for key, (label, texts) in BREAKDOWNS.items():
        for name, value in summary[key].items():
            yield f"{label}: {texts.get(name, name.replace('_', ' '))}", f"{round(value, 1):,}"
    yield "memories", f"{summary['memories']:,}"


def _render_spread(spread: Mapping[str, float]) -> str:
    return f"median {spread['median']:,}, 95th percentile {spread['p95']:,}"
