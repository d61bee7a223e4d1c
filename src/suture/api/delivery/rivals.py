"""Apply a change other than a run's result, where the tests do not decide which of several changes is right.

The search has only tried such a change. It is verified like any result first, in a new run that has a certificate and
can be undone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from suture.api.delivery.apply import apply, find_last_healed_run, require_not_applied
from suture.api.delivery.deliver import Delivery, choose_delivery, require_deliverable
from suture.api.delivery.transactions import recover_interrupted_changes
from suture.api.past_runs import load_fork_state, load_recorded_run
from suture.api.run_lifecycle import execute_run, open_run_models
from suture.core.ledger import Event, RunFolder, first_payload, last_payload, load_result
from suture.core.ledger.kinds import (
    MovesDecided,
    RepairChosen,
    RepairUndetermined,
    RunFinished,
    RunStarted,
    SearchFinished,
)
from suture.core.ledger.reading import Listener
from suture.core.records import Result
from suture.core.settings import Settings, load_settings
from suture.core.settings.setting_changes import override_settings
from suture.errors import UsageError
from suture.loop import RecordedRun
from suture.loop.review.questions import Reviewer
from suture.models import NO_MODEL
from suture.mutation.edits import decode_source, encode_source
from suture.project.workspace import apply_diff, decode_text, overlay_candidate, require_unchanged
from suture.sandbox import Sandbox

VERIFICATION_SETTINGS: Mapping[str, object] = {
    "loop.autonomy": "full_auto",
    "loop.recipe": "adaptive",
    "models.coder": NO_MODEL,
}
"""Settings of a run that verifies a chosen change: the person has decided, and no other role has a part in it."""


async def apply_rival(
    run: str | Path | None,
    number: int,
    *,
    commit: bool = False,
    branch: str | None = None,
    patch: str | Path | None = None,
    settings: Settings | None = None,
    sandbox: Sandbox | None = None,
    on_review: Reviewer | None = None,
    run_id: str = "",
    on_event: Listener | None = None,
) -> Result:
    """Verify one of the changes between which a run's tests do not decide, and deliver it if everything passes.

    A new run verifies it, without a model. Its result says how that ended; if it is healed, the change is delivered,
    and `undo` reverts it. The first change is the result of `run`, and is applied without another run.

    Args:
        run: `last`, an id, or the unique start or end of one; by default the last run that healed the project
            around the current folder.
        number: The number of the change, from 1, as `suture show` lists them.
        commit: Write the change, and commit it.
        branch: Commit the change on a new branch of this name.
        patch: Write the change into a new file as a diff.
        settings: Settings for keys and folders; by default from the environment and the settings files.
        sandbox: The sandbox; by default that of the recorded settings.
        on_review: Answers questions of the safety scan, as in `HealOptions`.
        run_id: The id of the new run, where one was reserved before.
        on_event: Called with each event of the new run, as in `HealOptions`.

    Raises:
        UsageError: There is no such run or change, the run is applied already, or the user has changed the same files
            since.
        SutureError: As `heal`.
    """
    settings = settings or load_settings(Path.cwd()).settings
    recorded = load_recorded_run(
        run if run is not None else find_last_healed_run(settings.paths.home, Path.cwd()), settings
    )
    recover_interrupted_changes(settings.paths.home, recorded.project)
    recorded = load_recorded_run(recorded.folder.path, settings)  # as it is now
    finished = last_payload(recorded.events, RunFinished)
    if number == 1 and finished is not None and finished.outcome == "healed":
        folder = await apply(
            recorded.folder.path,
            commit=commit,
            branch=branch,
            patch=patch,
            settings=settings,
            sandbox=sandbox,
        )
        return _require_result(folder)
    require_not_applied(recorded.folder, recorded.events)
    choice, files = _choose_change(recorded, number)
    is_default = not commit and branch is None and patch is None
    delivery = choose_delivery(apply=is_default, commit=commit, branch=branch, patch=patch)
    _require_deliverable_change(recorded, files, delivery)
    step = _find_step_before_search(recorded.events)
    started = first_payload(recorded.events, RunStarted)
    if started is not None and started.fork is not None and step < started.fork.step:
        raise UsageError(
            f"run {recorded.folder.id} continues another one, which found the changes",
            remedy=f"suture apply {started.fork.run} --rival {number}",
        )
    origin = await load_fork_state(recorded, step)
    run_settings = make_verification_settings(recorded.settings)
    async with open_run_models(run_settings, NO_MODEL, live=True) as models:
        spec = replace(
            recorded.spec(models, sandbox),
            run_id=run_id,
            on_review=on_review,
            settings=run_settings,
            origin=replace(origin, choice=choice, files=files),
        )
        return await execute_run(spec, delivery, on_event=on_event)


def make_verification_settings(settings: Settings) -> Settings:
    """Return the settings of a run that verifies a change and asks no model, from those of the run that found it."""
    settings = override_settings(settings, VERIFICATION_SETTINGS)
    models = settings.models.model_copy(update={"escalate": None})
    model = settings.model.model_copy(update={"fallbacks": ()})
    return settings.model_copy(update={"models": models, "model": model})


def _require_result(folder: RunFolder) -> Result:
    result = load_result(folder)
    assert result is not None  # the change of a run without one cannot be applied
    return result


def _choose_change(recorded: RecordedRun, number: int) -> tuple[RepairChosen, dict[str, str]]:
    """Return the choice of a change, and what the change makes of the files that it touches: path -> text."""
    run, undetermined = recorded.folder.id, last_payload(recorded.events, RepairUndetermined)
    changes = undetermined.changes if undetermined is not None else ()
    if len(changes) < 2:
        started, chosen = (
            first_payload(recorded.events, RunStarted),
            last_payload(recorded.events, RepairChosen),
        )
        origin = (
            started.fork if started is not None and chosen is not None and chosen.by == "person" else None
        )
        raise UsageError(
            f"run {run} found no other change that passes the same tests",
            remedy=f"name the run that found them: suture apply {origin.run} --rival {number}"
            if origin is not None
            else f"suture show {run}",
        )
    if not 1 <= number <= len(changes):
        raise UsageError(
            f"run {run} has no change {number}: it lists {len(changes)}", remedy=f"suture show {run}"
        )
    # The search renders the diffs of decoded texts, so that they also apply to files with other line ends.
    before = {
        path: encode_source(decode_text(content))
        for path, content in recorded.task.files.items()
        if b"\0" not in content
    }
    after = apply_diff(before, changes[number - 1].diff)
    files = {path: decode_source(raw) for path, raw in after.items() if before.get(path) != raw}
    return RepairChosen(labels=tuple(change.label for change in changes), choice=number, by="person"), files


def _require_deliverable_change(recorded: RecordedRun, files: Mapping[str, str], delivery: Delivery) -> None:
    """Refuse a delivery that could not be made in the end, before the change is verified."""
    require_deliverable(delivery, recorded.project)
    if delivery.how in ("apply", "commit"):
        given = recorded.task.given_files
        require_unchanged(recorded.project, given, overlay_candidate(given, files))


def _find_step_before_search(events: Sequence[Event]) -> int:
    """Return the number of decisions that a run had carried out before its last search."""
    decision = step = 0
    for event in events:
        match event.payload:
            case MovesDecided():
                decision = event.payload.decision
            case SearchFinished():
                step = max(0, decision - 1)
    return step
