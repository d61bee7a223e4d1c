"""`suture run`: write new code for a task."""

from __future__ import annotations

import sys
import time
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suture.core.safe_files import read_text_file
from suture.errors import UsageError
from suture.interfaces.cli.terminal.command_options import (
    ApproveDeps,
    OutputOptions,
    RunOptions,
    require_file,
)
from suture.interfaces.cli.terminal.error_reporting import handle_errors
from suture.interfaces.cli.terminal.terminal_output import stdin_is_terminal

if TYPE_CHECKING:
    from suture.core.records import Result, Task, TaskKind
    from suture.interfaces.cli.terminal.run_progress import RunProgress

MOST_TASK_BYTES = 2**20
MOST_NAME_CHARS = 250
HOW_TO_GIVE_A_TASK = (
    'write it as an argument, such as suture run "Write a function ...", or pipe it to suture run -'
)


@handle_errors
def run(
    context: typer.Context,
    task: Annotated[
        str | None,
        typer.Argument(help="In words, or a stub with a docstring; `-` reads it from stdin."),
    ] = None,
    example: Annotated[bool, typer.Option("--example", help="A built-in task.")] = False,
    test: Annotated[
        Path | None,
        typer.Option(
            "--test", metavar="FILE", help="Tests that the code must pass: pytest's, or plain asserts."
        ),
    ] = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Write the verified code into the current folder.")
    ] = False,
    into: Annotated[
        Path | None,
        typer.Option(
            "--into", metavar="FOLDER", help="Write all files of the verified code there; it may be several."
        ),
    ] = None,
    project: Annotated[
        str | None,
        typer.Option(
            "--project",
            metavar="KIND",
            help="Make a whole project: web_app, data_pipeline, cli_tool or library.",
        ),
    ] = None,
    language: Annotated[
        str | None,
        typer.Option("--language", metavar="NAME", help="python, node, typescript or go; Python by default."),
    ] = None,
    existing: Annotated[
        Path | None,
        typer.Option("--existing", metavar="FOLDER", help="Add a feature to the project there."),
    ] = None,
    sample: Annotated[
        Path | None,
        typer.Option("--sample", metavar="FILE", help="Data that a pipeline is run on."),
    ] = None,
    task_file: Annotated[
        Path | None, typer.Option("--task-file", metavar="FILE", help="The task, from a text file.")
    ] = None,
    approve_deps: ApproveDeps = None,
    *,
    options: RunOptions,
    told: OutputOptions,
) -> None:
    """Write new code until trusted tests pass; print the code, each file with its name where it is several.

    With --project a whole project is made; it is started in the sandbox, and what is seen of it decides, with
    the runs that the task shows. With --existing the answer is a diff; --apply writes it there.

    The trusted tests are those of --test and the examples in the task itself. Without either the code is
    printed but not verified, and the exit code is 1.
    """
    detail = told.detail
    require_file(test, "the test file")
    require_file(sample, "the sample data")
    _require_known(language, project)
    asked = task is None and not example and task_file is None and stdin_is_terminal()
    wanted = read_task(task, example=example, file=task_file)
    # What a person takes to type the task on our question is no part of the run.
    asked_s = context.obj if isinstance(context.obj, float) and not asked else time.time()
    loaded = options.settings(
        existing or Path(),
        safety__approve_deps=approve_deps,
    )
    if project is not None or existing is not None:
        loaded = replace(loaded, settings=loaded.settings.for_projects())
    from suture.interfaces.cli.run_execution import execute_run

    def start(progress: RunProgress) -> Coroutine[Any, Any, Result]:
        from suture.api import solve
        from suture.interfaces.cli.repair.review_command import terminal_reviewer

        return solve(
            wanted,
            test=test,
            language=language,
            project=project,
            existing=existing,
            sample=sample,
            settings=loaded.settings,
            apply=apply,
            into=into,
            replies=options.replies,
            or_live=options.or_live,
            asked_s=asked_s,
            on_review=terminal_reviewer(progress),
            on_event=progress,
        )

    kind: TaskKind = "write" if existing is None else "heal"
    execute_run(start, loaded, kind=kind, as_json=told.as_json, detail=detail)


def _require_known(language: str | None, project: str | None) -> None:
    """Refuse a language or a kind of project that is none, before anything slow is loaded.

    Raises:
        UsageError: There is no such one.
    """
    if language is not None:
        from suture.project.languages import find_language

        find_language(language)
    if project is not None:
        from suture.loop.intake.project_task import parse_project_kind

        parse_project_kind(project)


def read_task(argument: str | None, *, example: bool, file: Path | None = None) -> str | Task:
    """The task, wherever it is to come from.

    Raises:
        UsageError: There is none, there are two, or the file cannot be read.
    """
    if file is not None and (argument is not None or example):
        raise UsageError("--task-file is a task of its own", remedy="leave out the other one, or --task-file")
    if example:
        if argument is not None:
            raise UsageError("--example is a task of its own", remedy="leave out the other one, or --example")
        from suture.api import example_task

        return example_task()
    if file is not None:
        text = read_text_file(file, MOST_TASK_BYTES, "the task")
    elif argument == "-":
        text = sys.stdin.read()
    elif argument is not None:
        text = argument
        if not {*" \n(\0"} & {*text} and len(text) < MOST_NAME_CHARS and Path(text).is_file():
            raise UsageError(f"{text!r} is a file", remedy=f"its text is a task with --task-file {text}")
    elif stdin_is_terminal():
        text = ask()
    else:
        raise UsageError("there is no task", remedy=HOW_TO_GIVE_A_TASK)
    if not text.strip():
        raise UsageError("the task is empty", remedy=HOW_TO_GIVE_A_TASK)
    return text


def ask() -> str:
    """Ask for the task; an empty line or the end of input ends it."""
    sys.stderr.write("What shall Suture write? An empty line ends the task.\n> ")
    sys.stderr.flush()
    lines: list[str] = []
    for line in iter(sys.stdin.readline, ""):
        if not line.strip():
            break
        lines.append(line)
        sys.stderr.write("> ")
        sys.stderr.flush()
    return "".join(lines)
