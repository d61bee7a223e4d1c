"""Routes that judge a change: the verdict when it is there, the steps until then, and an earlier verdict."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from fastapi import Path as PathPart
from fastapi.responses import StreamingResponse

from suture.core.temporary_folders import temporary_folder
from suture.errors import UsageError
from suture.interfaces.jobs import Job
from suture.interfaces.jobs.job import JobEnd
from suture.interfaces.jobs.judge_steps import read_judge_steps
from suture.interfaces.narrative.judgement_text import STEP_TEXTS
from suture.interfaces.web.problem_details import RequestRefused, problem_from_error, problem_responses
from suture.interfaces.web.rest_schemas import (
    RUN_ID_PATTERN,
    JudgementPage,
    JudgementReport,
    JudgementSummary,
    JudgeRequest,
    RunChoices,
)
from suture.interfaces.web.route_dependencies import LOOP, Runner, Viewer, WebServiceDependency
from suture.interfaces.web.tuning import POLL_S
from suture.interfaces.web.web_service import WebService, answer_of_job
from suture.project.workspace import open_repository

router = APIRouter(prefix="/v1", dependencies=[LOOP])
EVENT_STREAM = "text/event-stream"
SUMMARY_KEYS = {"ok", "outcome", "headline", "facts"}
"""Keys of the answer of a judgement that can be shown. A damaged answer lacks some."""
JudgementId = Annotated[str, PathPart(pattern=RUN_ID_PATTERN, description="The id of a judgement.")]
STREAM_RESPONSE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The verdict; with `Accept: text/event-stream` the events `step`, then `report` or `problem`.",
        "content": {EVENT_STREAM: {}},
    }
}


@router.post(
    "/judgements",
    response_model=JudgementReport,
    responses={**problem_responses(404, 409, 415, 429), **STREAM_RESPONSE},
)
async def judge(
    request_body: JudgeRequest,
    service: WebServiceDependency,
    caller: Runner,
    accept: Annotated[str, Header(description=f"`{EVENT_STREAM}` reports each step when it begins.")] = "",
) -> JudgementReport | StreamingResponse:
    """Judge a change of a project, whoever made it; responds when done."""
    sources = (request_body.base is not None, request_body.patch is not None, request_body.staged)
    if sum(sources) > 1:
        raise RequestRefused(400, "use at most one of `base`, `patch` and `staged`")
    project = service.require_allowed_folder(request_body.path)
    if request_body.patch is None:
        await asyncio.to_thread(_require_commit, project, request_body.base)
    request = {**request_body.model_dump(exclude={"seconds"}), "path": str(project)}
    choices = RunChoices(seconds=request_body.seconds)
    if EVENT_STREAM not in accept:
        return await _wait_for_report(service, service.submit(caller, "judge", request, choices))
    with ExitStack() as stack:
        steps = stack.enter_context(temporary_folder("suture-steps-")) / "steps"
        if service.settings.serve.executor == "local":  # a job on another machine cannot write to this file
            request["steps"] = str(steps)
        job = service.submit(caller, "judge", request, choices)
        return StreamingResponse(
            _stream_judgement(service, job, steps, stack.pop_all()), media_type=EVENT_STREAM
        )


@router.get("/judgements", responses=problem_responses())
async def list_judgements(
    service: WebServiceDependency,
    _: Viewer,
    limit: Annotated[int, Query(ge=1, le=500)] = 20,
    offset: Annotated[int, Query(ge=0, le=100_000)] = 0,
) -> JudgementPage:
    """List the verdicts of this server, newest first, for as long as it keeps its jobs."""
    judged = [
        (job, end.answer)
        for job, end in service.pool.ends()
        if job.kind == "judge" and not end.error and end.answer.keys() >= SUMMARY_KEYS
    ]
    judged.sort(key=lambda pair: pair[0].created_s, reverse=True)
    summaries = [
        JudgementSummary(
            id=job.id,
            path=str(job.request["path"]),
            outcome=str(answer["outcome"]),
            headline=str(answer["headline"]),
            change=str(answer["facts"].get("Change", "")),
            requested_s=job.created_s,
        )
        for job, answer in judged[offset : offset + limit]
    ]
    return JudgementPage(total=len(judged), judgements=summaries)


@router.get("/judgements/{judgement}", responses=problem_responses(404, 409))
async def show_judgement(judgement: JudgementId, service: WebServiceDependency, _: Viewer) -> JudgementReport:
    """The verdict of an earlier request, for as long as the server keeps its jobs."""
    job = service.pool.find_job(judgement)
    if job is None or job.kind != "judge":
        raise RequestRefused(404, f"there is no judgement {judgement}", advice="Judge the change again.")
    end = service.pool.end_of(job)
    if end is None:
        raise RequestRefused(409, "this judgement is not done yet", remedy="retry later")
    return _make_report(job, end)


def _require_commit(project: Path, base: str | None) -> None:
    """Refuse at once what the judgement could only refuse after it has read the project.

    Raises:
        RequestRefused: The project has no commit, or not the one to compare with.
    """
    try:
        repository = open_repository(project)
        repository.head()
    except UsageError as fault:
        raise RequestRefused(
            409,
            fault.message,
            remedy="commit the project's state before the change, or send a `patch`",
            advice="Choose \u201cA patch\u201d to judge a change without git, or commit the project's state before "
            "the change.",
        ) from fault
    is_name = base is None or (not base.startswith("-") and base.isprintable())
    if base is not None and not (is_name and repository.commit(base)[0]):
        raise RequestRefused(
            409,
            f"there is no commit {base!r}",
            remedy="name a branch, a tag or a commit",
            advice="Name a branch, a tag or a commit of this project, or leave the field empty.",
            field="base",
        )


async def _wait_for_report(service: WebService, job: Job) -> JudgementReport:
    return _make_report(job, await service.wait_for_end(job))


def _make_report(job: Job, end: JobEnd) -> JudgementReport:
    answer = answer_of_job(end)
    return JudgementReport(
        id=job.id,
        path=str(job.request["path"]),
        ok=bool(answer["ok"]),
        outcome=str(answer["outcome"]),
        headline=str(answer["headline"]),
        facts=dict(answer["facts"]),
        judgement={name: value for name, value in answer.items() if name != "certificate"},
        certificate=str(answer.get("certificate", "")),
    )


async def _stream_judgement(
    service: WebService, job: Job, steps: Path, stack: ExitStack
) -> AsyncIterator[bytes]:
    """Yield each step of a judgement when it begins, and then its report; it is stopped if the client disconnects."""
    with stack:
        end_task = asyncio.create_task(service.wait_for_end(job))
        try:
            sent = 0
            while not end_task.done():
                await asyncio.wait([end_task], timeout=POLL_S)
                begun = read_judge_steps(steps)
                for step in begun[sent:]:
                    yield _encode_event("step", {"step": step, "text": STEP_TEXTS[step]})
                sent = len(begun)
            try:
                yield _encode_event("report", _make_report(job, end_task.result()).model_dump(mode="json"))
            except RequestRefused as fault:
                yield _encode_event("problem", problem_from_error(fault).model_dump(exclude_none=True))
        finally:
            end_task.cancel()  # which stops the job, unless it has ended


def _encode_event(name: str, data: dict[str, Any]) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()
