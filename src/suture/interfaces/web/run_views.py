"""JSON views of a run: from its ledger, and from the journal of jobs if there is no ledger yet."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suture.core.ledger import (
    FINAL_EVENT_KINDS,
    PAUSED_KIND,
    RunFolder,
    find_doubt,
    first_payload,
    get_run_state,
    is_being_written,
    kinds,
    last_payload,
    load_result,
    read_ledger,
)
from suture.core.ledger.reading import parse_line
from suture.core.ledger.run_state import RESUMED_KIND
from suture.core.records.unmeasured_text import render_unmeasured
from suture.core.safe_files import read_regular_file
from suture.core.settings import Settings
from suture.core.tuning import MAX_EVENT_LINE_BYTES
from suture.errors import StorageError
from suture.interfaces.jobs import Job, JobRegistry
from suture.interfaces.jobs.job import INSPECTION_KINDS, REPLY_FILE, SEARCH_FILE
from suture.interfaces.jobs.project_sources import find_allowed_folder
from suture.interfaces.narrative.event_text import render_event
from suture.interfaces.narrative.result_text import applied_files, caution_lines
from suture.interfaces.narrative.review_text import review_as_json
from suture.interfaces.narrative.rival_text import rival_lines
from suture.interfaces.narrative.run_list import make_run_title
from suture.interfaces.narrative.run_progress_text import (
    ProgressNarrator,
    evidence_sentence,
    render_short_result,
)
from suture.interfaces.narrative.run_story import run_as_json
from suture.interfaces.web.rest_schemas import RunAccepted, RunDetails, UnstartedRun
from suture.interfaces.web.tuning import (
    HEARTBEAT_S,
    MAX_EDITABLE_CHARS,
    MAX_EDITABLE_FILES,
    MAX_READ_BYTES,
    POLL_S,
    RETRY_MS,
)
from suture.models import NO_MODEL
from suture.storage.database.projections import count_initial_failures

if TYPE_CHECKING:
    from suture.api import Review

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
    pool: JobRegistry, folder: RunFolder, settings: Settings, *, with_events: bool = False
) -> RunDetails:
    """Return the current state of a run, whose folder may not exist yet.

    Args:
        settings: The server's settings, which say where a change may be applied and sent.
    """
    job, state = pool.find_last_job(folder.id), run_state(pool, folder)
    end = pool.end_of(job) if job is not None else None
    error = None
    if end is not None and end.error:
        error = {"detail": end.error, "remedy": end.remedy, "fault": end.fault, "exit_code": end.exit_code}
        if state == "refused" and job is not None and _lacks_model(job, settings):
            error["detail"] = "new code is written by a model, and this run had none"
            error["advice"] = "Start a new run, and choose a model under Options."
    fields: dict[str, Any] = describe_request(job) if job is not None else {}
    if has_ledger(folder):
        run_json = run_as_json(folder)
        fields |= {name: run_json[name] for name in ("outcome", "reason", "spend", "replies_without_code")}
        if with_events:
            fields["events"] = run_json["events"]
        fields |= _describe_task(folder) | _describe_result(folder)
        project = find_allowed_folder(fields.get("project", ""), settings.serve.roots)
        is_healed = state == "ended" and fields["outcome"] == "healed" and fields.get("has_diff", False)
        if project is not None and is_healed and fields["kind"] == "heal":
            from suture.interfaces.web.pull_requests import describe_pull_request

            fields |= {"can_apply": True, "pull_request": describe_pull_request(folder, project, settings)}
        elif (
            is_healed
            and fields["kind"] == "heal"
            and not (fields["applied"] or _is_copy(fields["project"], settings))
        ):
            fields["why_not_applicable"] = (
                "There is no button to apply this change, because the server was not started with the folder "
                f"{fields['project']}. To apply it, run in that folder: suture apply {folder.id}"
            )
    if state == "waiting":
        from suture.api import pending_review

        if (review := pending_review(folder.path)) is not None:
            texts = _editable_texts(review)
            fields["question"] = {**review_as_json(review), "key": review.key, "texts": texts}
    owner = pool.find_owner(folder.id) or None
    return RunDetails(run=folder.id, state=state, caller=owner, error=error, **fields)


def _is_copy(project: str, settings: Settings) -> bool:
    """Return whether a project is an unpacked archive or a clone that the server made, which nobody works in."""
    return Path(project).is_relative_to(settings.paths.home.expanduser().resolve())


def _lacks_model(job: Job, settings: Settings) -> bool:
    chosen = job.flags.get("model.name") or settings.models.coder or settings.model.name
    return job.kind == "write" and chosen == NO_MODEL


def describe_request(job: Job) -> dict[str, Any]:
    """Return what a run that may have no ledger was requested for, as fields of `RunDetails`."""
    request = job.request
    if job.kind == "rival":
        return {"title": f"Verifying change {request['number']} of {request['of']}"}
    if job.kind not in ("write", "heal"):
        return {"title": f"{job.kind} of {request['of']}"} if "of" in request else {}
    project = str(request.get("path") or request.get("git") or "")
    values = {"kind": job.kind, "project": project, "statement": request.get("task", "")}
    return {"title": make_run_title(values), "kind": job.kind, "project": project}


def _describe_task(folder: RunFolder) -> dict[str, Any]:
    """Return what a run was started with, as fields of `RunDetails`."""
    events = read_ledger(folder.ledger_path).events
    started = first_payload(events, kinds.RunStarted)
    if started is None:
        return {}
    failing, failing_test = count_initial_failures(folder, events)
    values = {
        "kind": started.kind,
        "project": started.project,
        "statement": started.statement,
        "failing": failing,
        "failing_test": failing_test,
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
    events = read_ledger(folder.ledger_path).events
    certificate = last_payload(events, kinds.CertificateWritten)
    undetermined = last_payload(events, kinds.RepairUndetermined)
    # The page itself shows changes between which no person has chosen.
    is_choice_shown = undetermined is not None and len(undetermined.changes) > 1
    choice = () if is_choice_shown else rival_lines(result, folder, suggest_commands=False)
    return {
        "headline": next(iter(render_short_result(result, folder, suggest_commands=False))),
        "evidence": evidence_sentence(result, folder),
        "remarks": [*choice, *caution_lines(result, folder, suggest_commands=False)],
        "doubt": find_doubt(events),
        "confidence": result.confidence,
        "unmeasured": _list_unmeasured(certificate) if certificate is not None else {},
        "has_diff": bool(result.diff),
        "written": sorted(result.candidate.files) if result.candidate is not None else [],
        "applied": list(applied_files(folder)),
    }


def _list_unmeasured(certificate: kinds.CertificateWritten) -> dict[str, str]:
    """Return what a certificate does not measure, by name, each with the reason."""
    reasons = {"coverage": certificate.coverage_unmeasured, "mutation": certificate.mutation_unmeasured}
    return {name: render_unmeasured(reason) for name, reason in reasons.items() if reason is not None}


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


def unstarted_runs(pool: JobRegistry, home: Path) -> list[UnstartedRun]:
    """Return the runs that are queued, or whose process has not written to a ledger in `home` yet, in order."""
    waiting = pool.waiting
    return [
        UnstartedRun(
            run=job.run,
            state="queued" if job in waiting else "running",
            title=describe_request(job).get("title", ""),
            requested_s=job.created_s,
        )
        for job in pool.unfinished()
        if job.kind not in INSPECTION_KINDS
        and (job in waiting or not has_ledger(RunFolder(home / "runs" / job.run)))
    ]


END_EVENT = b"event: end\ndata: {}\n\n"
"""Tells a client that nothing follows."""


class _LedgerReader:
    """A client's position in the ledger.

    `ended` and `last_kind` describe the run at that position: whether it has ended, and the kind of the last
    event before it.
    """

    def __init__(self, last_seq: int, run: str, *, with_text: bool) -> None:
        self._run = run
        self._with_text = with_text
        self._narrator = ProgressNarrator(suggest_commands=False)
        self.offset = 0
        self.last_seq = last_seq
        self.ended = False
        self.last_kind = ""

    def encode_line(self, line: bytes) -> bytes | None:
        """Return a ledger line as an event, or `None` if it is invalid or already received."""
        try:
            event = json.loads(line)
            seq, self.last_kind = int(event["seq"]), str(event["kind"])
        except (ValueError, KeyError, TypeError, RecursionError):
            return None  # an incomplete line after a crash
        self.ended = self.last_kind in FINAL_EVENT_KINDS or (self.ended and self.last_kind != RESUMED_KIND)
        if seq <= self.last_seq:
            return None
        story = ""
        if self._with_text:
            event["text"], story = self._render_line(line)
        data = json.dumps(event, separators=(",", ":"))
        story_event = f"event: story\ndata: {json.dumps(story)}\n\n" if story else ""
        return f"id: {seq}\nevent: {self.last_kind}\ndata: {data}\n\n{story_event}".encode()

    def _render_line(self, line: bytes) -> tuple[str | None, str]:
        """Return an event's description, and its line in the short story of the run; empty if it has none."""
        try:
            event = parse_line(line, where="a line", run=self._run)
        except StorageError as fault:
            return f"(unreadable: {fault.message})", ""
        if event is None:
            return None, ""
        lines = list(self._narrator.lines_for(event))
        return render_event(event, self._narrator.kind), "\n".join(lines)


async def stream_events(
    folder: RunFolder,
    *,
    is_active: Callable[[], bool],
    is_stopping: Callable[[], bool],
    last_seq: int = -1,
    with_text: bool = False,
) -> AsyncIterator[bytes]:
    """Yield the events after the last received one as they are written, until the run is over.

    Args:
        folder: The run's folder, which may not exist yet.
        is_active: Returns whether a job works on the run or will.
        is_stopping: Returns whether the server is stopping; the stream ends then.
        with_text: Add a description to each event; and, as events without a number, the lines of the run's short
            story (`story`), the reply that a model is writing (`reply`), how far a search is (`search`), and once
            that all events until now were sent (`current`).
    """
    yield f"retry: {RETRY_MS}\n\n".encode()
    reader, last_sent_s = _LedgerReader(last_seq, folder.id, with_text=with_text), time.monotonic()
    shown_progress, is_current = {"reply": json.dumps(""), "search": ""}, False
    while not is_stopping():
        # Checked before reading, so that everything written until then is read below.
        is_quiet = not is_active() and not _is_being_written(folder)
        lines = _read_lines(folder.ledger_path, reader)
        for line in lines:
            if (event := reader.encode_line(line)) is not None:
                yield event
                last_sent_s = time.monotonic()
        if lines:
            continue
        if with_text and not is_current:
            is_current = True
            yield b"event: current\ndata: {}\n\n"
        # A paused run is still open: it waits for an answer, so its stream stays open too.
        if is_quiet and (reader.ended or reader.last_kind != PAUSED_KIND):
            yield END_EVENT
            return
        progress = _read_progress(folder) if with_text else shown_progress
        for name, data in progress.items():
            if data and data != shown_progress[name]:
                last_sent_s = time.monotonic()
                yield f"event: {name}\ndata: {data}\n\n".encode()
        shown_progress = progress
        if time.monotonic() - last_sent_s >= HEARTBEAT_S:
            yield b": still here\n\n"
            last_sent_s = time.monotonic()
        await asyncio.sleep(POLL_S)


def _is_being_written(folder: RunFolder) -> bool:
    try:
        return is_being_written(folder)
    except FileNotFoundError:
        return False


def _read_progress(folder: RunFolder) -> dict[str, str]:
    """Return the progress that the ledger does not have, as JSON: the model's reply so far, and that of the search."""
    reply = _read_text(folder.path / REPLY_FILE)
    return {"reply": json.dumps(reply), "search": _read_text(folder.path / SEARCH_FILE)}


def _read_text(path: Path) -> str:
    """Return the text of a file; empty if it is not there."""
    try:
        content = read_regular_file(path, MAX_READ_BYTES)
    except OSError:
        return ""
    return (content or b"").decode("utf-8", "replace")


def _read_lines(path: Path, reader: _LedgerReader) -> list[bytes]:
    """Return complete lines after the reader's position and move it; empty if there are none yet."""
    try:
        if path.stat().st_size <= reader.offset:
            return []
        with path.open("rb") as file:
            file.seek(reader.offset)
            content = file.read(MAX_READ_BYTES)
            if b"\n" not in content:
                content += file.readline(MAX_EVENT_LINE_BYTES)
    except FileNotFoundError:
        return []
    complete_lines = content[: content.rfind(b"\n") + 1]
    reader.offset += len(complete_lines)
    return complete_lines.split(b"\n")[:-1]
