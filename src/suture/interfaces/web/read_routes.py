"""Routes that change nothing: they return runs, recipes, models, benchmarks, and what the caller may request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi import Path as PathPart
from fastapi.responses import PlainTextResponse, StreamingResponse

from suture.core.ledger import RunFolder, compare_runs, load_result, read_ledger
from suture.core.safe_files import read_state_file
from suture.errors import UsageError
from suture.interfaces.narrative.candidate_views import (
    ORIGINAL,
    candidate_as_json,
    candidates_as_json,
    diff_between,
    diff_of_results,
)
from suture.interfaces.narrative.graph_progress import graph_as_json
from suture.interfaces.narrative.run_list import list_matching_runs, open_indexed_runs
from suture.interfaces.narrative.run_story import step_as_json
from suture.interfaces.web.problem_details import RequestRefused, problem_responses
from suture.interfaces.web.project_choices import list_projects
from suture.interfaces.web.rest_schemas import (
    RUN_ID_PATTERN,
    CallerDetails,
    ModelChoices,
    ProjectChoices,
    RunComparison,
    RunDetails,
    RunFiles,
    RunPage,
)
from suture.interfaces.web.route_dependencies import (
    LOOP,
    VIEWER,
    Run,
    Viewer,
    WebServiceDependency,
    require_ledger,
    require_role,
)
from suture.interfaces.web.run_views import (
    RUN_ROUTE,
    describe_request,
    has_ledger,
    is_finished,
    run_details,
    stream_events,
    unstarted_runs,
)
from suture.interfaces.web.tuning import MAX_CERTIFICATE_BYTES, MAX_DIFF_BYTES
from suture.interfaces.web.web_service import BUDGET_NAMES, WebService
from suture.models import choose_model, list_catalogue_models
from suture.storage.database.run_queries import summarise_runs
from suture.storage.database.run_query import RunQuery

router = APIRouter(prefix="/v1", dependencies=[VIEWER, LOOP], responses=problem_responses())
early_router = APIRouter(prefix="/v1", dependencies=[VIEWER], responses=problem_responses())
"""Routes that need nothing of the loop, so that the server answers them while it imports the loop."""
RunFilters = Annotated[RunQuery, Depends(RunQuery)]
"""Each field of `RunQuery` is a parameter of the request."""
EVENT_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"description": "The run's events.", "content": {"text/event-stream": {}}},
    204: {"description": "The run has ended, and the client has its last event."},
}
DIFF_RESPONSE: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/x-diff": {"schema": {"type": "string"}}}}
}
CandidateHash = Annotated[str, PathPart(pattern=r"^[0-9a-f]{64}$", description="A candidate's hash.")]
StepNumber = Annotated[int, PathPart(ge=0, le=10**6, description="The number of executed decisions.")]
BenchmarkName = Annotated[
    str, PathPart(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$", description="The benchmark's name.")
]
ResultT = TypeVar("ResultT")


@early_router.get("/runs")
async def find_runs(
    service: WebServiceDependency,
    query: RunFilters,
    limit: Annotated[int, Query(ge=1, le=500)] = 20,
    offset: Annotated[int, Query(ge=0, le=100_000)] = 0,
) -> RunPage:
    """List the runs, newest first; `search` are words that all appear in the task or its errors."""
    found = await asyncio.to_thread(list_matching_runs, service.settings, query, offset + limit)
    shown = [run if run["title"] else _add_title(service, run) for run in found.runs[offset:]]
    queued = unstarted_runs(service.pool, service.settings.paths.home)
    return RunPage(total=found.total, runs=shown, queued=queued, unindexed=found.unindexed)


def _add_title(service: WebService, run: dict[str, Any]) -> dict[str, Any]:
    """Return a run of the list whose ledger is empty with the title of its request, if it is known."""
    job = service.pool.find_last_job(run["run"])
    return {**run, **describe_request(job)} if job is not None else run


@router.get("/runs/{run}", responses=problem_responses(404))
async def show_run(
    run: Run,
    service: WebServiceDependency,
    events: Annotated[bool, Query(description="Include the whole ledger.")] = False,
) -> RunDetails:
    """The current state of a run: state, outcome, spend, and the question that it waits for."""
    folder = service.find_run_folder_or_404(run)
    return await asyncio.to_thread(run_details, service.pool, folder, service.settings, with_events=events)


@router.get(
    "/runs/{run}/events",
    responses={**problem_responses(404), **EVENT_RESPONSES},
    response_class=StreamingResponse,
)
async def follow_run(
    request: Request,
    run: Run,
    service: WebServiceDependency,
    last: Annotated[
        int | None, Header(alias="Last-Event-ID", description="The number of the last received event.")
    ] = None,
    text: Annotated[bool, Query(description="Add a description of each event as `text`.")] = False,
) -> Response:
    """Stream a run's events as they are written, each once, after the last received one."""
    folder, last_seq = service.find_run_folder_or_404(run), -1 if last is None else last
    if last is not None and has_ledger(folder) and is_finished(service.pool, folder):
        events = read_ledger(folder.ledger_path).events
        if events and last_seq >= events[-1].seq:
            return Response(status_code=204)  # tells the browser not to reconnect
    pool, state = service.pool, request.app.state
    stream = stream_events(
        folder,
        is_active=lambda: pool.find_active_job(run) is not None,
        is_stopping=lambda: bool(state.stopping),
        last_seq=last_seq,
        with_text=text,
    )
    # The header keeps nginx from collecting events before it passes them on.
    return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


@router.get(
    "/runs/{run}/diff",
    responses={**problem_responses(404), **DIFF_RESPONSE},
    response_class=PlainTextResponse,
)
async def diff(
    run: Run,
    service: WebServiceDependency,
    before: Annotated[
        str, Query(alias="from", max_length=64, description="A candidate, or `original`.")
    ] = "",
    after: Annotated[str, Query(alias="to", max_length=64, description="A candidate, or `original`.")] = "",
) -> Response:
    """The run's diff for `git apply`; with `from` and `to`, the diff between two candidates."""
    folder = service.find_run_folder_or_404(run)
    if before or after:
        if not has_ledger(folder):
            raise RequestRefused(404, f"run {run} has no candidates yet", remedy="retry when it is running")
        patch = await asyncio.to_thread(diff_between, folder, before or ORIGINAL, after or ORIGINAL)
        return Response(patch.encode("utf-8", "replace"), media_type="text/x-diff")
    path = folder.path / "result.diff"
    if not path.is_file():
        raise RequestRefused(404, f"run {run} has no diff", remedy=f"check its state: {RUN_ROUTE}")
    return Response(read_state_file(path, MAX_DIFF_BYTES, "the diff", follow=False), media_type="text/x-diff")


@router.get("/runs/{run}/certificate", responses=problem_responses(404))
async def certificate(run: Run, service: WebServiceDependency) -> dict[str, Any]:
    """The certificate of a healed result."""
    from suture.judge.certificates import find_certificate

    folder = service.find_run_folder_or_404(run)
    try:
        path = find_certificate(folder.path, service.settings.paths.home)
    except UsageError as fault:
        message = f"run {run} has no certificate"
        raise RequestRefused(404, message, remedy="only healed results have one") from fault
    content = read_state_file(path, MAX_CERTIFICATE_BYTES, "the certificate", follow=False)
    certificate_json: dict[str, Any] = json.loads(content)
    return certificate_json


@router.get("/runs/{run}/files", responses=problem_responses(404))
async def files(run: Run, service: WebServiceDependency) -> RunFiles:
    """The files of the run's best candidate as text."""
    folder = service.find_run_folder_or_404(run)
    result = load_result(folder) if has_ledger(folder) else None
    if result is None:
        raise RequestRefused(404, f"run {run} has no result yet", remedy=f"follow it: {RUN_ROUTE}/events")
    return RunFiles(run=run, files=dict(result.candidate.files) if result.candidate is not None else {})


@router.get("/recipes")
async def recipes() -> list[dict[str, Any]]:
    """The available strategies."""

    def describe() -> list[dict[str, Any]]:
        from suture.loop import describe_recipe, list_recipes

        return [describe_recipe(name).model_dump(mode="json") for name in list_recipes()]

    return await asyncio.to_thread(describe)


@router.get("/models")
async def models(service: WebServiceDependency) -> ModelChoices:
    """The models that a caller can choose, and the embedded models that can be downloaded."""
    catalogue = [
        {"name": model.entry.name, "size_bytes": model.entry.size_bytes, "here": model.path is not None}
        for model in list_catalogue_models(service.settings.paths.cache)
    ]
    resolved, _ = await asyncio.to_thread(choose_model, service.settings)  # may ask an Ollama server
    return ModelChoices(
        default=service.settings.model.name,
        resolved=resolved,
        choices=list(service.models),
        catalogue=catalogue,
    )


@router.get("/doctor", dependencies=[require_role("admin")])
async def doctor(service: WebServiceDependency) -> list[dict[str, Any]]:
    """What is installed, what is missing, and how to get it."""

    def examine() -> list[dict[str, Any]]:
        from suture.api.prerequisites import examine_machine

        return [asdict(row) for row in examine_machine(service.settings)]

    return await asyncio.to_thread(examine)


@router.get("/metrics")
async def metrics(service: WebServiceDependency, query: RunFilters) -> dict[str, Any]:
    """Totals over the runs: pass rate, seconds, tokens, errors."""

    def summarize() -> dict[str, Any]:
        with open_indexed_runs(service.settings) as (index, unindexed):
            return {**summarise_runs(index, query), "unindexed": unindexed}

    return await asyncio.to_thread(summarize)


@early_router.get("/caller")
async def caller(service: WebServiceDependency, viewer: Viewer) -> CallerDetails:
    """The caller, and the limits for their runs."""
    settings = service.settings
    return CallerDetails(
        name=viewer.name,
        role=viewer.role,
        needs_token=service.needs_token,
        recipe=settings.loop.recipe,
        model=settings.model.name,
        autonomy=settings.loop.autonomy,
        budget={name: getattr(settings.budget, name) for name in BUDGET_NAMES},
    )


@router.get("/projects", dependencies=[require_role("runner")])
async def projects(service: WebServiceDependency) -> ProjectChoices:
    """The allowed root folders, the projects in them, and the allowed prefixes of git URLs."""
    serve = service.settings.serve
    return await asyncio.to_thread(list_projects, serve.roots, serve.git)


@router.get("/runs/{run}/candidates", responses=problem_responses(404))
async def candidates(run: Run, service: WebServiceDependency) -> list[dict[str, Any]]:
    """A run's candidates in order, each with its parent."""
    return await _read_or_404(candidates_as_json, require_ledger(service, run))


@router.get("/runs/{run}/candidates/{candidate}", responses=problem_responses(404))
async def candidate(run: Run, candidate: CandidateHash, service: WebServiceDependency) -> dict[str, Any]:
    """The files of a candidate, and the result of each check."""
    return await _read_or_404(candidate_as_json, require_ledger(service, run), candidate)


@router.get("/runs/{run}/graph", responses=problem_responses(404))
async def graph(run: Run, service: WebServiceDependency) -> dict[str, Any]:
    """The graph of the run's recipe, and the run's position in it."""
    return await _read_or_404(graph_as_json, require_ledger(service, run))


@router.get("/runs/{run}/steps/{step}", responses=problem_responses(404))
async def step(run: Run, step: StepNumber, service: WebServiceDependency) -> dict[str, Any]:
    """The run as it was after one of its steps, from which it can be forked."""
    return await _read_or_404(step_as_json, require_ledger(service, run), step)


@router.get("/runs/{run}/compare/{other}", responses=problem_responses(404))
async def compare(
    run: Run, other: Annotated[str, PathPart(pattern=RUN_ID_PATTERN)], service: WebServiceDependency
) -> RunComparison:
    """Two runs side by side: their first difference, and the diff of their results."""

    def compare_folders(first: RunFolder, second: RunFolder) -> RunComparison:
        difference = compare_runs(first, second)
        return RunComparison(
            run=run,
            other=other,
            difference=asdict(difference) if difference is not None else None,
            diff=diff_of_results(first, second).encode("utf-8", "replace").decode(),
        )

    return await _read_or_404(compare_folders, require_ledger(service, run), require_ledger(service, other))


@router.get("/benchmarks")
async def benchmarks(service: WebServiceDependency) -> list[str]:
    """The benchmarks that were run here."""
    return await asyncio.to_thread(list_benchmarks, service.settings.paths.home)


@router.get("/benchmarks/{name}", responses=problem_responses(404))
async def benchmark(name: BenchmarkName, service: WebServiceDependency) -> dict[str, Any]:
    """The report of a benchmark: its warnings, and its tables as text."""
    return await _read_or_404(benchmark_as_json, service.settings.paths.home, name)


async def _read_or_404(read: Callable[..., ResultT], *arguments: Any) -> ResultT:
    """Call a function in a thread; a `UsageError` becomes a 404 response."""
    try:
        return await asyncio.to_thread(read, *arguments)
    except UsageError as fault:
        raise RequestRefused(404, fault.message, remedy=fault.remedy) from fault


def list_benchmarks(home: Path) -> list[str]:
    """Return the names of the benchmarks in a home that have measured something."""
    return sorted(path.parent.name for path in (home / "benchmarks").glob("*/rows.jsonl"))


def benchmark_as_json(home: Path, name: str) -> dict[str, Any]:
    """Return a benchmark's report: warnings, and the tables of each section."""
    # Imported on demand: the reports need more packages than the rest of the service.
    from suture.bench.reports import build_report, load_sessions, read_rows
    from suture.bench.reports.report_summary import render_sessions
    from suture.bench.reports.report_tables import build_tables

    folder = home / "benchmarks" / name
    report = build_report(read_rows([folder]), load_sessions([folder]))
    sections = [
        {
            "title": section.title,
            "warnings": list(section.warnings),
            "resolution": section.resolution,
            "tables": [asdict(table) for table in build_tables(section)],
        }
        for section in report.sections
    ]
    return {
        "name": name,
        "warnings": list(report.warnings),
        "sections": sections,
        "circumstances": list(render_sessions(report)),
    }
