"""Routes that only look: runs, their events, diffs, files and certificates; recipes, models, metrics."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi import Path as PathPart
from fastapi.responses import PlainTextResponse, StreamingResponse

from suture.api.prerequisites import examine
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
from suture.interfaces.narrative.run_list import list_matching_runs
from suture.interfaces.narrative.run_story import step_as_json
from suture.interfaces.web.access_tokens import Caller
from suture.interfaces.web.authorization import require_role
from suture.interfaces.web.event_stream import stream_events
from suture.interfaces.web.problem_details import RequestRefused, problem_responses
from suture.interfaces.web.rest_schemas import (
    RUN_ID,
    CallerDetails,
    Comparison,
    ModelChoices,
    ProjectChoices,
    RunDetails,
    RunFiles,
    RunPage,
)
from suture.interfaces.web.run_routes import Run, Runner, ServiceOf, require_ledger
from suture.interfaces.web.run_views import has_ledger, is_finished, queued_runs, run_details
from suture.interfaces.web.web_service import BUDGETS
from suture.judge.certificates import find_certificate
from suture.loop import describe_recipe, list_recipes
from suture.models import list_cached_models
from suture.storage.database.projection_updates import catch_up
from suture.storage.database.run_queries import RunQuery, summarise_runs
from suture.storage.database.store import open_configured_store

router = APIRouter(prefix="/v1")
Viewer = Annotated[Caller, require_role("viewer")]
Admin = Annotated[Caller, require_role("admin")]
MOST_DIFF_BYTES = 64 * 2**20
MOST_CERTIFICATE_BYTES = 64 * 2**20
Part = Annotated[str, Query(max_length=200)]
EVENTS: dict[int | str, dict[str, Any]] = {
    200: {"description": "The run's events, one by one.", "content": {"text/event-stream": {}}},
    204: {"description": "The run has ended, and its last event was seen."},
}
DIFF: dict[int | str, dict[str, Any]] = {200: {"content": {"text/x-diff": {"schema": {"type": "string"}}}}}


@router.get("/runs", responses=problem_responses())
async def find_runs(
    service: ServiceOf,
    _: Viewer,
    limit: Annotated[int, Query(ge=1, le=500)] = 20,
    offset: Annotated[int, Query(ge=0, le=100_000)] = 0,
    search: Annotated[Part, Query(description="All of these words stand in its task or errors.")] = "",
    outcome: Part = "",
    kind: Part = "",
    language: Part = "",
    recipe: Part = "",
    model: Part = "",
    project: Part = "",
    error: Part = "",
    since_s: Annotated[float | None, Query(ge=0, le=1e11, allow_inf_nan=False)] = None,
) -> RunPage:
    """List the runs, newest first."""
    question = RunQuery(
        words=search,
        outcome=outcome,
        kind=kind,
        language=language,
        recipe=recipe,
        model=model,
        project=project,
        error=error,
        since_s=since_s,
    )
    found, total = await asyncio.to_thread(list_matching_runs, service.settings, question, offset + limit)
    return RunPage(total=total, runs=found[offset:], queued=queued_runs(service.pool))


@router.get("/runs/{run}", responses=problem_responses(404))
async def show_run(
    run: Run,
    service: ServiceOf,
    _: Viewer,
    events: Annotated[bool, Query(description="Tell its whole ledger too.")] = False,
) -> RunDetails:
    """A run as it stands: state, outcome, spend, and what it waits for."""
    folder = service.folder(run)
    return await asyncio.to_thread(run_details, service.pool, folder, with_events=events)


@router.get(
    "/runs/{run}/events", responses={**problem_responses(404), **EVENTS}, response_class=StreamingResponse
)
async def follow_run(
    request: Request,
    run: Run,
    service: ServiceOf,
    _: Viewer,
    last: Annotated[
        int | None, Header(alias="Last-Event-ID", description="The last event that was seen.")
    ] = None,
    told: Annotated[bool, Query(description="Say in words too what each event is, as `told`.")] = False,
) -> Response:
    """A run's events as they are written (server-sent events): each once, after the last one seen."""
    folder, seen = service.folder(run), -1 if last is None else last
    if last is not None and has_ledger(folder) and is_finished(service.pool, folder):
        events = read_ledger(folder.ledger_path).events
        if events and seen >= events[-1].seq:
            return Response(status_code=204)  # by which a browser knows not to ask again
    pool, state = service.pool, request.app.state
    stream = stream_events(
        folder,
        is_active=lambda: pool.find_active_job(run) is not None,
        is_stopping=lambda: bool(state.stopping),
        seen=seen,
        told=told,
    )
    return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


@router.get(
    "/runs/{run}/diff", responses={**problem_responses(404), **DIFF}, response_class=PlainTextResponse
)
async def diff(
    run: Run,
    service: ServiceOf,
    _: Viewer,
    before: Annotated[str, Query(alias="from", max_length=64, description="A candidate; `given`.")] = "",
    after: Annotated[str, Query(alias="to", max_length=64, description="A candidate.")] = "",
) -> Response:
    """The run's diff, for `git apply`; with `from` and `to`, from one of its candidates to another."""
    folder = service.folder(run)
    if before or after:
        if not has_ledger(folder):
            raise RequestRefused(404, f"run {run} has no candidates yet", remedy="ask again when it runs")
        patch = await asyncio.to_thread(diff_between, folder, before or ORIGINAL, after or ORIGINAL)
        return Response(patch.encode("utf-8", "replace"), media_type="text/x-diff")
    path = folder.path / "result.diff"
    if not path.is_file():
        raise RequestRefused(404, f"run {run} has no diff", remedy="see what it did: GET /v1/runs/{run}")
    return Response(read_state_file(path, MOST_DIFF_BYTES, "the diff", follow=False), media_type="text/x-diff")


@router.get("/runs/{run}/certificate", responses=problem_responses(404))
async def certificate(run: Run, service: ServiceOf, _: Viewer) -> dict[str, Any]:
    """The certificate of a healed result."""
    folder = service.folder(run)
    try:
        path = find_certificate(folder.path, service.settings.paths.home)
    except UsageError as fault:
        remedy = "only a healed result gets one"
        raise RequestRefused(404, f"run {run} has no certificate", remedy=remedy) from fault
    content = read_state_file(path, MOST_CERTIFICATE_BYTES, "the certificate", follow=False)
    plain: dict[str, Any] = json.loads(content)
    return plain


@router.get("/runs/{run}/files", responses=problem_responses(404))
async def files(run: Run, service: ServiceOf, _: Viewer) -> RunFiles:
    """The files of the run's best candidate, as text."""
    folder = service.folder(run)
    result = load_result(folder) if has_ledger(folder) else None
    if result is None:
        raise RequestRefused(
            404, f"run {run} has no result yet", remedy="follow it: GET /v1/runs/{run}/events"
        )
    return RunFiles(run=run, files=dict(result.candidate.files) if result.candidate is not None else {})


@router.get("/recipes", responses=problem_responses())
async def recipes(_: Viewer) -> list[dict[str, Any]]:
    """Ways to go about a task."""
    return [describe_recipe(name).model_dump(mode="json") for name in list_recipes()]


@router.get("/models", responses=problem_responses())
async def models(service: ServiceOf, _: Viewer) -> ModelChoices:
    """The models that a caller may choose, and the embedded ones that can be fetched."""
    catalogue = [
        {"name": one.entry.name, "size_bytes": one.entry.size_bytes, "here": one.path is not None}
        for one in list_cached_models(service.settings.paths.cache)
    ]
    default = service.settings.model.name
    return ModelChoices(default=default, choices=list(service.models), catalogue=catalogue)


@router.get("/doctor", responses=problem_responses())
async def doctor(service: ServiceOf, _: Admin) -> list[dict[str, Any]]:
    """What is there, what is missing, and how to get it."""
    rows = await asyncio.to_thread(lambda: list(examine(service.settings)))
    return [asdict(row) for row in rows]


@router.get("/metrics", responses=problem_responses())
async def metrics(
    service: ServiceOf, _: Viewer, kind: Part = "", model: Part = "", project: Part = ""
) -> dict[str, Any]:
    """What all runs add up to: pass rate, seconds, tokens, errors."""

    def add_up() -> dict[str, Any]:
        with open_configured_store(service.settings) as store:
            catch_up(store, service.settings.paths.home)
            return summarise_runs(store, RunQuery(kind=kind, model=model, project=project))

    return await asyncio.to_thread(add_up)


Hash = Annotated[str, PathPart(pattern=r"^[0-9a-f]{64}$", description="A candidate's hash.")]
Step = Annotated[int, PathPart(ge=0, le=10**6, description="How many decisions had been carried out.")]
Name = Annotated[str, PathPart(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$", description="A benchmark's.")]
MOST_FOLDERS = 500
Told = TypeVar("Told")


@router.get("/caller", responses=problem_responses())
async def caller(service: ServiceOf, who: Viewer) -> CallerDetails:
    """Who asks, and within what their runs may be."""
    own = service.settings
    return CallerDetails(
        name=who.name,
        role=who.role,
        needs_token=service.needs_token,
        recipe=own.loop.recipe,
        model=own.model.name,
        autonomy=own.loop.autonomy,
        budget={name: getattr(own.budget, name) for name in BUDGETS},
    )


@router.get("/projects", responses=problem_responses())
async def projects(service: ServiceOf, _: Runner) -> ProjectChoices:
    """The roots below which a project may lie, the folders in them, and beginnings of git addresses."""
    serve = service.settings.serve
    return await asyncio.to_thread(_projects, serve.roots, serve.git)


def _projects(names: Iterable[str], git: Iterable[str]) -> ProjectChoices:
    roots = [Path(name).expanduser() for name in names]
    folders = sorted(path for root in roots for path in _folders_in(root))
    return ProjectChoices(roots=list(map(str, roots)), folders=folders[:MOST_FOLDERS], git=list(git))


def _folders_in(root: Path) -> list[str]:
    try:
        with os.scandir(root) as found:
            plain = (one for one in found if one.is_dir(follow_symlinks=False))
            return [one.path for one in plain if not one.name.startswith(".")]
    except OSError:
        return []  # gone, or not ours to read: nobody can ask for it either


@router.get("/runs/{run}/candidates", responses=problem_responses(404))
async def candidates(run: Run, service: ServiceOf, _: Viewer) -> list[dict[str, Any]]:
    """A run's candidates in their order, each with the one that it was made from."""
    return await _told(candidates_as_json, require_ledger(service, run))


@router.get("/runs/{run}/candidates/{candidate}", responses=problem_responses(404))
async def candidate(run: Run, candidate: Hash, service: ServiceOf, _: Viewer) -> dict[str, Any]:
    """The files of a candidate, and what each check said of it."""
    return await _told(candidate_as_json, require_ledger(service, run), candidate)


@router.get("/runs/{run}/graph", responses=problem_responses(404))
async def graph(run: Run, service: ServiceOf, _: Viewer) -> dict[str, Any]:
    """The graph that the run goes through, and where it stands."""
    return await _told(graph_as_json, require_ledger(service, run))


@router.get("/runs/{run}/steps/{step}", responses=problem_responses(404))
async def step(run: Run, step: Step, service: ServiceOf, _: Viewer) -> dict[str, Any]:
    """The run as it stood after one of its steps, from which it may be forked."""
    return await _told(step_as_json, require_ledger(service, run), step)


@router.get("/runs/{run}/compare/{other}", responses=problem_responses(404))
async def compare(
    run: Run, other: Annotated[str, PathPart(pattern=RUN_ID)], service: ServiceOf, _: Viewer
) -> Comparison:
    """Two runs side by side: where they part first, and how their results differ."""
    one, two = require_ledger(service, run), require_ledger(service, other)

    def both(one: RunFolder, two: RunFolder) -> Comparison:
        found = compare_runs(one, two)
        difference = asdict(found) if found is not None else None
        diff = diff_of_results(one, two).encode("utf-8", "replace").decode()
        return Comparison(run=run, other=other, difference=difference, diff=diff)

    return await _told(both, one, two)


@router.get("/benchmarks", responses=problem_responses())
async def benchmarks(service: ServiceOf, _: Viewer) -> list[str]:
    """The benchmarks that were run here."""
    return await asyncio.to_thread(list_benchmarks, service.settings.paths.home)


@router.get("/benchmarks/{name}", responses=problem_responses(404))
async def benchmark(name: Name, service: ServiceOf, _: Viewer) -> dict[str, Any]:
    """The report of a benchmark: its warnings, and its tables as text."""
    return await _told(benchmark_as_json, service.settings.paths.home, name)


async def _told(tell: Callable[..., Told], *about: Any) -> Told:
    """What a function tells, in a thread of its own; what it does not know is not found."""
    try:
        return await asyncio.to_thread(tell, *about)
    except UsageError as fault:
        raise RequestRefused(404, fault.message, remedy=fault.remedy) from fault


def list_benchmarks(home: Path) -> list[str]:
    """Names of the benchmarks below a home that have measured something."""
    return sorted(path.parent.name for path in (home / "benchmarks").glob("*/rows.jsonl"))


def benchmark_as_json(home: Path, name: str) -> dict[str, Any]:
    """A benchmark's report: warnings, and each section's tables.

    Args:
        home: The folder of state, as the setting `paths.home`.
        name: As `list_benchmarks` tells it.

    Raises:
        UsageError: There is none of this name.
        StorageError: Its rows are damaged.
    """
    # Loaded when one is looked at: the figures need more than all the rest of the service.
    from suture.bench.reports import read_rows, report_of, sessions_of
    from suture.bench.reports.summary import circumstances_in_words
    from suture.bench.reports.tables import tables_of

    folder = home / "benchmarks" / name
    report = report_of(read_rows([folder]), sessions_of([folder]))
    sections = [
        {
            "title": section.title,
            "warnings": list(section.warnings),
            "resolution": section.resolution,
            "tables": [asdict(table) for table in tables_of(section)],
        }
        for section in report.sections
    ]
    circumstances = list(circumstances_in_words(report))
    return {
        "name": name,
        "warnings": list(report.warnings),
        "sections": sections,
        "circumstances": circumstances,
    }
