"""The options that several commands share, and the settings they make."""

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
    from suture.core.settings import Loaded

Detail = Literal["quiet", "brief", "verbose"]
"""How much is said on stderr while a run goes on, and at its end."""

Json = Annotated[bool, typer.Option("--json", help="Answer with one JSON document on stdout.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Say every step, and what each is worth.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the result and nothing else.")]
Assignments = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Any setting, such as loop.samples=8; may be repeated."),
]
Model = Annotated[
    str | None, typer.Option("--model", metavar="PROVIDER:MODEL", help="Who answers; the setting model.name.")
]
Test = Annotated[
    str | None,
    typer.Option(
        "--test", metavar="COMMAND", help="What must pass; else project.test, or what the files show."
    ),
]
Protect = Annotated[
    list[str] | None,
    typer.Option("--protect", metavar="GLOB", help="Files that must stay as they are; may be repeated."),
]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="GLOB", help="The files that may change; may be repeated."),
]
Python = Annotated[
    Path | None,
    typer.Option("--python", metavar="PATH", help="Whose Python runs the tests; the setting sandbox.python."),
]
Apply = Annotated[bool, typer.Option("--apply", help="Change the files, once the result is verified.")]
Branch = Annotated[
    str | None,
    typer.Option("--branch", metavar="NAME", help="Commit on a new branch; your files stay as they are."),
]
Recipe = Annotated[
    str | None, typer.Option("--recipe", metavar="NAME", help="How to go about it; the setting loop.recipe.")
]
Autonomy = Annotated[
    str | None,
    typer.Option(
        "--autonomy",
        metavar="HOW",
        help="When you are asked: full_auto, review_repairs or review_all; the setting loop.autonomy.",
    ),
]
ApproveDeps = Annotated[
    str | None,
    typer.Option(
        "--approve-deps",
        metavar="HOW",
        help="Packages that new code asks for: ask (about those not on the list), allowlist or never; the "
        "setting safety.approve_deps.",
    ),
]
RunName = Annotated[
    str,
    typer.Argument(
        metavar="RUN", help="`last` here, `newest` of all, an id, its unique start or end, or a run's folder."
    ),
]
Replies = Annotated[
    str | None,
    typer.Option(
        "--replies", metavar="RUN|FILE", help="Answer from a run's recorded replies, or a file of them."
    ),
]
OrLive = Annotated[
    bool, typer.Option("--or-live", help="Ask the model for a reply that the record does not hold.")
]
LogJson = Annotated[
    Path | None,
    typer.Option(
        "--log-json", metavar="FILE", help="Write each event there, one JSON object a line; log.file."
    ),
]
Attempts = Annotated[
    int | None, typer.Option("--attempts", metavar="N", help="The most candidates; budget.attempts.")
]
Tokens = Annotated[
    int | None, typer.Option("--tokens", metavar="N", help="The most tokens, in and out; budget.tokens.")
]
Money = Annotated[
    float | None, typer.Option("--money", metavar="USD", help="The most US dollars; budget.money.")
]
Seconds = Annotated[
    float | None, typer.Option("--seconds", metavar="S", help="The most seconds; budget.seconds.")
]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What each command takes that begins a run of its own: who answers, the way, what it may use."""

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

    def settings(self, project: Path, **flags: object) -> Loaded:
        """The settings of the run, with further flags of the command as in `load_command_settings`."""
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
    """What each command takes that carries out a run: how its progress and its end are told."""

    verbose: Verbose = False
    quiet: Quiet = False
    as_json: Json = False

    @property
    def detail(self) -> Detail:
        """How much is said beside the result.

        Raises:
            UsageError: Both were wanted.
        """
        require_at_most_one({"--verbose": self.verbose, "--quiet": self.quiet})
        return "verbose" if self.verbose else "quiet" if self.quiet else "brief"


def parse_assignments(assignments: Sequence[str]) -> dict[str, str]:
    """Read `key=value` arguments.

    Raises:
        UsageError: One of them has no `=`, or no key.
    """
    values: dict[str, str] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not key.strip() or not equals:
            raise UsageError(
                f"--set takes KEY=VALUE, not {assignment!r}", remedy="see the keys in `suture config show`"
            )
        values[key.strip()] = value
    return values


def require_at_most_one(given: Mapping[str, object]) -> None:
    """Refuse flags that say different things.

    Args:
        given: Each flag and its value; one that is false or `None` was not given.

    Raises:
        UsageError: More than one was.
    """
    flags = [flag for flag, value in given.items() if value not in (None, False)]
    if len(flags) > 1:
        raise UsageError(f"{' and '.join(flags)} exclude each other", remedy="give one of them")


def require_file(path: Path | None, what: str, *, program: bool = False) -> None:
    """Refuse a file that is not there, before anything slow is loaded.

    Args:
        path: What was given, if anything was.
        what: What it is called in the error.
        program: Whether it is to be run.

    Raises:
        UsageError: There is no file, or it cannot be run.
    """
    if path is None:
        return
    if not os.path.lexists(path):
        raise UsageError(f"{what} {str(path)!r} does not exist", remedy="check the path")
    if path.is_dir():
        raise UsageError(f"{what} {str(path)!r} is a folder", remedy="name a file in it")
    if program and not os.access(path, os.X_OK):
        raise UsageError(f"{what} {str(path)!r} cannot be run", remedy="name one such as .venv/bin/python")


def require_test_command(test: str | None) -> None:
    """Refuse a test command without words.

    Raises:
        UsageError: There is none in it.
    """
    if test is not None and not test.strip():
        raise UsageError("the test command is empty", remedy="leave --test out: the project's files show one")


def load_command_settings(
    project: Path, assignments: Sequence[str] | None = None, *, looks: bool = False, **flags: object
) -> Loaded:
    """The settings of one command; a flag of its own wins over `--set`.

    Args:
        project: The folder whose `suture.toml` and `.env` count.
        assignments: The values of `--set`.
        looks: As in `load_settings`.
        **flags: Values by setting, with `__` for the dot; `None` means that the user did not say.
    """
    from suture.core.settings import load_settings

    given: dict[str, object] = dict(parse_assignments(assignments or ()))
    given.update({key.replace("__", "."): value for key, value in flags.items() if value is not None})
    return load_settings(project, given, os.environ, looks=looks)


def read_candidate_files(named: Iterable[str], task: Task, project: Path) -> Mapping[str, str]:
    """Path in the project -> text of each file.

    Args:
        named: The values of the option.
        task: What it is a candidate for.
        project: The folder that the task is about.

    Raises:
        UsageError: A file cannot be read, or its place in the project is not clear.
    """
    given: dict[str, str] = {}
    for name in named:
        path, equals, file = name.partition("=")
        source = Path(file if equals else name)
        try:
            text = source.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as fault:
            raise UsageError(f"{str(source)!r} cannot be read: {fault}") from fault
        given[path if equals else _place_of(source, task, project)] = text
    return given


def _place_of(file: Path, task: Task, project: Path) -> str:
    if task.kind == "write":
        named = [path for path in task.modules if Path(path).name == file.name]
        if len(named) == 1 or not task.several:
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
        f"which file of the project is {str(file)!r}?", remedy=f"say so: PATH={file}, with its path there"
    )
