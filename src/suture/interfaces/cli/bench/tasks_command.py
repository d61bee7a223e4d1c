"""`suture bench tasks`: measure a model on tasks that are folders."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from suture.errors import SutureError, UsageError
from suture.interfaces.cli.bench.bench_run_command import read_task_ids
from suture.interfaces.cli.terminal.command_options import Assignments, Json, Model, load_command_settings
from suture.interfaces.cli.terminal.error_reporting import handle_errors
from suture.interfaces.cli.terminal.terminal_output import format_table, print_answer, print_note

if TYPE_CHECKING:
    from suture.bench.folder_tasks import FolderRow, TaskSummary


@handle_errors
def tasks_command(
    name: Annotated[
        str,
        Argument(metavar="NAME", help="The benchmark's name, or a folder. Finished tasks in it are kept."),
    ],
    folder: Annotated[
        Path, Argument(metavar="TASKS", help="Polyglot exercises, or tasks in Harbor's format.")
    ],
    ids: Annotated[
        list[str] | None, Option("--task", metavar="ID", help="Only this task; repeatable.")
    ] = None,
    ids_file: Annotated[
        Path | None, Option("--ids-file", metavar="FILE", help="Only these tasks, one id per line.")
    ] = None,
    first: Annotated[
        int | None, Option("--first", metavar="N", min=1, help="Only the first N tasks of each language.")
    ] = None,
    model: Model = None,
    parallel: Annotated[int, Option("--parallel", metavar="N", min=1, help="Number of parallel tasks.")] = 1,
    assignments: Assignments = None,
    as_json: Json = False,
) -> None:
    """Measure a model on tasks that are folders, and print what it solved.

    Exit code 6: no task has a result. A second call with the same name continues.
    """
    from suture.api import run_sync
    from suture.bench.folder_tasks import load_folder_tasks, measure_folder, summarise_rows, take_first
    from suture.bench.running.benchmark_plan import describe_environment
    from suture.core.records import encode_record
    from suture.interfaces.cli.bench.plan_options import bench_folder
    from suture.models import choose_model, open_model

    settings = load_command_settings(Path(), assignments, model__name=model).settings
    tasks = {task.id: task for task in load_folder_tasks(folder)}
    wanted = [*(ids or ()), *(read_task_ids(ids_file) if ids_file is not None else ())] or list(tasks)
    if unknown := [task for task in wanted if task not in tasks]:
        raise UsageError(f"there is no task {unknown[0]!r}", remedy=f"ids look like {next(iter(tasks))!r}")
    chosen = take_first([tasks[task] for task in dict.fromkeys(wanted)], first)
    benchmark_path = bench_folder(settings, name).path

    environment = describe_environment(sys.argv[1:], settings)

    async def measure() -> list[FolderRow]:
        opened_model = open_model(settings, choose_model(settings)[0])
        try:
            return await measure_folder(
                chosen,
                benchmark_path,
                settings,
                opened_model,
                environment=environment,
                parallel=parallel,
                on_row=print_row,
            )
        finally:
            await opened_model.close()

    rows = run_sync(measure())
    summaries = summarise_rows(rows)
    print_answer(
        [encode_record(summary) for summary in summaries], render_summaries(summaries), as_json=as_json
    )
    print_note(f"in {benchmark_path}")
    if all(row.fault for row in rows):
        raise SutureError(
            "no task has a result", remedy="see the reasons above; the same command tries again"
        )


def print_row(row: FolderRow) -> None:
    """Print whether a task was solved, and at which attempt."""
    if row.fault:
        print_note(f"{row.task}: no result: {row.fault}")
        return
    last = row.attempts[-1]
    result = f"solved at attempt {len(row.attempts)}" if last.reward >= 1 else f"not solved: {last.reason}"
    print_note(f"{row.task}: {result} ({sum(attempt.seconds for attempt in row.attempts):.0f} s)")


def render_summaries(summaries: list[TaskSummary]) -> str:
    """Return the table of what models solved, with exact 95 % intervals."""
    max_attempts = max((len(summary.passed) for summary in summaries), default=0)
    names = [f"pass@{number}" for number in range(1, max_attempts + 1)]
    head = ("model", "tasks of", "tasks", *names, "calls", "tokens", "seconds", "no result")
    return format_table([head, *(_render_row(summary, max_attempts) for summary in summaries)])


def _render_row(summary: TaskSummary, max_attempts: int) -> tuple[str, ...]:
    """Return the cells of a summary; those of attempts that its tasks do not allow are empty."""
    shares = [f"{share.estimate:.0%} ({share.low:.0%} to {share.high:.0%})" for share in summary.passed]
    shares += [""] * (max_attempts - len(shares))
    return (
        summary.model,
        summary.group,
        str(summary.tasks),
        *shares,
        str(summary.calls),
        f"{summary.prompt_tokens:,} + {summary.completion_tokens:,}",
        f"{summary.seconds:,.0f}",
        str(summary.faults),
    )
