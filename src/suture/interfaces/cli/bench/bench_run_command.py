"""`suture bench run`: measure arms on the tasks of a set, or go on with it."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from suture.errors import Cancelled, SutureError, UsageError
from suture.interfaces.cli.bench.bench_options import Parallel, Recordings, Replayed
from suture.interfaces.cli.terminal.command_options import Assignments, Json, load_command_settings
from suture.interfaces.cli.terminal.error_reporting import handle_errors
from suture.interfaces.cli.terminal.terminal_output import print_note

if TYPE_CHECKING:
    from suture.bench.running.bench_folder import BenchFolder

Many = list[str] | None


@handle_errors
def run_command(
    name: Annotated[str, typer.Argument(help="What to call it, or a folder.")],
    dataset: Annotated[
        Many, typer.Option("--dataset", metavar="SET", help="A set, such as humaneval; may be repeated.")
    ] = None,
    ids: Annotated[
        Many, typer.Option("--task", "--ids", metavar="ID", help="Only this task; may be repeated.")
    ] = None,
    ids_file: Annotated[
        list[Path] | None,
        typer.Option("--ids-file", metavar="FILE", help="Only these tasks, one id a line; may be repeated."),
    ] = None,
    first: Annotated[
        int | None, typer.Option("--first", metavar="N", min=1, help="Only the first N tasks of each set.")
    ] = None,
    arm: Annotated[
        Many, typer.Option("--arm", metavar="RECIPE", help="A recipe to measure; may be repeated.")
    ] = None,
    model: Annotated[
        Many,
        typer.Option("--model", metavar="PROVIDER:MODEL", help="Who answers; may be repeated."),
    ] = None,
    cap: Annotated[
        list[int] | None,
        typer.Option(
            "--cap",
            metavar="TOKENS",
            min=64,
            help="The most tokens of replies a task, 2000; may be repeated.",
        ),
    ] = None,
    regime: Annotated[
        str | None,
        typer.Option(
            "--regime",
            help="What the loop sees: visible (as a user has it), self, oracle (never fair).",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Repetitions with samples of their own.")] = 1,
    parallel: Parallel = 4,
    pool: Annotated[
        Path | None,
        typer.Option("--pool", metavar="FOLDER", help="Replies to draw from and to add to; shared by arms."),
    ] = None,
    recording: Recordings = None,
    replayed: Replayed = False,
    ray: Annotated[
        str | None,
        typer.Option("--ray", metavar="ADDRESS", help="Work on a Ray cluster; `local` starts one here."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on, also with more tasks or arms than it was begun with.")
    ] = False,
    validate_reference: Annotated[
        bool, typer.Option("--validate-reference", help="Only grade the sets' own solutions.")
    ] = False,
    assignments: Assignments = None,
    as_json: Json = False,
) -> None:
    """Measure recipes on tasks with hidden tests, at equal tokens; print what each solved.

    Ctrl-C leaves a folder that --resume goes on with; no reply is paid for twice. Exit code 6: not one row
    has a number.
    """
    from suture.api import run_sync
    from suture.bench.running.benchmark import run_benchmark
    from suture.bench.running.plans import chosen_ids
    from suture.interfaces.cli.bench.bench_progress import BenchProgress
    from suture.interfaces.cli.bench.bench_summary import print_rows, require_a_number
    from suture.interfaces.cli.bench.plan_options import (
        PlanOptions,
        bench_folder,
        make_plan,
        settings_for,
        validate_references,
    )

    settings = load_command_settings(Path(), assignments).settings
    named = [*(ids or ()), *(i for path in ids_file or () for i in lines_of(path))]
    chosen = chosen_ids(dataset or (), named, first)
    if validate_reference:
        if not chosen:
            raise UsageError("there is nothing to validate", remedy="name a set: --dataset humaneval")
        validate_references(chosen, settings, parallel, as_json=as_json)
        return
    folder = bench_folder(settings, name)
    wanted = PlanOptions(
        ids=chosen, arms=arm or (), models=model or (), caps=cap or (), regime=regime, seeds=seeds
    )
    plan = make_plan(folder, wanted, settings, resume=resume)
    if not replayed:
        settings = settings_for(plan.models, assignments, settings)
    with naming_resume(folder), BenchProgress() as bar:
        run_sync(
            run_benchmark(
                plan,
                folder,
                settings,
                parallel=parallel,
                pool=pool,
                recordings=recording or (),
                replayed=replayed,
                cluster=ray,
                on_progress=bar,
            )
        )
    print_rows(folder.rows(), as_json=as_json)
    print_note(f"in {folder.path}")
    require_a_number(folder.rows())


@contextlib.contextmanager
def naming_resume(folder: BenchFolder) -> Iterator[None]:
    """Whatever stops a benchmark that was begun names the command that goes on with it."""
    try:
        yield
    except (KeyboardInterrupt, SutureError) as stopped:
        fault = stopped if isinstance(stopped, SutureError) else Cancelled("cancelled")
        if folder.exists and not isinstance(fault, UsageError):
            words = [*sys.argv[1:], *(() if "--resume" in sys.argv else ("--resume",))]
            go_on = f"what is done stays; go on: suture {shlex.join(words)}"
            fault.remedy = "; ".join(filter(None, (fault.remedy, go_on)))
        raise fault from fault.__cause__


def lines_of(path: Path) -> list[str]:
    """The ids in a file, one a line; what begins with `#` is a remark.

    Raises:
        UsageError: It cannot be read, or names no task.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as fault:
        raise UsageError(f"the file of ids {str(path)!r} cannot be read: {fault}") from fault
    named = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if not named:  # which would have meant every task
        raise UsageError(f"the file of ids {str(path)!r} names no task")
    return named
