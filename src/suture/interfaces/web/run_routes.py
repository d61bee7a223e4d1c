"""Routes that change something: start runs, upload archives, answer, resume and stop runs."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Request

from suture.core.ledger import find_first_payload, kinds
from suture.interfaces.jobs import Job
from suture.interfaces.web.problem_details import RequestRefused, problem_responses
from suture.interfaces.web.request_guard import Caller
from suture.interfaces.web.rest_schemas import (
    ArchiveReceipt,
    CertificateCheck,
    ForkRequest,
    NewRunRequest,
    ReviewAnswerRequest,
    RunAccepted,
    RunDetails,
)
from suture.interfaces.web.route_dependencies import (
    LOOP,
    Admin,
    Reviewer,
    Run,
    Runner,
    WebServiceDependency,
    require_ledger,
    require_owner,
)
from suture.interfaces.web.run_views import RUN_ROUTE, run_details, run_receipt
from suture.interfaces.web.web_service import WebService, answer_of_job

router = APIRouter(prefix="/v1", dependencies=[LOOP])
Key = Annotated[
    str, Header(alias="Idempotency-Key", description="Requests with the same key are executed once.")
]
ARCHIVE_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "The project's folder as .zip, .tar or .tar.gz.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@router.post("/archives", status_code=201, responses=problem_responses(415), openapi_extra=ARCHIVE_BODY)
async def send_archive(request: Request, service: WebServiceDependency, _: Runner) -> ArchiveReceipt:
    """Upload a project's folder, to have it healed."""
    content = await request.body()
    name, files = await asyncio.to_thread(service.archives.store, content)
    return ArchiveReceipt(archive=name, files=files)


@router.post("/runs", status_code=202, responses=problem_responses(404, 409, 415, 429))
async def start_run(
    request_body: NewRunRequest, service: WebServiceDependency, caller: Runner, key: Key = ""
) -> RunAccepted:
    """Start a run: write code for a task, or repair a project."""
    job = service.submit(caller, request_body.kind, service.job_request(request_body), request_body, key=key)
    return _job_receipt(service, job)


@router.post("/runs/{run}/fork", status_code=202, responses=problem_responses(404, 409, 415, 429))
async def fork(
    run: Run, request_body: ForkRequest, service: WebServiceDependency, caller: Runner, key: Key = ""
) -> RunAccepted:
    """Start a new run from a step of this one, with changes; its owner or an admin may."""
    require_ledger(service, run)
    require_owner(service, caller, run)
    request = {
        "of": run,
        "at": request_body.at,
        "hint": request_body.hint,
        "candidate": dict(request_body.candidate),
        "changes": service.fork_changes(request_body),
    }
    return _job_receipt(service, service.submit(caller, "fork", request, request_body, key=key))


@router.post("/runs/{run}/replay", status_code=202, responses=problem_responses(404, 409, 415, 429))
async def replay(run: Run, service: WebServiceDependency, caller: Runner, key: Key = "") -> RunAccepted:
    """Repeat this run with the recorded replies of its model."""
    require_ledger(service, run)
    return _job_receipt(service, service.submit(caller, "replay", {"of": run}, key=key))


@router.post("/runs/{run}/verify", responses=problem_responses(404, 409, 415, 429))
async def verify(run: Run, service: WebServiceDependency, caller: Runner) -> CertificateCheck:
    """Verify this run's certificate again, without a model; responds when done."""
    folder = require_ledger(service, run)
    if not (folder.path / "certificate.json").is_file():
        raise RequestRefused(404, f"run {run} has no certificate", remedy="only healed results have one")
    return await _verify_certificate(service, caller, run)


async def _verify_certificate(service: WebService, caller: Caller, run: str) -> CertificateCheck:
    answer = answer_of_job(await service.wait_for_end(service.submit(caller, "verify", {}, run=run)))
    return CertificateCheck(run=run, ok=bool(answer["ok"]), findings=list(answer["findings"]))


@router.post("/runs/{run}/review", status_code=202, responses=problem_responses(404, 409, 415, 429))
async def review(
    run: Run, answer_body: ReviewAnswerRequest, service: WebServiceDependency, caller: Reviewer
) -> RunAccepted:
    """Answer the question that this run waits for, so that it continues."""
    from suture.api import ReviewAnswer, pending_review

    folder = require_ledger(service, run)
    question = pending_review(folder.path)
    if question is None:
        raise RequestRefused(
            409, f"run {run} is not waiting for an answer", remedy=f"check its state: {RUN_ROUTE}"
        )
    if answer_body.key and answer_body.key != question.key:  # the caller has seen an older question
        raise RequestRefused(
            409, f"run {run} asks a different question now", remedy="read its current question"
        )
    answer = answer_body.model_dump(include={"choice", "hint", "files"})
    question.require_answered_by(ReviewAnswer(**answer))
    return _job_receipt(service, service.submit(caller, "resume", {"answer": answer}, run=run))


@router.post("/runs/{run}/apply", responses=problem_responses(404, 409))
async def apply_change(run: Run, service: WebServiceDependency, _: Admin) -> RunDetails:
    """Write the change of a healed run into the files of its project, which is below one of serve.roots."""
    from suture.api import apply
    from suture.core.interruption import run_in_loop_thread

    _require_own_project(service, run)
    await run_in_loop_thread(apply(run, settings=service.settings))  # it waits for other processes
    return await _describe_run(service, run)


@router.post("/runs/{run}/rivals/{number}/apply", status_code=202, responses=problem_responses(404, 409, 429))
async def apply_rival(
    run: Run, number: Annotated[int, Path(ge=2)], service: WebServiceDependency, caller: Admin
) -> RunAccepted:
    """Verify another of the changes between which this run's tests do not decide, and apply it if it passes.

    A new run does that; its id is in the response. The first change is the run's result, which `apply` applies.
    The project is below one of serve.roots.
    """
    _require_own_project(service, run)
    return _job_receipt(service, service.submit(caller, "rival", {"of": run, "number": number}))


@router.post("/runs/{run}/undo", responses=problem_responses(404, 409))
async def undo_change(run: Run, service: WebServiceDependency, _: Admin) -> RunDetails:
    """Revert what this run has applied to its project."""
    from suture.api import undo

    _require_own_project(service, run)
    await asyncio.to_thread(undo, run, settings=service.settings)
    return await _describe_run(service, run)


@router.post("/runs/{run}/pull-request", responses=problem_responses(404, 409, 415, 429, 502, 503))
async def open_pull_request(run: Run, service: WebServiceDependency, caller: Admin) -> RunDetails:
    """Verify the change of a healed run again, and open a draft pull request with it; responds when done.

    If the pull request is open already, the response has its address.
    The project is a checkout of a branch from GitHub below one of serve.roots, with what the run has repaired
    committed, and the server has a token (SUTURE_KEYS_CI). The gates of `suture ci` apply.
    """
    from suture.interfaces.web.pull_requests import prepare_pull_request

    _require_own_project(service, run)
    prepared = await asyncio.to_thread(prepare_pull_request, run, service.settings)
    if prepared is None:
        return await _describe_run(service, run)
    check = await _verify_certificate(service, caller, run)
    if not check.ok:
        raise RequestRefused(
            409, f"the change of run {run} was not verified again: {check.findings[-1]['detail']}"
        )
    await asyncio.to_thread(prepared.open)
    return await _describe_run(service, run)


def _require_own_project(service: WebService, run: str) -> None:
    """Check that a run repairs a project below an allowed root: nothing else may be changed."""
    started = find_first_payload(require_ledger(service, run).ledger_path, kinds.RunStarted)
    if started is None or started.kind != "heal":
        raise RequestRefused(409, f"run {run} repairs no project", remedy="download its files")
    service.require_allowed_folder(started.project)


async def _describe_run(service: WebService, run: str) -> RunDetails:
    folder = service.find_run_folder_or_404(run)
    return await asyncio.to_thread(run_details, service.pool, folder, service.settings)


@router.post("/runs/{run}/resume", status_code=202, responses=problem_responses(404, 409, 415, 429))
async def resume(run: Run, service: WebServiceDependency, caller: Runner) -> RunAccepted:
    """Continue a run that was stopped or cancelled, or that failed because of the infrastructure.

    Its owner or an admin may.
    """
    require_ledger(service, run)
    require_owner(service, caller, run)
    return _job_receipt(service, service.submit(caller, "resume", {}, run=run))


@router.post("/runs/{run}/cancel", status_code=202, responses=problem_responses(404, 409, 415))
async def cancel(run: Run, service: WebServiceDependency, caller: Runner) -> RunAccepted:
    """Stop this run; its owner or an admin may. Its results so far stay, and it can be resumed."""
    job = service.pool.find_active_job(run)
    if job is None:
        service.find_run_folder_or_404(run)
        raise RequestRefused(
            409, f"run {run} is not in progress here", remedy="check its state: GET /v1/runs"
        )
    require_owner(service, caller, run)
    service.pool.cancel(job)
    return _job_receipt(service, job)


def _job_receipt(service: WebService, job: Job) -> RunAccepted:
    return run_receipt(service.pool, service.job_folder(job))
