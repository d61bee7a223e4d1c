"""JSON views of a run: from its ledger, and from the journal of jobs if there is no ledger yet."""

from __future__ import annotations

from typing import Any

from suture.api import Review, pending_review
from suture.core.ledger import RunFolder, get_run_state, read_ledger
from suture.errors import StorageError
from suture.interfaces.jobs import JobEnd, JobRegistry
from suture.interfaces.narrative.review_text import review_as_json
from suture.interfaces.narrative.run_story import run_as_json
from suture.interfaces.web.rest_schemas import RunAccepted, RunDetails

MAX_EDITABLE_FILES = 20
MAX_EDITABLE_CHARS = 200_000


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
    return "refused"


def run_receipt(pool: JobRegistry, folder: RunFolder) -> RunAccepted:
    """Return a run with its state."""
    return RunAccepted(run=folder.id, state=run_state(pool, folder))


def run_details(pool: JobRegistry, folder: RunFolder, *, with_events: bool) -> RunDetails:
    """Return the current state of a run.

    Args:
        pool: The pool in which it may be waiting or running.
        folder: Its folder, which may not exist yet.
        with_events: Whether to include the whole ledger.

    Raises:
        StorageError: Its folder is damaged.
    """
    job, state = pool.find_last_job(folder.id), run_state(pool, folder)
    end = pool.end_of(job) if job is not None else None
    fields: dict[str, Any] = {
        "run": folder.id,
        "state": state,
        "caller": job.caller if job is not None else None,
        "error": job_error(end),
    }
    if has_ledger(folder):
        plain = run_as_json(folder)
        fields.update(outcome=plain["outcome"], reason=plain["reason"], spend=plain["spend"])
        if with_events:
            fields["events"] = plain["events"]
    if state == "waiting":
        review = pending_review(folder.path)
        extras = {"key": review.key, "texts": _editable_texts(review)} if review else {}
        fields["question"] = {**review_as_json(review), **extras} if review else None
    return RunDetails(**fields)


def _editable_texts(review: Review) -> dict[str, str]:
    """Return the files that a person may edit, the candidate's first, up to a limit that fits the page."""
    remaining_chars, texts = MAX_EDITABLE_CHARS, dict[str, str]()
    for path, text in review.editable.items():
        remaining_chars -= len(text)
        if remaining_chars < 0 or len(texts) == MAX_EDITABLE_FILES:
            break
        texts[path] = text
    return texts


def job_error(end: JobEnd | None) -> dict[str, Any] | None:
    """Return why a job failed, with the command line's message, or `None`."""
    if end is None or not end.error:
        return None
    return {"detail": end.error, "remedy": end.remedy, "fault": end.fault, "exit_code": end.exit_code}


def is_finished(pool: JobRegistry, folder: RunFolder) -> bool:
    """Return whether nothing more will be written about a run, as far as is known."""
    if pool.find_active_job(folder.id) is not None:
        return False
    if not has_ledger(folder):
        return True
    try:
        return get_run_state(folder, read_ledger(folder.ledger_path)) in ("ended", "stopped")
    except StorageError:
        return True


def queued_runs(pool: JobRegistry) -> list[RunAccepted]:
    """Return the queued runs, in order."""
    return [RunAccepted(run=job.run, state="queued") for job in pool.waiting if job.kind != "verify"]
