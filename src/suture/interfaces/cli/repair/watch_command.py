"""`suture watch`: heal a project again whenever its files change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from suture.errors import UsageError
from suture.interfaces.cli.terminal.command_options import (
    Assignments,
    Model,
    Only,
    Protect,
    Seconds,
    Test,
    load_command_settings,
    require_extra,
    require_test_command,
)
from suture.interfaces.cli.terminal.error_reporting import Debug, handle_errors, report_error
from suture.interfaces.cli.terminal.terminal_output import print_note, print_raw

if TYPE_CHECKING:
    from suture.api.options import HealOptions
    from suture.core.records import Result
    from suture.core.settings import Settings
    from suture.interfaces.watch.project_watch import WatchedRunSuperseded, WatchEvent

MAX_LISTED_FILES = 3
"""Changed files that a line names. Chosen by judgement; not measured."""


@handle_errors
def watch(
    path: Annotated[str, Argument(metavar="PATH", help="The project's folder.")] = ".",
    test: Test = None,
    protect: Protect = None,
    only: Only = None,
    apply: Annotated[bool, Option("--apply", help="Apply a fix to your files once it is verified.")] = False,
    model: Model = None,
    seconds: Seconds = None,
    assignments: Assignments = None,
    debug: Debug = False,
) -> None:
    """Run a project's tests after each change; if they fail, heal the project and print the diff.

    Ctrl-C stops watching. Without --model, only a search for small edits runs. Your files change only with
    --apply,
    and only if every test passes. If you edit a file during a run, the run is cancelled and a new one starts
    with your edit.
    """
    if not Path(path).is_dir():
        raise UsageError(f"there is no folder at {path!r}", remedy="name the project's folder")
    require_test_command(test)
    project = Path(path)
    loaded = load_command_settings(
        project,
        assignments,
        model__name=model or "none",
        models__coder=None if model else "none",
        budget__seconds=seconds,
    )
    with require_extra("watch"):
        import suture.interfaces.watch.project_watch  # noqa: F401  # fails before anything is started
    for note in loaded.notes:
        print_note(f"note: {note}")
    from suture.api import run_sync

    model_text = f"the model {model}" if model else "no model"
    print_note(f"Watching {project.resolve()}, with {model_text}; press Ctrl-C to stop.")
    from suture.api.options import HealOptions

    options = HealOptions(test=test, protect=protect or (), only=only or (), settings=loaded.settings)
    run_sync(_watch(project, options, loaded.settings, apply=apply, debug=debug))


async def _watch(
    project: Path, options: HealOptions, settings: Settings, *, apply: bool, debug: bool
) -> None:
    from suture import api
    from suture.interfaces.cli.terminal.run_progress import RunProgress
    from suture.interfaces.watch.project_watch import WatchedRunFailed, watch_project

    async def heal() -> Result:
        with RunProgress(settings.budget) as progress:
            return await api.heal(project, replace(options, on_event=progress))

    async def write(result: Result) -> Mapping[str, str]:
        if result.outcome != "healed" or result.candidate is None:
            return {}
        await api.apply(result.run_id, settings=settings)
        return result.candidate.files

    is_first = True
    async for event in watch_project(project, heal, write if apply else None):
        if is_first and isinstance(event, WatchedRunFailed) and isinstance(event.fault, UsageError):
            raise event.fault  # such as a missing test command, which no change of a file will fix
        is_first = False
        _print_event(event, settings, debug=debug)


def _print_event(event: WatchEvent[Result], settings: Settings, *, debug: bool) -> None:
    """Print how a run ended, and that the next change is awaited."""
    from suture.core.ledger import find_run
    from suture.interfaces.narrative.run_progress_text import render_short_result
    from suture.interfaces.watch.project_watch import WatchedRunFailed, WatchedRunSuperseded

    if isinstance(event, WatchedRunSuperseded):
        print_superseded(event)
        return
    if isinstance(event, WatchedRunFailed):
        report_error(event.fault, debug=debug)
    else:
        result = event.result
        if result.diff:
            print_raw(result.diff, diff=True)
        for line in render_short_result(result, find_run(settings.paths.home, result.run_id)):
            print_note(line)
        if event.fault is not None:
            report_error(event.fault, debug=debug)
    print_note("Waiting for changes.")


def print_superseded(event: WatchedRunSuperseded) -> None:
    """Print which files the user has changed."""
    files = ", ".join(event.changed[:MAX_LISTED_FILES])
    more = len(event.changed) - MAX_LISTED_FILES
    print_note(f"You changed {files}{f' and {more} more' if more > 0 else ''}: starting again.")
