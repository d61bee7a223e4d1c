"""`suture bench run`: measure arms on the tasks of a dataset, or continue a benchmark."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from suture.errors import Cancelled, SutureError, UsageError, describe_fault
from suture.interfaces.cli.bench.plan_options import Parallel, Recordings, Replayed
from suture.interfaces.cli.terminal.command_options import Assignments, Json, load_command_settings
from suture.interfaces.cli.terminal.error_reporting import handle_errors
from suture.interfaces.cli.terminal.terminal_output import print_note

if TYPE_CHECKING:
    from suture.bench.running.bench_folder import BenchFolder

Texts = list[str] | None
"""The values of a repeatable option."""


@handle_errors
def run_command(
    name: Annotated[str, Argument(help="The benchmark's name, or a folder.")],
    dataset: Annotated[
        Texts, Option("--dataset", metavar="SET", help="A dataset, such as humaneval; repeatable.")
    ] = None,
    ids: Annotated[Texts, Option("--task", "--ids", metavar="ID", help="Only this task; repeatable.")] = None,
    ids_file: Annotated[
        list[Path] | None,
        Option("--ids-file", metavar="FILE", help="Only these tasks, one id per line; repeatable."),
    ] = None,
    first: Annotated[
        int | None, Option("--first", metavar="N", min=1, help="Only the first N tasks of each dataset.")
    ] = None,
    arm: Annotated[Texts, Option("--arm", metavar="RECIPE", help="A recipe to measure; repeatable.")] = None,
    model: Annotated[
        Texts, Option("--model", metavar="PROVIDER:MODEL", help="A model to measure; repeatable.")
    ] = None,
    cap: Annotated[
        list[int] | None,
        Option(
            "--cap", metavar="TOKENS", min=64, help="Max reply tokens per task; default: 2000; repeatable."
        ),
    ] = None,
    regime: Annotated[
        str | None,
        Option(
            "--regime",
            help="The tests that the loop sees: visible (like a user), self, oracle (unfair upper bound).",
        ),
    ] = None,
    seeds: Annotated[int, Option("--seeds", min=1, help="Number of repetitions with different samples.")] = 1,
    parallel: Parallel = 4,
    pool: Annotated[
        Path | None,
        Option("--pool", metavar="FOLDER", help="A pool of replies to use and extend, shared by the arms."),
    ] = None,
    recording: Recordings = None,
    replayed: Replayed = False,
    ray: Annotated[
        str | None, Option("--ray", metavar="ADDRESS", help="Run on a Ray cluster; `local` starts one here.")
    ] = None,
    resume: Annotated[
        bool, Option("--resume", help="Continue the benchmark, also with more tasks or arms.")
    ] = False,
    validate_reference: Annotated[
        bool, Option("--validate-reference", help="Only grade the datasets' own solutions.")
    ] = False,
    assignments: Assignments = None,
    as_json: Json = False,
) -> None:
    """Measure recipes on tasks with hidden tests at equal tokens; print what each solved.

    Ctrl-C leaves a folder that --resume continues; no reply is paid for twice. Exit code 6: no row has a
    number.
    """
    from suture.api import run_sync
    from suture.bench.running.benchmark import run_benchmark
    from suture.bench.running.benchmark_plan import choose_ids
    from suture.interfaces.cli.bench.bench_progress import BenchProgress, print_rows, require_a_number
    from suture.interfaces.cli.bench.plan_options import (
        PlanOptions,
        bench_folder,
        make_plan,
        settings_for,
        validate_references,
    )

    settings = load_command_settings(Path(), assignments).settings
    task_ids = list(ids or ())
    for path in ids_file or ():
        task_ids += read_task_ids(path)
    ids_by_dataset = choose_ids(dataset or (), task_ids, first)
    if validate_reference:
        if not ids_by_dataset:
            raise UsageError("there is nothing to validate", remedy="name a dataset: --dataset humaneval")
        validate_references(ids_by_dataset, settings, parallel, as_json=as_json)
        return
    folder = bench_folder(settings, name)
    options = PlanOptions(
        ids=ids_by_dataset, arms=arm or (), models=model or (), caps=cap or (), regime=regime, seeds=seeds
    )
    plan = make_plan(folder, options, settings, resume=resume)
    if not replayed:
        settings = settings_for(plan.models, assignments, settings)
    with add_resume_hint(folder), BenchProgress() as progress:
        benchmark = run_benchmark(
            plan,
            folder,
            settings,
            parallel=parallel,
            pool=pool,
            recordings=recording or (),
            replayed=replayed,
            cluster=ray,
            on_progress=progress,
        )
        run_sync(benchmark)
    print_rows(folder.rows(), as_json=as_json)
    print_note(f"in {folder.path}")
    require_a_number(folder.rows())


@contextlib.contextmanager
def add_resume_hint(folder: BenchFolder) -> Iterator[None]:
    """Add the command that continues the benchmark to any error that stops it."""
    try:
        yield
    except (KeyboardInterrupt, SutureError) as raised:
        fault = raised if isinstance(raised, SutureError) else Cancelled("cancelled")
        if folder.exists and not isinstance(fault, UsageError):
            arguments = sys.argv[1:] if "--resume" in sys.argv else [*sys.argv[1:], "--resume"]
            hint = f"results so far are kept; continue: suture {shlex.join(arguments)}"
            fault.remedy = f"{fault.remedy}; {hint}" if fault.remedy else hint
        raise fault from fault.__cause__


def read_task_ids(path: Path) -> list[str]:
    """Return the ids in a file, one per line; lines that start with `#` are comments."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as fault:
        raise UsageError(f"the file of ids {str(path)!r} cannot be read: {describe_fault(fault)}") from fault
    task_ids = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if not task_ids:  # an empty list would mean every task
        raise UsageError(f"the file of ids {str(path)!r} names no task")
    return task_ids
