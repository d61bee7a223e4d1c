"""What is told of a run: from its ledger, and from the journal of jobs where there is no ledger yet."""

from __future__ import annotations

from typing import Any

from suture.api import Review, pending_review
from suture.core.ledger import RunFolder, get_run_state, read_ledger
from suture.errors import StorageError
from suture.interfaces.jobs import JobEnd, JobRegistry
from suture.interfaces.narrative.review_text import review_as_json
from suture.interfaces.narrative.run_story import run_as_json
from suture.interfaces.web.rest_schemas import RunAccepted, RunDetails

MOST_TEXTS = 20
MOST_TEXT_CHARS = 200_000


def has_ledger(folder: RunFolder) -> bool:
    """Whether anything of the run is written down."""
    return folder.ledger_path.is_file()


def run_state(pool: JobRegistry, folder: RunFolder) -> str:
    """How a run stands, in one word."""
    job = pool.find_active_job(folder.id)
    if job is not None:
        return "queued" if job in pool.waiting else "running"
    if has_ledger(folder):
        return get_run_state(folder, read_ledger(folder.ledger_path))
    return "refused"


def run_receipt(pool: JobRegistry, folder: RunFolder) -> RunAccepted:
    """A run in two words."""
    return RunAccepted(run=folder.id, state=run_state(pool, folder))


def run_details(pool: JobRegistry, folder: RunFolder, *, with_events: bool) -> RunDetails:
    """A run as it stands.

    Args:
        pool: Where it may be waiting, or being done.
        folder: Its folder, which may not be there yet.
        with_events: Whether its whole ledger is told.

    Raises:
        StorageError: Its folder is damaged.
    """
    job, state = pool.last_payload(folder.id), run_state(pool, folder)
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
        asked = pending_review(folder.path)
        more = {"key": asked.key, "texts": _first_texts(asked)} if asked else {}
        fields["question"] = {**review_as_json(asked), **more} if asked else None
    return RunDetails(**fields)


def _first_texts(asked: Review) -> dict[str, str]:
    """The files that a person may edit, those of the candidate first, as far as a page can take them."""
    left_chars, texts = MOST_TEXT_CHARS, dict[str, str]()
    for path, text in asked.editable.items():
        left_chars -= len(text)
        if left_chars < 0 or len(texts) == MOST_TEXTS:
            break
        texts[path] = text
    return texts


def job_error(end: JobEnd | None) -> dict[str, Any] | None:
    """Why a piece of work failed, in the command line's words; `None` where it did not."""
    if end is None or not end.error:
        return None
    return {"detail": end.error, "remedy": end.remedy, "fault": end.fault, "exit_code": end.exit_code}


def is_finished(pool: JobRegistry, folder: RunFolder) -> bool:
    """Whether nothing more will be written of a run, as far as is known."""
    if pool.find_active_job(folder.id) is not None:
        return False
    if not has_ledger(folder):
        return True
    try:
        return get_run_state(folder, read_ledger(folder.ledger_path)) in ("ended", "stopped")
    except StorageError:
        return True


def queued_runs(pool: JobRegistry) -> list[RunAccepted]:
    """The runs that wait for their turn, in order."""
    return [RunAccepted(run=job.run, state="queued") for job in pool.waiting if job.kind != "verify"]
