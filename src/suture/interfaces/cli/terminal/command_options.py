"""The options that several commands share, and the settings that they produce."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from suture.errors import UsageError

if TYPE_CHECKING:
    from suture.core.records import Task
    from suture.core.settings import LoadedSettings

Detail = Literal["quiet", "brief", "verbose"]
"""How much a run prints on stderr while it runs and at its end."""

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print every step in full detail.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the result.")]
Assignments = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Any setting, such as loop.samples=8; repeatable."),
]
Model = Annotated[
    str | None,
    typer.Option("--model", metavar="PROVIDER:MODEL", help="The model to use; the setting model.name."),
]
Test = Annotated[
    str | None,
    typer.Option(
        "--test",
        metavar="COMMAND",
        help="The test command; default: project.test, or detected from the files.",
    ),
]
Protect = Annotated[
    list[str] | None,
    typer.Option("--protect", metavar="GLOB", help="Files that must not change; repeatable."),
]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="GLOB", help="The only files that may change; repeatable."),
]
Python = Annotated[
    Path | None,
    typer.Option(
        "--python", metavar="PATH", help="The Python that runs the tests; the setting sandbox.python."
    ),
]
Apply = Annotated[bool, typer.Option("--apply", help="Apply the change to your files once it is verified.")]
Branch = Annotated[
    str | None,
    typer.Option("--branch", metavar="NAME", help="Commit on a new branch; your files do not change."),
]
Recipe = Annotated[
    str | None, typer.Option("--recipe", metavar="NAME", help="The strategy; the setting loop.recipe.")
]
Autonomy = Annotated[
    str | None,
    typer.Option(
        "--autonomy",
        metavar="MODE",
        help="When to ask you: full_auto, review_repairs or review_all; the setting loop.autonomy.",
    ),
]
ApproveDeps = Annotated[
    str | None,
    typer.Option(
        "--approve-deps",
        metavar="MODE",
        help="Packages that new code requires: ask (about those not on the allowlist), allowlist or never; "
        "the setting safety.approve_deps.",
    ),
]
RunName = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="`last` (of this folder), `newest` (of all), an id, its unique start or end, or a run's folder.",
    ),
]
Replies = Annotated[
    str | None,
    typer.Option("--replies", metavar="RUN|FILE", help="Use a run's recorded replies, or a file of replies."),
]
OrLive = Annotated[bool, typer.Option("--or-live", help="Ask the model for replies that are not recorded.")]
LogJson = Annotated[
    Path | None,
    typer.Option(
        "--log-json",
        metavar="FILE",
        help="Write each event to this file, one JSON object per line; log.file.",
    ),
]
Attempts = Annotated[
    int | None, typer.Option("--attempts", metavar="N", help="Max candidates; budget.attempts.")
]
Tokens = Annotated[
    int | None, typer.Option("--tokens", metavar="N", help="Max tokens, input and output; budget.tokens.")
]
Money = Annotated[float | None, typer.Option("--money", metavar="USD", help="Max US dollars; budget.money.")]
Seconds = Annotated[float | None, typer.Option("--seconds", metavar="S", help="Max seconds; budget.seconds.")]


@dataclass(frozen=True, kw_only=True)
class RunCommandOptions:
    """Options of every command that starts a new run: the model, the recipe, the limits."""

    model: Model = None
    recipe: Recipe = None
    autonomy: Autonomy = None
    log_json: LogJson = None
    attempts: Attempts = None
    tokens: Tokens = None
    money: Money = None
    seconds: Seconds = None
    replies: Replies = None
    or_live: OrLive = False
    assignments: Assignments = None

    def settings(self, project: Path, **flags: object) -> LoadedSettings:
        """Return the run's settings, with further options of the command as in `load_command_settings`."""
        own: dict[str, Any] = {
            "model__name": self.model,
            "loop__recipe": self.recipe,
            "loop__autonomy": self.autonomy,
            "log__file": self.log_json,
            "budget__attempts": self.attempts,
            "budget__tokens": self.tokens,
            "budget__money": self.money,
            "budget__seconds": self.seconds,
        }
        return load_command_settings(project, self.assignments, **(own | flags))


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """Options of every command that executes a run: how to show its progress and its result."""

    verbose: Verbose = False
    quiet: Quiet = False
    as_json: Json = False

    @property
    def detail(self) -> Detail:
        """Return how much to print beside the result.

        Raises:
            UsageError: Both options are given.
        """
        require_at_most_one({"--verbose": self.verbose, "--quiet": self.quiet})
        return "verbose" if self.verbose else "quiet" if self.quiet else "brief"


def parse_assignments(assignments: Sequence[str]) -> dict[str, str]:
    """Parse `key=value` arguments.

    Raises:
        UsageError: One of them has no `=` or no key.
    """
    values: dict[str, str] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not key.strip() or not equals:
            raise UsageError(
                f"--set takes KEY=VALUE, not {assignment!r}", remedy="`suture config show` lists the keys"
            )
        values[key.strip()] = value
    return values


def require_at_most_one(given: Mapping[str, object]) -> None:
    """Reject options that contradict each other.

    Args:
        given: Each option and its value; false or `None` means that it is not given.

    Raises:
        UsageError: More than one is given.
    """
    flags = [flag for flag, value in given.items() if value not in (None, False)]
    if len(flags) > 1:
        raise UsageError(f"{' and '.join(flags)} exclude each other", remedy="use one of them")


def require_file(path: Path | None, what: str, *, program: bool = False) -> None:
    """Check that a file exists, before anything slow is imported.

    Args:
        path: The file, or `None` if the option is not given.
        what: What the error message calls it.
        program: Whether the file must be executable.

    Raises:
        UsageError: The file does not exist or is not executable.
    """
    if path is None:
        return
    if not os.path.lexists(path):
        raise UsageError(f"{what} {str(path)!r} does not exist", remedy="check the path")
    if path.is_dir():
        raise UsageError(f"{what} {str(path)!r} is a folder", remedy="name a file in it")
    if program and not os.access(path, os.X_OK):
        raise UsageError(
            f"{what} {str(path)!r} is not executable", remedy="name an interpreter, such as .venv/bin/python"
        )


def require_test_command(test: str | None) -> None:
    """Reject an empty test command.

    Raises:
        UsageError: The command has no words.
    """
    if test is not None and not test.strip():
        raise UsageError(
            "the test command is empty", remedy="leave out --test to detect it from the project's files"
        )


def load_command_settings(
    project: Path, assignments: Sequence[str] | None = None, *, read_only: bool = False, **flags: object
) -> LoadedSettings:
    """Load the settings of a command; its own options take precedence over `--set`.

    Args:
        project: The folder whose `suture.toml` and `.env` apply.
        assignments: The values of `--set`.
        read_only: As in `load_settings`.
        **flags: Values by setting name, with `__` for the dot; `None` means not given.
    """
    from suture.core.settings import load_settings

    given: dict[str, object] = dict(parse_assignments(assignments or ()))
    given.update({key.replace("__", "."): value for key, value in flags.items() if value is not None})
    return load_settings(project, given, os.environ, read_only=read_only)


def read_candidate_files(named: Iterable[str], task: Task, project: Path) -> Mapping[str, str]:
    """Read a person's candidate from `FILE` or `PATH=FILE` arguments; return project path -> text.

    Args:
        named: The values of the option.
        task: The task that the candidate solves.
        project: The folder of the task.

    Raises:
        UsageError: A file cannot be read, or its path in the project is ambiguous.
    """
    given: dict[str, str] = {}
    for name in named:
        path, equals, file = name.partition("=")
        source = Path(file if equals else name)
        try:
            text = source.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as fault:
            raise UsageError(f"{str(source)!r} cannot be read: {fault}") from fault
        given[path if equals else _project_path(source, task, project)] = text
    return given


def _project_path(file: Path, task: Task, project: Path) -> str:
    if task.kind == "write":
        named = [path for path in task.modules if Path(path).name == file.name]
        if len(named) == 1 or not task.allows_more_files:
            return (named or [task.module])[0]
    try:
        inside = file.resolve().relative_to(project.resolve()).as_posix()
    except ValueError:
        inside = ""
    alike = [path for path in task.files if Path(path).name == file.name]
    if inside in task.files:
        return inside
    if len(alike) == 1:
        return alike[0]
    raise UsageError(
        f"cannot tell which file of the project {str(file)!r} replaces",
        remedy=f"name it: PATH={file}, with PATH relative to the project",
    )
