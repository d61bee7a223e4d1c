"""JSON views of a run: from its ledger, and from the journal of jobs if there is no ledger yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from suture.api import Review, pending_review
from suture.core.ledger import RunFolder, first_payload, get_run_state, kinds, load_result, read_ledger
from suture.errors import StorageError
from suture.interfaces.jobs import JobRegistry
from suture.interfaces.jobs.job import INSPECTION_KINDS
from suture.interfaces.jobs.project_sources import find_allowed_folder
from suture.interfaces.narrative.result_text import applied_files, caution_lines
from suture.interfaces.narrative.review_text import review_as_json
from suture.interfaces.narrative.run_list import make_run_title
from suture.interfaces.narrative.run_progress_text import evidence_sentence, render_short_result
from suture.interfaces.narrative.run_story import run_as_json
from suture.interfaces.web.rest_schemas import RunAccepted, RunDetails
from suture.interfaces.web.tuning import MAX_EDITABLE_CHARS, MAX_EDITABLE_FILES

RUN_ROUTE = "GET /v1/runs/{run}"
"""The route of a run's state, for remedies: a path as in the OpenAPI document, not a template to fill in."""


def has_ledger(folder: RunFolder) -> bool:
    """Return whether the run has a ledger."""
    return folder.ledger_path.is_file()


def run_state(pool: JobRegistry, folder: RunFolder) -> str:
    """Return the state of a run as one word."""
    job = pool.find_active_job(folder.id)
    if job is not None:
        return "queued" if job in pool.waiting else "running"
    if has_ledger(folder):
        return get_run_state(folder, read_ledger(folder.ledger_path))
    return "refused"  # the job has ended without starting its run


def run_receipt(pool: JobRegistry, folder: RunFolder) -> RunAccepted:
    """Return a run with its state."""
    return RunAccepted(run=folder.id, state=run_state(pool, folder))


def run_details(
    pool: JobRegistry, folder: RunFolder, *, with_events: bool = False, roots: Sequence[str] = ()
) -> RunDetails:
    """Return the current state of a run, whose folder may not exist yet.

    Args:
        roots: The folders below which a change may be applied.
    """
    job, state = pool.find_last_job(folder.id), run_state(pool, folder)
    end = pool.end_of(job) if job is not None else None
    error = None
    if end is not None and end.error:
        error = {"detail": end.error, "remedy": end.remedy, "fault": end.fault, "exit_code": end.exit_code}
    fields: dict[str, Any] = {}
    if has_ledger(folder):
        run_json = run_as_json(folder)
        fields.update(outcome=run_json["outcome"], reason=run_json["reason"], spend=run_json["spend"])
        if with_events:
            fields["events"] = run_json["events"]
        fields |= _describe_task(folder) | _describe_result(folder)
        is_allowed = find_allowed_folder(fields.get("project", ""), roots) is not None
        is_healed = state == "ended" and fields["outcome"] == "healed" and fields.get("has_diff", False)
        fields["can_apply"] = is_allowed and is_healed and fields["kind"] == "heal"
    if state == "waiting" and (review := pending_review(folder.path)) is not None:
        fields["question"] = {**review_as_json(review), "key": review.key, "texts": _editable_texts(review)}
    owner = pool.find_owner(folder.id) or None
    return RunDetails(run=folder.id, state=state, caller=owner, error=error, **fields)


def _describe_task(folder: RunFolder) -> dict[str, Any]:
    """Return what a run was started with, as fields of `RunDetails`."""
    events = read_ledger(folder.ledger_path).events
    started = first_payload(events, kinds.RunStarted)
    if started is None:
        return {}
    checked = first_payload(events, kinds.CandidateChecked)
    values = {
        "kind": started.kind,
        "project": started.project,
        "statement": started.statement,
        "failing": checked.failed if checked is not None else 0,
    }
    return {
        "title": make_run_title(values),
        "kind": started.kind,
        "task": started.statement,
        "project": started.project,
        "recipe": started.recipe,
        "model": started.model,
        "started_s": events[0].time_s,
    }


def _describe_result(folder: RunFolder) -> dict[str, Any]:
    """Return how a run ended, as fields of `RunDetails`; nothing if it has no result."""
    result = load_result(folder)
    if result is None:
        return {}
    return {
        "headline": next(iter(render_short_result(result, folder, suggest_commands=False))),
        "evidence": evidence_sentence(result, folder),
        "remarks": list(caution_lines(result, folder)),
        "has_diff": bool(result.diff),
        "applied": list(applied_files(folder)),
    }


def _editable_texts(review: Review) -> dict[str, str]:
    """Return the files that a person may edit, path -> text, the candidate's first."""
    remaining_chars, texts = MAX_EDITABLE_CHARS, dict[str, str]()
    for path, text in review.editable.items():
        remaining_chars -= len(text)
        if remaining_chars < 0 or len(texts) == MAX_EDITABLE_FILES:
            break
        texts[path] = text
    return texts


def is_finished(pool: JobRegistry, folder: RunFolder) -> bool:
    """Return whether nothing more will be written about a run, as far as is known."""
    try:
        return run_state(pool, folder) in ("ended", "stopped", "refused")
    except StorageError:
        return True


def queued_runs(pool: JobRegistry) -> list[RunAccepted]:
    """Return the queued runs, in order."""
    return [
        RunAccepted(run=job.run, state="queued") for job in pool.waiting if job.kind not in INSPECTION_KINDS
    ]
