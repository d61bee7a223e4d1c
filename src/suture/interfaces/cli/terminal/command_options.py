"""The options that several commands share, and the settings that they produce."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from suture.errors import PrerequisiteError, UsageError, describe_fault
from suture.interfaces.cli.terminal.value_completion import complete_model, complete_recipe, complete_run

if TYPE_CHECKING:
    from suture.core.records import Task
    from suture.core.settings import LoadedSettings, Settings

Detail = Literal["quiet", "brief", "verbose"]
"""How much a run prints on stderr while it runs and at its end."""

Json = Annotated[bool, Option("--json", help="Print one JSON document on stdout.")]
Verbose = Annotated[bool, Option("--verbose", "-v", help="Print every step in full detail.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Print only the result.")]
Assignments = Annotated[
    list[str] | None,
    Option("--set", metavar="KEY=VALUE", help="Any setting, such as loop.samples=8; repeatable."),
]
Model = Annotated[
    str | None,
    Option(
        "--model",
        metavar="PROVIDER:MODEL",
        help="The model to use; the setting model.name.",
        autocompletion=complete_model,
    ),
]
Test = Annotated[
    str | None,
    Option(
        "--test",
        metavar="COMMAND",
        help="The test command; default: project.test, or detected from the files.",
    ),
]
Protect = Annotated[
    list[str] | None, Option("--protect", metavar="GLOB", help="Files that must not change; repeatable.")
]
Only = Annotated[
    list[str] | None, Option("--only", metavar="GLOB", help="The only files that may change; repeatable.")
]
Python = Annotated[
    Path | None,
    Option("--python", metavar="PATH", help="The Python that runs the tests; the setting sandbox.python."),
]
Apply = Annotated[bool, Option("--apply", help="Apply the change to your files once it is verified.")]
Branch = Annotated[
    str | None, Option("--branch", metavar="NAME", help="Commit on a new branch; your files do not change.")
]
Recipe = Annotated[
    str | None,
    Option(
        "--recipe",
        metavar="NAME",
        help="The strategy; the setting loop.recipe.",
        autocompletion=complete_recipe,
    ),
]
Autonomy = Annotated[
    str | None,
    Option(
        "--autonomy",
        metavar="MODE",
        help="When to ask you: full_auto, review_repairs or review_all; the setting loop.autonomy.",
    ),
]
ApproveDeps = Annotated[
    str | None,
    Option(
        "--approve-deps",
        metavar="MODE",
        help="Packages that new code requires: ask (about those not on the allowlist), allowlist or never; "
        "the setting safety.approve_deps.",
    ),
]
RunName = Annotated[
    str,
    Argument(
        metavar="RUN",
        help="`last` (of this folder), `newest` (of all), an id, its unique start or end, or a run's folder.",
        autocompletion=complete_run,
    ),
]
Replies = Annotated[
    str | None,
    Option("--replies", metavar="RUN|FILE", help="Use a run's recorded replies, or a file of replies."),
]
OrLive = Annotated[bool, Option("--or-live", help="Ask the model for replies that are not recorded.")]
LogJson = Annotated[
    Path | None,
    Option(
        "--log-json",
        metavar="FILE",
        help="Write each event to this file, one JSON object per line; log.file.",
    ),
]
Attempts = Annotated[
    int | None,
    Option("--attempts", metavar="N", help="Max attempts: candidates by a model; budget.attempts."),
]
Tokens = Annotated[
    int | None, Option("--tokens", metavar="N", help="Max tokens, input and output; budget.tokens.")
]
Money = Annotated[float | None, Option("--money", metavar="USD", help="Max US dollars; budget.money.")]
Seconds = Annotated[float | None, Option("--seconds", metavar="S", help="Max seconds; budget.seconds.")]


RUN_SETTINGS: Mapping[str, str] = {
    "model": "model.name",
    "recipe": "loop.recipe",
    "autonomy": "loop.autonomy",
    "log_json": "log.file",
    "attempts": "budget.attempts",
    "tokens": "budget.tokens",
    "money": "budget.money",
    "seconds": "budget.seconds",
}
"""Option of a command that starts a run -> the setting that it sets. Commands without the option take `--set`."""


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
        """Return the run's settings; `flags` are further options, as in `load_command_settings`."""
        group_flags: dict[str, Any] = {
            setting.replace(".", "__"): getattr(self, option) for option, setting in RUN_SETTINGS.items()
        }
        return load_command_settings(project, self.assignments, **(group_flags | flags))


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """Options of every command that executes a run: how to show its progress and its result."""

    verbose: Verbose = False
    quiet: Quiet = False
    as_json: Json = False

    def __post_init__(self) -> None:
        require_at_most_one({"--verbose": self.verbose, "--quiet": self.quiet})

    @property
    def detail(self) -> Detail:
        """How much to print beside the result."""
        return "verbose" if self.verbose else "quiet" if self.quiet else "brief"


def parse_assignments(assignments: Sequence[str]) -> dict[str, str]:
    """Parse the `key=value` arguments of `--set`."""
    values: dict[str, str] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not key.strip() or not equals:
            raise UsageError(
                f"--set takes KEY=VALUE, not {assignment!r}", remedy="`suture config show` lists the keys"
            )
        values[key.strip()] = value
    return values


def require_at_most_one(options: Mapping[str, object]) -> None:
    """Reject options that contradict each other; a value of false or `None` means that one is not used."""
    used = [flag for flag, value in options.items() if value not in (None, False)]
    if len(used) > 1:
        raise UsageError(f"{' and '.join(used)} exclude each other", remedy="use one of them")


def require_file(path: Path | None, description: str) -> None:
    """Check that the file of an option exists, before anything slow is imported.

    Args:
        path: The file, or `None` if the option is not used.
        description: What the error message calls the file.
    """
    if path is None:
        return
    name = f"{description} {str(path)!r}"
    if not os.path.lexists(path):
        raise UsageError(f"{name} does not exist", remedy="check the path")
    if path.is_dir():
        raise UsageError(f"{name} is a folder", remedy="name a file in it")


def require_run(run: str | None, settings: Settings) -> None:
    """Check that a run exists, before what continues or delivers it is imported, which takes seconds.

    Args:
        run: The name of the run, or the path of its folder; `None` if the option is not used.
        settings: The settings, for the folder of the runs. Runs of a shared database may be fetched later.
    """
    from suture.core.ledger import RunFolder, find_run

    is_folder = run is not None and os.path.isfile(RunFolder(Path(run)).ledger_path)  # noqa: PTH113 - any text is a name
    if run is not None and not is_folder and not settings.store.url:
        find_run(settings.paths.home, run)


def require_python(path: Path | None) -> None:
    """Check that the Python of an option is an interpreter or the folder of an environment."""
    if path is None or not path.is_dir():
        require_file(path, "the Python")
    program = path / "bin" / "python" if path is not None and path.is_dir() else path
    if program is not None and not os.access(program, os.X_OK):
        problem = "is not executable" if program == path else "is a folder without bin/python"
        raise UsageError(
            f"the Python {str(path)!r} {problem}",
            remedy="name an interpreter or the folder of an environment, such as .venv",
        )


def require_project_folder(project: Path) -> None:
    """Check that a project is a folder."""
    if not project.is_dir():
        raise UsageError(f"{str(project)!r} is not a folder", remedy="name the project's folder")


def require_folders(roots: Sequence[Path]) -> None:
    """Check that all of these are folders."""
    for root in roots:
        if not os.path.isdir(root):  # noqa: PTH112 - Path.is_dir may raise
            message = f"there is no folder at {str(root)!r}"
            raise UsageError(message, remedy="name a folder that contains projects")


@contextmanager
def require_extra(extra: str) -> Iterator[None]:
    """Wrap the import of an interface: a missing package becomes an error that names its extra."""
    try:
        yield
    except ModuleNotFoundError as fault:
        if (fault.name or "suture").startswith("suture"):
            raise  # a module of Suture itself, which no extra installs
        from suture.core.installation import format_install_command

        message = f"this needs the package {fault.name!r}"
        raise PrerequisiteError(message, remedy=format_install_command(extra)) from fault


def require_test_command(test: str | None) -> None:
    """Reject an empty test command."""
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
        **flags: Values by setting name, with `__` for the dot. `None` means that the option is not used.
    """
    from suture.core.settings import load_settings

    values: dict[str, object] = dict(parse_assignments(assignments or ()))
    values.update({key.replace("__", "."): value for key, value in flags.items() if value is not None})
    return load_settings(project, values, os.environ, read_only=read_only)


def command_line_settings(assignments: list[str] | None, model: str | None) -> dict[str, object]:
    """Return the settings of a server's command line; each run loads the rest for its own project."""
    flags: dict[str, object] = dict(parse_assignments(assignments or ()))
    if model is not None:
        flags["model.name"] = model
    return flags


def read_candidate_files(arguments: Iterable[str], task: Task, project: Path) -> Mapping[str, str]:
    """Read a person's candidate from `FILE` or `PATH=FILE` arguments; return project path -> text."""
    texts: dict[str, str] = {}
    for argument in arguments:
        path, equals, file = argument.partition("=")
        source = Path(file if equals else argument)
        try:
            text = source.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as fault:
            raise UsageError(f"{str(source)!r} cannot be read: {describe_fault(fault)}") from fault
        texts[path if equals else _project_path(source, task, project)] = text
    return texts


def _project_path(file: Path, task: Task, project: Path) -> str:
    """Return which file of the project a file replaces, judged by its path and then by its name."""
    if task.kind == "write":
        modules = [path for path in task.modules if Path(path).name == file.name]
        if len(modules) == 1 or not task.allows_more_files:
            return (modules or [task.module])[0]
    try:
        relative_path = file.resolve().relative_to(project.resolve()).as_posix()
    except ValueError:
        relative_path = ""
    if relative_path in task.files:
        return relative_path
    same_name = [path for path in task.files if Path(path).name == file.name]
    if len(same_name) == 1:
        return same_name[0]
    raise UsageError(
        f"cannot tell which file of the project {str(file)!r} replaces",
        remedy=f"name it: PATH={file}, with PATH relative to the project",
    )
