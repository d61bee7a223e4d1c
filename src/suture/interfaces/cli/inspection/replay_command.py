"""`suture replay`, `suture resume` and `suture fork`: repeat, continue or branch off a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer
from typer import Option

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
    require_run,
)
from suture.interfaces.cli.terminal.error_reporting import handle_errors

if TYPE_CHECKING:
    from suture.api import ReviewAnswer
    from suture.loop import RecordedRun

AnswerWord = Literal["approve", "reject", "abort", "first", "second", "neither", "unsure"]
"""Answers of one word; the last four answer which of two repairs is right."""
ANSWER_WORDS: dict[str, AnswerWord] = {word: word for word in get_args(AnswerWord)}
"""Maps a typed word to itself, so that the type checker knows it as an `AnswerWord`."""


@handle_errors
def replay(
    run: RunName = "last",
    or_live: OrLive = False,
    assignments: Assignments = None,
    as_json: Json = False,
) -> None:
    """Repeat a run with the recorded replies of its model, and compare the two runs.

    No model is used. Task, files and settings come from the run's folder, and nothing is applied. Prints
    whether both runs are the same, or where they first differ, which exits with 1. Times, usage and run ids
    are not compared.
    """
    loaded = load_command_settings(Path(), assignments)
    require_run(run, loaded.settings)
    from suture.core.ledger import find_run
    from suture.core.records import render_reason
    from suture.interfaces.cli.terminal.run_progress import RunProgress
    from suture.interfaces.cli.terminal.terminal_output import print_json, print_note, print_text_line
    from suture.interfaces.narrative.plain_text import format_count
    from suture.interfaces.narrative.result_text import is_heal_run
    from suture.interfaces.narrative.wording import name_outcome

    with RunProgress(loaded.settings.budget) as progress:
        from suture.api import replay as replay_run
        from suture.api import run_sync

        comparison = run_sync(replay_run(run, or_live=or_live, settings=loaded.settings, on_event=progress))
    result, recorded, difference = comparison.result, comparison.recorded, comparison.difference
    if as_json:
        answer = {
            "recorded": recorded,
            "replay": result.run_id,
            "same": comparison.same,
            "difference": vars(difference) if difference else None,
            "outcome": result.outcome,
            "model_calls": result.spend.model_calls,
        }
        print_json(answer)
    elif difference is None:
        print_text_line(f"same: {recorded} and its replay took the same steps")
    else:
        print_text_line(f"different: {difference}")
    calls = format_count(result.spend.model_calls, "model call")
    is_heal = is_heal_run(find_run(loaded.settings.paths.home, result.run_id))
    outcome = name_outcome(result.outcome, "heal" if is_heal else "write")
    print_note(f"{outcome}: {render_reason(result.reason)}; {calls}")
    print_note(f"replay: suture show {result.run_id}; recorded: suture show {recorded}")
    if not comparison.same:
        raise typer.Exit(1)


@handle_errors
def resume(
    run: RunName = "last",
    answer_word: Annotated[
        str | None,
        Option(
            "--answer",
            metavar="WORD",
            help="The answer: approve, reject or abort; for two repairs: first, second, neither or unsure.",
        ),
    ] = None,
    hint: Annotated[
        str, Option("--hint", metavar="TEXT", help="Answer with a hint for the model, and continue.")
    ] = "",
    edit: Annotated[
        list[str] | None,
        Option("--edit", metavar="[PATH=]FILE", help="Answer with your own candidate; repeatable."),
    ] = None,
    apply: Apply = False,
    assignments: Assignments = None,
    *,
    output: OutputOptions,
) -> None:
    """Continue a run that waits for a person, was killed or cancelled, or failed because of its environment.

    Replies that the model has already given are not paid for again. A finished run cannot be resumed (see
    fork), and the settings are those of the run's start. Without an answer, the question is asked on the
    terminal; without a terminal the run keeps waiting.
    """
    loaded = load_command_settings(Path(), assignments)
    require_run(run, loaded.settings)
    from suture.api import load_recorded_run
    from suture.api import resume as resume_run
    from suture.interfaces.cli.run_execution import run_and_report

    recorded = load_recorded_run(run, loaded.settings)
    answer = _parse_review_answer(answer_word, hint, edit or (), recorded)

    start = partial(resume_run, run, settings=loaded.settings, apply=apply, answer=answer)
    loaded_at_start = replace(loaded, settings=recorded.settings)
    run_and_report(start, loaded_at_start, kind=recorded.task.kind, output=output)


def _parse_review_answer(
    answer_word: str | None, hint: str, edit: Sequence[str], recorded: RecordedRun
) -> ReviewAnswer | None:
    """Return the answer for a waiting run, or `None` if the options give none."""
    from suture.api import ReviewAnswer

    if (answer_word is not None) + bool(hint) + bool(edit) > 1:
        raise UsageError("--answer, --hint and --edit exclude each other", remedy="use one of them")
    if hint:
        return ReviewAnswer(choice="redirect", hint=hint)
    if edit:
        files = read_candidate_files(edit, recorded.task, recorded.project)
        return ReviewAnswer(choice="edit", files=files)
    if answer_word is None:
        return None
    if answer_word in ANSWER_WORDS:
        return ReviewAnswer(choice=ANSWER_WORDS[answer_word])
    raise UsageError(
        f"--answer takes {', '.join(ANSWER_WORDS)}, not {answer_word!r}", remedy="or use --hint or --edit"
    )


@handle_errors
def fork(
    run: RunName = "last",
    at: Annotated[
        int | None,
        Option(
            "--at",
            metavar="N",
            min=0,
            help="The step to start from; see `suture show --at`. Default: after a search that found nothing.",
        ),
    ] = None,
    changes: Assignments = None,
    hint: Annotated[str, Option("--hint", metavar="TEXT", help="A hint for the model from there on.")] = "",
    candidate: Annotated[
        list[str] | None,
        Option("--candidate", metavar="[PATH=]FILE", help="Your own candidate, judged first; repeatable."),
    ] = None,
    model: Model = None,
    recipe: Recipe = None,
    autonomy: Autonomy = None,
    apply: Apply = False,
    *,
    output: OutputOptions,
) -> None:
    """Start a new run from a step of another run, with another model, setting, hint or candidate.

    The new run reuses what the other run had done up to that step, so nothing is repeated or paid for again.
    Without --at, it starts after a search for small edits that found no repair, unless a changed setting could
    change what the search finds, and otherwise from the first test results. The other run does not change.
    """
    loaded = load_command_settings(Path())
    require_run(run, loaded.settings)
    from suture.api import fork_from_iteration, load_recorded_run
    from suture.core.settings.setting_changes import override_settings
    from suture.interfaces.cli.run_execution import run_and_report

    recorded = load_recorded_run(run, loaded.settings)
    options = {"model.name": model, "loop.recipe": recipe, "loop.autonomy": autonomy}
    changed: dict[str, object] = dict(parse_assignments(changes or ()))
    changed.update({key: value for key, value in options.items() if value is not None})
    files = read_candidate_files(candidate or (), recorded.task, recorded.project)

    start = partial(
        fork_from_iteration,
        run,
        at,
        changes=changed,
        hint=hint,
        candidate=files,
        settings=loaded.settings,
        apply=apply,
    )
    loaded_with_changes = replace(loaded, settings=override_settings(recorded.settings, changed))
    run_and_report(start, loaded_with_changes, kind=recorded.task.kind, output=output)
