"""`suture replay` and `suture resume`: a run again from its record, or on from where it was killed."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suture.cli.faults import reports_faults
from suture.cli.options import Debug, Json, OrLive, Set, load

if TYPE_CHECKING:
    from suture.api import Listener
    from suture.loop import Replay
    from suture.records import Result

__all__ = ["replay", "resume"]

Run = Annotated[
    str,
    typer.Argument(metavar="RUN", help="`last`, an id, the unique start or end of one, or a run's folder."),
]


@reports_faults
def replay(
    run: Run = "last",
    or_live: OrLive = False,
    assignments: Set = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Do a run again with the replies that its model gave then, and compare.

    No model is asked. Task, files and settings come from the run's folder; nothing is applied. Prints
    whether both runs went the same way, or where they part first, which exits 1. Times, usage and run ids
    are left out of the comparison.
    """
    loaded = load(Path(), assignments)
    from suture.cli.progress import Progress
    from suture.cli.terminal import answer, answer_json, note

    with Progress(loaded.settings.budget) as progress:
        from suture.api import replay as replay_run
        from suture.api import run_sync

        done = run_sync(replay_run(run, or_live=or_live, settings=loaded.settings, on_event=progress))
    if as_json:
        answer_json(_as_plain(done))
    elif done.difference is None:
        answer(f"the same: {done.recorded} and its replay went the same way")
    else:
        answer(f"not the same: {done.difference}")
    note(f"{done.result.outcome}: {done.result.reason}; {done.result.spend.model_calls} model calls")
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
    run: Run = "last",
    apply: Annotated[
        bool, typer.Option("--apply", help="Change the files, once the result is verified.")
    ] = False,
    assignments: Set = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Go on with a run whose process was killed, from its last checkpoint.

    Replies that the model had given are not paid for again. Only a run that has no end can go on; its
    settings are those that it began with.
    """
    loaded = load(Path(), assignments)
    from suture.api import recorded_run
    from suture.cli.carrying_out import carry_out

    recorded = recorded_run(run, loaded.settings)

    def start(on_event: Listener) -> Coroutine[Any, Any, Result]:
        from suture.api import resume as resume_run

        return resume_run(run, settings=loaded.settings, apply=apply, on_event=on_event)

    began_with = replace(loaded, settings=recorded.settings)
    carry_out(start, began_with, project=recorded.project, kind=recorded.task.kind, as_json=as_json)
