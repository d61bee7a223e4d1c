"""`suture replay` and `suture resume`: a run again from its record, or on from where it stopped."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from suture.errors import UsageError
from suture.interfaces.cli.terminal.faults import reports_faults
from suture.interfaces.cli.terminal.files_given import files_given
from suture.interfaces.cli.terminal.options import Apply, HowTold, Json, OrLive, RunName, Set, load

if TYPE_CHECKING:
    from suture.api import ReviewAnswer
    from suture.core.records import Result
    from suture.interfaces.cli.terminal.progress import RunProgress
    from suture.loop import RecordedRun, Replay

Word = Literal["approve", "reject", "abort", "first", "second", "neither", "unsure"]
"""What a person can say in one word; the last four to which of two repairs is right."""
WORDS: dict[str, Word] = {word: word for word in get_args(Word)}


@reports_faults
def replay(
    run: RunName = "last",
    or_live: OrLive = False,
    assignments: Set = None,
    as_json: Json = False,
) -> None:
    """Do a run again with the replies that its model gave then, and compare.

    No model is asked. Task, files and settings come from the run's folder; nothing is applied. Prints
    whether both runs went the same way, or where they part first, which exits 1. Times, usage and run ids
    are left out of the comparison.
    """
    loaded = load(Path(), assignments)
    from suture.interfaces.cli.terminal.output import answer, answer_json, note
    from suture.interfaces.cli.terminal.progress import RunProgress
    from suture.interfaces.narrative.lines import one_line

    with RunProgress(loaded.settings.budget) as progress:
        from suture.api import replay as replay_run
        from suture.api import run_sync

        done = run_sync(replay_run(run, or_live=or_live, settings=loaded.settings, on_event=progress))
    if as_json:
        answer_json(_as_plain(done))
    elif done.difference is None:
        answer(f"the same: {done.recorded} and its replay went the same way")
    else:
        answer(one_line(f"not the same: {done.difference}"))
    calls = done.result.spend.model_calls
    note(f"{done.result.outcome}: {done.result.reason}; {calls} model calls")
    note(f"replay: suture show {done.result.run_id}; recorded: suture show {done.recorded}")
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


@reports_faults
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
    assignments: Set = None,
    *,
    told: HowTold,
) -> None:
    """Go on with a run that waits for a person, was killed or stopped, or whose machinery failed.

    Replies that the model had given are not paid for again. A run that ended on its own cannot go on (see
    fork); its settings are those that it began with. Without an answer, what it waits for is asked on the
    terminal; without a terminal it goes on waiting.
    """
    detail = told.detail
    loaded = load(Path(), assignments)
    from suture.api import recorded_run
    from suture.interfaces.cli.run_command import carry_out

    recorded = recorded_run(run, loaded.settings)
    given = _answer(said, hint, edit or (), recorded)

    def start(progress: RunProgress) -> Coroutine[Any, Any, Result]:
        from suture.api import resume as resume_run
        from suture.interfaces.cli.commands.work.review import reviewer_at

        return resume_run(
            run,
            settings=loaded.settings,
            apply=apply,
            answer=given,
            on_review=reviewer_at(progress),
            on_event=progress,
        )

    began_with = replace(loaded, settings=recorded.settings)
    carry_out(start, began_with, kind=recorded.task.kind, as_json=told.as_json, detail=detail)


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
        files = files_given(edit, recorded.task, recorded.project)
        return ReviewAnswer(choice="edit", files=files)
    if said is None:
        return None
    if said in WORDS:
        return ReviewAnswer(choice=WORDS[said])
    raise UsageError(f"--answer takes {', '.join(WORDS)}, not {said!r}", remedy="or use --hint or --edit")
