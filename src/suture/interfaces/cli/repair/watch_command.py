"""`suture watch`: heal a project again with each change of its files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suture.errors import PrerequisiteError, UsageError
from suture.interfaces.cli.terminal.command_options import (
    Assignments,
    Model,
    Only,
    Protect,
    Seconds,
    Test,
    load_command_settings,
    require_test_command,
)
from suture.interfaces.cli.terminal.error_reporting import Debug, handle_errors, report_error
from suture.interfaces.cli.terminal.terminal_output import print_note, print_raw

if TYPE_CHECKING:
    from suture.core.settings import Settings
    from suture.interfaces.watch.project_watch import WatchEvent

EXTRA = 'pip install "suture[watch]"'
MOST_NAMED = 3


@handle_errors
def watch(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A project's folder.")] = ".",
    test: Test = None,
    protect: Protect = None,
    only: Only = None,
    apply: Annotated[bool, typer.Option("--apply", help="Change the files, once a fix is verified.")] = False,
    model: Model = None,
    seconds: Seconds = None,
    assignments: Assignments = None,
    debug: Debug = False,
) -> None:
    """Run a project's tests with each change; where they fail, heal it and print the diff. Ctrl-C ends it.

    No model is asked unless --model names one: a search makes small edits. The files stay as they are unless
    --apply is given and every test passes. A change of yours while it works cancels that run, and the next
    one begins with what you wrote.
    """
    if not Path(path).is_dir():
        raise UsageError(f"there is no folder at {path!r}", remedy="name a project's folder")
    require_test_command(test)
    project = Path(path)
    loaded = load_command_settings(
        project,
        assignments,
        model__name=model or "none",
        models__coder=None if model else "none",
        budget__seconds=seconds,
    )
    try:
        import suture.interfaces.watch.project_watch  # noqa: F401  # before anything is begun
    except ModuleNotFoundError as fault:
        raise PrerequisiteError(f"this needs the package {fault.name!r}", remedy=EXTRA) from fault
    for remark in loaded.notes:
        print_note(f"note: {remark}")
    from suture.api import run_sync

    asked = f"the model {model}" if model else "no model"
    print_note(f"Watching {project.resolve()}, with {asked}; Ctrl-C ends it.")
    options = {"test": test, "protect": protect or (), "only": only or ()}
    run_sync(_watch(project, loaded.settings, options, apply=apply, debug=debug))


async def _watch(
    project: Path, settings: Settings, options: dict[str, Any], *, apply: bool, debug: bool
) -> None:
    from suture import api
    from suture.interfaces.cli.terminal.run_progress import RunProgress
    from suture.interfaces.watch.project_watch import RunFailed, watch

    async def heal() -> Any:
        with RunProgress(settings.budget) as progress:
            return await api.heal(project, settings=settings, on_event=progress, **options)

    async def write(run: str) -> None:
        await api.apply(run, settings=settings)

    first = True
    async for seen in watch(project, heal, write if apply else None):
        if first and isinstance(seen, RunFailed) and isinstance(seen.fault, UsageError):
            raise seen.fault  # such as no test command: no change of a file is waited for
        first = False
        _tell(seen, settings, debug=debug)


def _tell(seen: WatchEvent, settings: Settings, *, debug: bool) -> None:
    """Say what became of a run, and what is waited for."""
    from suture.core.ledger import find_run
    from suture.interfaces.narrative.run_progress_text import render_short_result
    from suture.interfaces.watch.project_watch import RunFailed, RunSuperseded

    if isinstance(seen, RunSuperseded):
        named = ", ".join(seen.changed[:MOST_NAMED])
        more = len(seen.changed) - MOST_NAMED
        print_note(f"You changed {named}{f' and {more} more' if more > 0 else ''}: once more.")
        return
    if isinstance(seen, RunFailed):
        report_error(seen.fault, debug=debug)
    else:
        result = seen.result
        if result.diff:
            print_raw(result.diff, diff=True)
        for line in render_short_result(result, find_run(settings.paths.home, result.run_id)):
            print_note(line)
        if seen.fault is not None:
            report_error(seen.fault, debug=debug)
    print_note("Waiting for a change.")
