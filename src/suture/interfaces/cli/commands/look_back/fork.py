"""`suture fork`: a new run from a step of another one, with something changed."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suture.interfaces.cli.terminal.faults import reports_faults
from suture.interfaces.cli.terminal.files_given import files_given
from suture.interfaces.cli.terminal.options import (
    Apply,
    Autonomy,
    HowTold,
    Model,
    Recipe,
    RunName,
    Set,
    load,
    parse_assignments,
)

if TYPE_CHECKING:
    from suture.core.records import Result
    from suture.interfaces.cli.terminal.progress import RunProgress


@reports_faults
def fork(
    run: RunName = "last",
    at: Annotated[
        int, typer.Option("--at", metavar="N", min=0, help="The step to start from; see `suture show --at`.")
    ] = 0,
    changes: Set = None,
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
    told: HowTold,
) -> None:
    """Start a new run from a step of another one, with another model, setting, hint or candidate.

    What the other run had done until that step counts as it did, and is neither done nor paid again. The
    other run stays as it is.
    """
    detail = told.detail
    loaded = load(Path())
    from suture.api import recorded_run
    from suture.core.settings.recording import settings_with
    from suture.interfaces.cli.run_command import carry_out

    recorded = recorded_run(run, loaded.settings)
    named = {"model.name": model, "loop.recipe": recipe, "loop.autonomy": autonomy}
    given = {key: value for key, value in named.items() if value is not None}
    changed: dict[str, object] = {**parse_assignments(changes or ()), **given}
    files = files_given(candidate or (), recorded.task, recorded.project)

    def start(progress: RunProgress) -> Coroutine[Any, Any, Result]:
        from suture.api import fork_from_iteration
        from suture.interfaces.cli.commands.work.review import reviewer_at

        return fork_from_iteration(
            run,
            at,
            changes=changed,
            hint=hint,
            candidate=files,
            settings=loaded.settings,
            apply=apply,
            on_review=reviewer_at(progress),
            on_event=progress,
        )

    began_with = replace(loaded, settings=settings_with(recorded.settings, changed))
    carry_out(start, began_with, kind=recorded.task.kind, as_json=told.as_json, detail=detail)
