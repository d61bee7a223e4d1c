"""`suture replay` and `suture resume`: a run again from its record, or on from where it stopped."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from suture.errors import UsageError
from suture.interfaces.cli.terminal.command_options import (
    Apply,
    Assignments,
    Autonomy,
    Json,
    Model,
    OrLive,
    OutputOptions,
    Recipe,
    RunName,
    load_command_settings,
    parse_assignments,
    read_candidate_files,
)
from suture.interfaces.cli.terminal.error_reporting import handle_errors

if TYPE_CHECKING:
    from suture.api import ReviewAnswer
    from suture.core.records import Result
    from suture.interfaces.cli.terminal.run_progress import RunProgress
    from suture.loop import RecordedRun, Replay

Word = Literal["approve", "reject", "abort", "first", "second", "neither", "unsure"]
"""What a person can say in one word; the last four to which of two repairs is right."""
WORDS: dict[str, Word] = {word: word for word in get_args(Word)}


@handle_errors
def replay(
    run: RunName = "last",
    or_live: OrLive = False,
    assignments: Assignments = None,
    as_json: Json = False,
) -> None:
    """Do a run again with the replies that its model gave then, and compare.

    No model is asked. Task, files and settings come from the run's folder; nothing is applied. Prints
    whether both runs went the same way, or where they part first, which exits 1. Times, usage and run ids
    are left out of the comparison.
    """
    loaded = load_command_settings(Path(), assignments)
    from suture.interfaces.cli.terminal.run_progress import RunProgress
    from suture.interfaces.cli.terminal.terminal_output import print_json, print_note, print_text
    from suture.interfaces.narrative.plain_text import escape_line_breaks

    with RunProgress(loaded.settings.budget) as progress:
        from suture.api import replay as replay_run
        from suture.api import run_sync

        done = run_sync(replay_run(run, or_live=or_live, settings=loaded.settings, on_event=progress))
    if as_json:
        print_json(_as_plain(done))
    elif done.difference is None:
        print_text(f"the same: {done.recorded} and its replay went the same way")
    else:
        print_text(escape_line_breaks(f"not the same: {done.difference}"))
    calls = done.result.spend.model_calls
    print_note(f"{done.result.outcome}: {done.result.reason}; {calls} model calls")
    print_note(f"replay: suture show {done.result.run_id}; recorded: suture show {done.recorded}")
    if not done.same:
        raise typer.Exit(1)


def _as_plain(done: Replay) -> dict[str, Any]:
    return {
        "recorded": done.recorded,
        "replay": done.result.run_id,
        "same": done.same,
        "difference": vars(done.difference) if done.difference else None,
        "outcome": done.result.outcome,
        "model_calls": done.result.spend.model_calls,
    }


@handle_errors
def resume(
    run: RunName = "last",
    said: Annotated[
        str | None,
        typer.Option(
            "--answer",
            metavar="WORD",
            help="To what it asks: approve, reject or abort; first, second or neither of two.",
        ),
    ] = None,
    hint: Annotated[
        str, typer.Option("--hint", metavar="TEXT", help="To what it asks: go on, and tell the model this.")
    ] = "",
    edit: Annotated[
        list[str] | None,
        typer.Option(
            "--edit", metavar="[PATH=]FILE", help="To what it asks: your own candidate; may be repeated."
        ),
    ] = None,
    apply: Apply = False,
    assignments: Assignments = None,
    *,
    told: OutputOptions,
) -> None:
    """Go on with a run that waits for a person, was killed or stopped, or whose machinery failed.

    Replies that the model had given are not paid for again. A run that ended on its own cannot go on (see
    fork); its settings are those that it began with. Without an answer, what it waits for is asked on the
    terminal; without a terminal it goes on waiting.
    """
    detail = told.detail
    loaded = load_command_settings(Path(), assignments)
    from suture.api import load_recorded_run
    from suture.interfaces.cli.run_execution import execute_run

    recorded = load_recorded_run(run, loaded.settings)
    given = _answer(said, hint, edit or (), recorded)

    def start(progress: RunProgress) -> Coroutine[Any, Any, Result]:
        from suture.api import resume as resume_run
        from suture.interfaces.cli.repair.review_command import terminal_reviewer

        return resume_run(
            run,
            settings=loaded.settings,
            apply=apply,
            answer=given,
            on_review=terminal_reviewer(progress),
            on_event=progress,
        )

    began_with = replace(loaded, settings=recorded.settings)
    execute_run(start, began_with, kind=recorded.task.kind, as_json=told.as_json, detail=detail)


def _answer(said: str | None, hint: str, edit: Sequence[str], recorded: RecordedRun) -> ReviewAnswer | None:
    """The one thing that a person says to a run that waits; `None` where they say nothing.

    Raises:
        UsageError: It is more than one thing, or none that is known.
    """
    from suture.api import ReviewAnswer

    if (said is not None) + bool(hint) + bool(edit) > 1:
        raise UsageError("--answer, --hint and --edit exclude each other", remedy="give one of them")
    if hint:
        return ReviewAnswer(choice="redirect", hint=hint)
    if edit:
        files = read_candidate_files(edit, recorded.task, recorded.project)
        return ReviewAnswer(choice="edit", files=files)
    if said is None:
        return None
    if said in WORDS:
        return ReviewAnswer(choice=WORDS[said])
    raise UsageError(f"--answer takes {', '.join(WORDS)}, not {said!r}", remedy="or use --hint or --edit")


@handle_errors
def fork(
    run: RunName = "last",
    at: Annotated[
        int, typer.Option("--at", metavar="N", min=0, help="The step to start from; see `suture show --at`.")
    ] = 0,
    changes: Assignments = None,
    hint: Annotated[
        str, typer.Option("--hint", metavar="TEXT", help="What the model is to be told from there on.")
    ] = "",
    candidate: Annotated[
        list[str] | None,
        typer.Option(
            "--candidate",
            metavar="[PATH=]FILE",
            help="A candidate of your own, judged first; may be repeated.",
        ),
    ] = None,
    model: Model = None,
    recipe: Recipe = None,
    autonomy: Autonomy = None,
    apply: Apply = False,
    *,
    told: OutputOptions,
) -> None:
    """Start a new run from a step of another one, with another model, setting, hint or candidate.

    What the other run had done until that step counts as it did, and is neither done nor paid again. The
    other run stays as it is.
    """
    detail = told.detail
    loaded = load_command_settings(Path())
    from suture.api import load_recorded_run
    from suture.core.settings.writing import settings_with
    from suture.interfaces.cli.run_execution import execute_run

    recorded = load_recorded_run(run, loaded.settings)
    named = {"model.name": model, "loop.recipe": recipe, "loop.autonomy": autonomy}
    given = {key: value for key, value in named.items() if value is not None}
    changed: dict[str, object] = {**parse_assignments(changes or ()), **given}
    files = read_candidate_files(candidate or (), recorded.task, recorded.project)

    def start(progress: RunProgress) -> Coroutine[Any, Any, Result]:
        from suture.api import fork_from_iteration
        from suture.interfaces.cli.repair.review_command import terminal_reviewer

        return fork_from_iteration(
            run,
            at,
            changes=changed,
            hint=hint,
            candidate=files,
            settings=loaded.settings,
            apply=apply,
            on_review=terminal_reviewer(progress),
            on_event=progress,
        )

    began_with = replace(loaded, settings=settings_with(recorded.settings, changed))
    execute_run(start, began_with, kind=recorded.task.kind, as_json=told.as_json, detail=detail)
