"""`suture run`: write new code for a task."""

from __future__ import annotations

import sys
import time
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from suture.core.safe_files import read_text_file
from suture.errors import UsageError
from suture.interfaces.cli.terminal.command_options import (
    ApproveDeps,
    OutputOptions,
    RunCommandOptions,
    require_file,
)
from suture.interfaces.cli.terminal.error_reporting import handle_errors
from suture.interfaces.cli.terminal.terminal_output import stdin_is_terminal

if TYPE_CHECKING:
    from suture.api import Reviewer
    from suture.core.records import Result, Task
    from suture.interfaces.cli.terminal.run_progress import RunProgress

MAX_TASK_BYTES = 2**20
"""The largest task file. Chosen by judgement; not measured."""
MAX_FILE_NAME_CHARS = 250
"""A longer task cannot be a file name: Linux allows 255 bytes."""
PROJECT_EXAMPLES = {
    "cli_tool": ("$ todo add milk", "added milk"),
    "web_app": ('POST /books {"title": "Emma"} -> 201',),
    "library": ("area(2, 3) == 6",),
}
"""How examples of use are written, for the kinds of projects that are judged by them."""
TASK_REMEDY = 'write it as an argument, such as suture run "Write a function ...", or pipe it to suture run -'


@handle_errors
def run(
    context: typer.Context,
    task: Annotated[
        str | None, Argument(help="The task in words, or a stub with a docstring; `-` reads stdin.")
    ] = None,
    example: Annotated[bool, Option("--example", help="Use a built-in example task.")] = False,
    test: Annotated[
        Path | None,
        Option(
            "--test", metavar="FILE", help="Tests that the code must pass: pytest tests or plain asserts."
        ),
    ] = None,
    apply: Annotated[bool, Option("--apply", help="Write the verified code to the current folder.")] = False,
    into: Annotated[
        Path | None,
        Option(
            "--into",
            metavar="FOLDER",
            help="Write all files of the verified code to this folder; allows several files.",
        ),
    ] = None,
    project: Annotated[
        str | None,
        Option(
            "--project",
            metavar="KIND",
            help="Create a whole project: web_app, data_pipeline, cli_tool or library.",
        ),
    ] = None,
    language: Annotated[
        str | None,
        Option("--language", metavar="NAME", help="python, node, typescript or go; default: python."),
    ] = None,
    existing: Annotated[
        Path | None,
        Option("--existing", metavar="FOLDER", help="Add a feature to the project in this folder."),
    ] = None,
    sample: Annotated[
        Path | None, Option("--sample", metavar="FILE", help="Sample data for a data pipeline.")
    ] = None,
    task_file: Annotated[
        Path | None, Option("--task-file", metavar="FILE", help="Read the task from a text file.")
    ] = None,
    approve_deps: ApproveDeps = None,
    yes: Annotated[
        bool, Option("--yes", help="Ask nothing: code that no test or example judges stays unverified.")
    ] = False,
    *,
    options: RunCommandOptions,
    output: OutputOptions,
) -> None:
    """Write new code until trusted tests pass; print the code, with file names if there are several files.

    With --project, Suture creates a whole project, starts it in the sandbox, and judges its behaviour by the
    example runs in the task; on a terminal it asks for some if there are none. With --existing, the result is
    a diff; --apply applies it to that project.

    The trusted tests are those of --test and the examples in the task itself. Without either, Suture shows you a
    few results of the code on the terminal, and verifies it by those that you confirm. Without a terminal, or with
    --yes, the code is printed but not verified, and the exit code is 1.
    """
    require_file(test, "the test file")
    require_file(sample, "the sample data")
    _require_known_names(language, project)
    may_ask = stdin_is_terminal() and not yes and output.detail != "quiet"
    is_typed = task is None and not example and task_file is None and stdin_is_terminal()
    task_or_text = read_task(task, example=example, file=task_file)
    is_new_project = project is not None and existing is None
    if may_ask and is_new_project and test is None and isinstance(task_or_text, str):
        task_or_text, was_asked = add_project_examples(task_or_text, str(project))
        is_typed = is_typed or was_asked
    # `main` passes the start of the process as the context's object, so that imports count towards the run. The time
    # that a person takes to type the task does not count.
    requested_at_s = context.obj if isinstance(context.obj, float) and not is_typed else time.time()
    loaded = options.settings(existing or Path(), safety__approve_deps=approve_deps)
    if existing is not None:
        loaded = replace(loaded, settings=loaded.settings.for_features())
    from suture.interfaces.cli.run_execution import run_and_report

    def start(*, on_event: RunProgress, on_review: Reviewer | None) -> Coroutine[Any, Any, Result]:
        from suture.api import solve
        from suture.api.options import WriteOptions

        write_options = WriteOptions(
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
            requested_at_s=requested_at_s,
            on_review=on_review,
            ask=on_review is not None and may_ask,
            on_event=on_event,
        )
        return solve(task_or_text, write_options)

    run_and_report(start, loaded, kind="write" if existing is None else "heal", output=output)


def _require_known_names(language: str | None, project: str | None) -> None:
    """Check the language and the kind of project before anything slow is imported."""
    if language is not None:
        from suture.project.languages import find_language

        find_language(language)
    if project is not None:
        from suture.loop.intake.project_task import parse_project_kind

        parse_project_kind(project)


def read_task(argument: str | None, *, example: bool, file: Path | None = None) -> str | Task:
    """Return the task from the argument, a file, stdin, or a prompt."""
    if file is not None and (argument is not None or example):
        raise UsageError(
            "--task-file already gives the task", remedy="leave out the other task, or --task-file"
        )
    if example and argument is not None:
        raise UsageError("--example already gives the task", remedy="leave out the other task, or --example")
    if example:
        from suture.api import example_task

        return example_task()
    if file is not None:
        text = read_text_file(file, MAX_TASK_BYTES, "the task")
    elif argument == "-":
        text = sys.stdin.read()
    elif argument is not None:
        text = argument
        # Most tasks contain one of these characters, and few file names do. A null byte is in no path.
        if not {*" \n(\0"} & {*text} and len(text) < MAX_FILE_NAME_CHARS and Path(text).is_file():
            raise UsageError(f"{text!r} is a file", remedy=f"to use its text as the task: --task-file {text}")
    elif stdin_is_terminal():
        text = ask_task()
    else:
        raise UsageError("there is no task", remedy=TASK_REMEDY)
    if not text.strip():
        raise UsageError("the task is empty", remedy=TASK_REMEDY)
    return text


def ask_task() -> str:
    """Ask for the task on the terminal."""
    sys.stderr.write("What should Suture write? End the task with an empty line.\n")
    return _read_paragraph()


def add_project_examples(statement: str, kind_name: str) -> tuple[str, bool]:
    """Ask the person for examples of a new project's use if its task shows none.

    Without any, only checks that know nothing of the task would judge the project.

    Returns:
        The task with the examples, and whether the person was asked.
    """
    from suture.judge import extract_examples
    from suture.judge.smoke.smoke_plan import find_shown_commands, find_shown_requests
    from suture.loop.intake.project_task import parse_project_kind

    example = PROJECT_EXAMPLES.get(parse_project_kind(kind_name))
    finders = (find_shown_commands, find_shown_requests, extract_examples)
    if example is None or any(find(statement) for find in finders):
        return statement, False
    lines = "".join(f"  {line}\n" for line in example)
    sys.stderr.write(
        f"Nothing in the task shows how the result is used. Show examples that must work, such as\n{lines}"
        "and end with an empty line. Press Enter to go on without any.\n"
    )
    return f"{statement}\n\n{_read_paragraph()}".rstrip(), True


def _read_paragraph() -> str:
    """Return the lines that a person types, up to an empty line or the end of input."""
    sys.stderr.write("> ")
    sys.stderr.flush()
    lines: list[str] = []
    for line in iter(sys.stdin.readline, ""):
        if not line.strip():
            break
        lines.append(line)
        sys.stderr.write("> ")
        sys.stderr.flush()
    return "".join(lines)
