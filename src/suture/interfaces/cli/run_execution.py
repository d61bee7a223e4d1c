"""Execute a run for the user: progress while it runs, then the result and how it ended."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from suture.errors import PrerequisiteError, SutureError, UsageError
from suture.interfaces.cli.terminal.terminal_output import print_json, print_note, print_raw

if TYPE_CHECKING:  # slow to import; the first line must be on the screen before
    from suture.core.ledger import RunFolder
    from suture.core.records import Result, TaskKind
    from suture.core.settings import LoadedSettings, Settings
    from suture.core.settings.schema import ProposerSettings
    from suture.interfaces.cli.terminal.command_options import Detail, OutputOptions


def _describe_model(settings: Settings) -> str:
    """Return the model that is asked first; if Suture chose another than the setting names, also why."""
    from suture.models import choose_model, require_model_name

    name, reason = (settings.models.coder, "") if settings.models.coder else choose_model(settings)
    require_model_name(name)
    return f"{name} ({reason})" if reason and name != settings.model.name else name


def _require_recipe(settings: Settings) -> None:
    """Check before a run is announced that its recipe exists and is valid."""
    if settings.loop.recipe == type(settings.loop)().recipe:
        return  # the default recipe exists, and checking it delays the first line by a second
    from suture.loop import load_recipe

    load_recipe(settings.loop, settings.model.temperature)


def _add_continuation_hint(fault: SutureError) -> SutureError:
    """Add to the error's remedy how the run that it stopped can be continued."""
    from suture.interfaces.narrative.result_text import continuation_hint

    is_usage_error = isinstance(fault, UsageError) and not isinstance(fault, PrerequisiteError)
    if fault.stopped_run_id and not is_usage_error:
        hint = f"then {continuation_hint(fault.stopped_run_id)}"
        fault.remedy = f"{fault.remedy}; {hint}" if fault.remedy else hint
    return fault


def _proposer_lines(proposer: ProposerSettings, seconds: float) -> Iterator[str]:
    """Yield which program is asked instead of a model, and where it runs."""
    location = "on this machine" if proposer.outside else "in the sandbox, without network"
    turns = "1 turn" if proposer.turns == 1 else f"{proposer.turns} turns"
    limits = f"at most {turns} of {proposer.seconds:g} s, {seconds:g} s in all"
    yield f"Proposer {proposer.command!r}, {location}; {limits}. Each change is judged."
    if proposer.outside:
        yield (
            "Warning: the proposer runs as you, with your files, keys and network, and may follow instructions "
            "in the project's text. Its changes are judged in the sandbox; its other actions are not restricted."
        )


def _first_lines(loaded: LoadedSettings, kind: TaskKind) -> Iterator[str]:
    """Yield what a user should know before the run: the model, the recipe and the limits."""
    yield from (f"note: {note}" for note in loaded.notes)
    settings, budget = loaded.settings, loaded.settings.budget
    if kind == "heal" and settings.proposer.command:
        yield from _proposer_lines(settings.proposer, budget.seconds)
        return
    if settings.model.name == "none":
        yield f"No model; at most {budget.seconds:g} s."
        return
    money = "" if budget.money is None else f"${budget.money:g}, "
    scripted = " (scripted, not a model)" if settings.model.name.startswith("scripted:") else ""
    yield (
        f"Model {_describe_model(settings)}{scripted}, recipe {settings.loop.recipe}; at most "
        f"{budget.attempts} attempts, {budget.tokens:,} tokens, {money}{budget.seconds:g} s."
    )


def _find_model(result: Result, settings: Settings) -> str:
    """Return the model to suggest to a run that had none: the one that is here, otherwise a placeholder."""
    from suture.interfaces.narrative.result_text import MODEL_PLACEHOLDER

    if result.reason.code not in ("no_model", "no_search"):
        return MODEL_PLACEHOLDER
    from suture.models import detect_models

    return next((place.model for place in detect_models(settings) if place.model), MODEL_PLACEHOLDER)


def _last_lines(result: Result, settings: Settings, folder: RunFolder, detail: Detail) -> Iterator[str]:
    """Yield how a run ended, in the requested detail; a failure and important warnings appear in every mode."""
    from suture.core.ledger import read_ledger
    from suture.interfaces.narrative.exit_codes import EXIT_CODES
    from suture.interfaces.narrative.result_text import (
        failing_test_lines,
        is_heal_run,
        render_full_result,
        warning_lines,
    )
    from suture.interfaces.narrative.rival_text import rival_lines
    from suture.interfaces.narrative.run_progress_text import outcome_sentence, render_short_result

    if detail == "verbose":
        yield from render_full_result(result, settings.budget, folder, _find_model(result, settings))
    elif detail == "brief":
        yield from render_short_result(result, folder, model=_find_model(result, settings))
    elif result.outcome == "waiting":
        yield f"Waiting for you: suture review {folder.id}"
    else:
        if EXIT_CODES[result.outcome]:
            events = read_ledger(folder.ledger_path).events
            yield outcome_sentence(result, events, heals=is_heal_run(folder))
        yield from failing_test_lines(result)
        yield from rival_lines(result, folder)
        yield from warning_lines(result)


RUN_MODULES = (
    "suture.interfaces.cli.terminal.run_progress",
    "suture.interfaces.cli.repair.review_command",
    "suture.models",
    "suture.search",
    "suture.api.heal_and_solve",
)
"""What a run needs and takes long to import."""


async def _execute(
    start: Callable[..., Coroutine[Any, Any, Result]],
    settings: Settings,
    project: tuple[Path, str | None] | None,
    detail: Detail,
) -> Result:
    """Execute a run, and show its progress; the arguments are as for `run_and_report`."""
    from suture.core.interruption import run_in_daemon_thread

    async with AsyncExitStack() as stack:
        options: dict[str, Any] = {}
        if project is not None:
            from suture.judge.runners.early_start import open_early_sandbox

            options["sandbox"] = await stack.enter_async_context(open_early_sandbox(settings, *project))
        # In a thread, so that the event loop can start the sandbox in the meantime.
        await run_in_daemon_thread(lambda: [import_module(name) for name in RUN_MODULES])
        from suture.interfaces.cli.repair.review_command import terminal_reviewer
        from suture.interfaces.cli.terminal.run_progress import RunProgress
        from suture.models import listen_to_replies
        from suture.search import listen_to_search

        with (
            RunProgress(settings.budget, detail) as progress,
            listen_to_replies(progress.show_reply),
            listen_to_search(progress.show_search),
        ):
            return await start(on_event=progress, on_review=terminal_reviewer(progress), **options)


def run_and_report(
    start: Callable[..., Coroutine[Any, Any, Result]],
    loaded: LoadedSettings,
    *,
    kind: TaskKind,
    output: OutputOptions,
    announces: bool = True,
    project: tuple[Path, str | None] | None = None,
) -> None:
    """Execute a run, then report its result and exit with its exit code.

    Args:
        start: Creates the run's coroutine. It is called with the listener as `on_event`, on a terminal with the
            reviewer that asks the person as `on_review`, and with the sandbox as `sandbox` if there is a `project`.
        loaded: The settings, and notes about them.
        kind: `write` prints the code, `heal` prints the diff.
        output: How to show the progress and the result.
        announces: Whether to print first which model is asked, and the limits.
        project: The folder whose tests the run will run, and the user's test command: they start in the sandbox while
            the modules of the run are imported.
    """
    settings, detail = loaded.settings, output.detail
    _require_recipe(settings)
    if detail != "quiet" and announces:
        for line in _first_lines(loaded, kind):
            print_note(line)
    from suture.core.interruption import run_sync
    from suture.core.ledger import find_run, load_result

    delivery_error = None
    try:
        result = run_sync(_execute(start, settings, project, detail))
    except SutureError as fault:
        if not fault.run_id:
            raise _add_continuation_hint(fault) from fault.__cause__
        delivery_error = fault
        written_result = load_result(find_run(settings.paths.home, fault.run_id))
        assert written_result is not None  # a delivery starts only after the result is written
        result = written_result
    from suture.interfaces.narrative.exit_codes import EXIT_CODES
    from suture.interfaces.narrative.result_text import applied_files, result_as_json, result_output

    folder = find_run(settings.paths.home, result.run_id)
    applied = applied_files(folder)
    exit_code = delivery_error.exit_code if delivery_error else EXIT_CODES[result.outcome]
    if output.as_json:
        error = {"error": str(delivery_error)} if delivery_error else {}
        print_json({**result_as_json(result, folder, applied), "exit_code": exit_code, **error})
    elif text := result_output(result, kind):
        print_raw(text, diff=kind == "heal")
    for line in _last_lines(result, settings, folder, detail):
        print_note(line)
    if delivery_error:
        raise delivery_error
    if exit_code:
        raise typer.Exit(exit_code)
