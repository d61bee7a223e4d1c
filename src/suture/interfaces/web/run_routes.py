"""Routes that ask for work: runs, archives, and what is done to a run."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Request

from suture.api import ReviewAnswer, pending_review
from suture.core.ledger import RunFolder
from suture.interfaces.jobs import Job
from suture.interfaces.web.access_tokens import Caller
from suture.interfaces.web.authorization import get_service, require_owner, require_role
from suture.interfaces.web.problem_details import RequestRefused, problem_responses
from suture.interfaces.web.rest_schemas import (
    RUN_ID,
    ArchiveReceipt,
    CertificateCheck,
    ForkRequest,
    NewRunRequest,
    ReviewAnswerRequest,
    RunAccepted,
)
from suture.interfaces.web.run_views import has_ledger, run_receipt
from suture.interfaces.web.web_service import WebService

router = APIRouter(prefix="/v1")
Run = Annotated[str, Path(pattern=RUN_ID, description="A run's id.", examples=["20260101-000000000-abcdef"])]
Key = Annotated[
    str,
    Header(alias="Idempotency-Key", description="The same request under the same key is done once."),
]
ServiceOf = Annotated[WebService, Depends(get_service)]
Runner = Annotated[Caller, require_role("runner")]
Reviewer = Annotated[Caller, require_role("reviewer")]
ARCHIVE_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "A project's folder as .zip, .tar or .tar.gz.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@router.post("/archives", status_code=201, responses=problem_responses(415), openapi_extra=ARCHIVE_BODY)
async def send_archive(request: Request, service: ServiceOf, _: Runner) -> ArchiveReceipt:
    """Send a project's folder, to have it healed."""
    content = await request.body()
    name, files = await asyncio.to_thread(service.archives.keep, content)
    return ArchiveReceipt(archive=name, files=files)


@router.post("/runs", status_code=202, responses=problem_responses(409, 415, 429))
async def ask_for_run(asked: NewRunRequest, service: ServiceOf, caller: Runner, key: Key = "") -> RunAccepted:
    """Ask for a run: new code from a task, or a repair of a project."""
    job = service.submit(caller, asked.kind, service.request_of(asked), asked, key=key)
    return _accepted(service, job)


@router.post("/runs/{run}/fork", status_code=202, responses=problem_responses(404, 409, 415, 429))
async def fork(
    run: Run, asked: ForkRequest, service: ServiceOf, caller: Runner, key: Key = ""
) -> RunAccepted:
    """Start a new run from a step of this one, with something changed."""
    require_ledger(service, run)
    request = {
        "of": run,
        "at": asked.at,
        "hint": asked.hint,
        "candidate": dict(asked.candidate),
        "changes": service.changes_of(asked),
    }
    return _accepted(service, service.submit(caller, "fork", request, asked, key=key))


@router.post("/runs/{run}/replay", status_code=202, responses=problem_responses(404, 409, 415, 429))
async def replay(run: Run, service: ServiceOf, caller: Runner, key: Key = "") -> RunAccepted:
    """Do this run again with the replies that its model gave then; asks nobody."""
    require_ledger(service, run)
    return _accepted(service, service.submit(caller, "replay", {"of": run}, key=key))


@router.post("/runs/{run}/verify", responses=problem_responses(404, 409, 415, 429))
async def verify(run: Run, service: ServiceOf, caller: Runner) -> CertificateCheck:
    """Prove this run's certificate anew, without a model; answers when that is done."""
    folder = require_ledger(service, run)
    if not (folder.path / "certificate.json").is_file():
        raise RequestRefused(404, f"run {run} has no certificate", remedy="only a healed result gets one")
    job = service.submit(caller, "verify", {}, run=run)
    try:
        end = await service.pool.ended(job)
    except asyncio.CancelledError:  # whoever asked has gone away
        service.pool.cancel(job)
        raise
    if "ok" not in end.answer:
        raise RequestRefused(409, end.error or "the verification was stopped", remedy=end.remedy)
    return CertificateCheck(run=run, ok=bool(end.answer["ok"]), findings=list(end.answer["findings"]))


@router.post("/runs/{run}/review", status_code=202, responses=problem_responses(404, 409, 415, 429))
async def review(run: Run, said: ReviewAnswerRequest, service: ServiceOf, caller: Reviewer) -> RunAccepted:
    """Answer what this run waits for, so that it goes on."""
    folder = require_ledger(service, run)
    question = pending_review(folder.path)
    if question is None:
        raise RequestRefused(
            409, f"run {run} waits for no answer", remedy="see how it stands: GET /v1/runs/{run}"
        )
    if said.key and said.key != question.key:  # whoever answers has seen another one
        raise RequestRefused(
            409, f"run {run} asks something else by now", remedy="look at its question again"
        )
    answer = ReviewAnswer(choice=said.choice, hint=said.hint, files=said.files)
    question.require_answered_by(answer)
    request = {"answer": {"choice": said.choice, "hint": said.hint, "files": dict(said.files)}}
    return _accepted(service, service.submit(caller, "resume", request, run=run))


@router.post("/runs/{run}/resume", status_code=202, responses=problem_responses(404, 409, 415, 429))
async def resume(run: Run, service: ServiceOf, caller: Runner) -> RunAccepted:
    """Go on with a run that was stopped or cancelled, or whose machinery failed."""
    require_ledger(service, run)
    return _accepted(service, service.submit(caller, "resume", {}, run=run))


@router.post("/runs/{run}/cancel", status_code=202, responses=problem_responses(404, 409, 415))
async def cancel(run: Run, service: ServiceOf, caller: Runner) -> RunAccepted:
    """Stop this run; what it has done stays, and it can be gone on with."""
    job = service.pool.find_active_job(run)
    folder = service.folder(run) if job is None else service.folder_of_job(job)
    if job is None:
        raise RequestRefused(
            409, f"run {run} is not being worked on here", remedy="see how it stands: GET /v1/runs"
        )
    require_owner(caller, job)
    service.pool.cancel(job)
    return run_receipt(service.pool, folder)


def _accepted(service: WebService, job: Job) -> RunAccepted:
    return run_receipt(service.pool, service.folder_of_job(job))


def require_ledger(service: WebService, run: str) -> RunFolder:
    """The folder of a run that has begun; what has written nothing yet is not found.

    Raises:
        Refused: It has not.
    """
    folder = service.folder(run)
    if not has_ledger(folder):
        raise RequestRefused(404, f"run {run} has written nothing down yet", remedy="ask again when it runs")
    return folder
