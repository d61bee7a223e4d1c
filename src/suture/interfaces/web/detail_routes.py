"""Routes that look closer: a run's candidates, graph and steps, two runs, benchmarks, and who asks."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter
from fastapi import Path as PathPart

from suture.core.ledger import RunFolder, compare_runs
from suture.errors import UsageError
from suture.interfaces.narrative.candidates import candidate_as_json, candidates_as_json, diff_of_results
from suture.interfaces.narrative.graph_state import graph_as_json
from suture.interfaces.narrative.step import step_as_json
from suture.interfaces.web.looking_routes import Viewer
from suture.interfaces.web.problems import Refused, declared
from suture.interfaces.web.run_routes import Run, Runner, ServiceOf, require_ledger
from suture.interfaces.web.schemas import RUN_ID, CallerShown, Comparison, Projects
from suture.interfaces.web.service import BUDGETS

router = APIRouter(prefix="/v1")
Hash = Annotated[str, PathPart(pattern=r"^[0-9a-f]{64}$", description="A candidate's hash.")]
Step = Annotated[int, PathPart(ge=0, le=10**6, description="How many decisions had been carried out.")]
Name = Annotated[str, PathPart(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$", description="A benchmark's.")]
MOST_FOLDERS = 500
Told = TypeVar("Told")


@router.get("/caller", responses=declared())
async def caller(service: ServiceOf, who: Viewer) -> CallerShown:
    """Who asks, and within what their runs may be."""
    own = service.settings
    return CallerShown(
        name=who.name,
        role=who.role,
        needs_token=service.needs_token,
        recipe=own.loop.recipe,
        model=own.model.name,
        autonomy=own.loop.autonomy,
        budget={name: getattr(own.budget, name) for name in BUDGETS},
    )


@router.get("/projects", responses=declared())
async def projects(service: ServiceOf, _: Runner) -> Projects:
    """The roots below which a project may lie, the folders in them, and beginnings of git addresses."""
    serve = service.settings.serve
    return await asyncio.to_thread(_projects, serve.roots, serve.git)


def _projects(names: Iterable[str], git: Iterable[str]) -> Projects:
    roots = [Path(name).expanduser() for name in names]
    folders = sorted(path for root in roots for path in _folders_in(root))
    return Projects(roots=list(map(str, roots)), folders=folders[:MOST_FOLDERS], git=list(git))


def _folders_in(root: Path) -> list[str]:
    try:
        with os.scandir(root) as found:
            plain = (one for one in found if one.is_dir(follow_symlinks=False))
            return [one.path for one in plain if not one.name.startswith(".")]
    except OSError:
        return []  # gone, or not ours to read: nobody can ask for it either


@router.get("/runs/{run}/candidates", responses=declared(404))
async def candidates(run: Run, service: ServiceOf, _: Viewer) -> list[dict[str, Any]]:
    """A run's candidates in their order, each with the one that it was made from."""
    return await _told(candidates_as_json, require_ledger(service, run))


@router.get("/runs/{run}/candidates/{candidate}", responses=declared(404))
async def candidate(run: Run, candidate: Hash, service: ServiceOf, _: Viewer) -> dict[str, Any]:
    """The files of a candidate, and what each check said of it."""
    return await _told(candidate_as_json, require_ledger(service, run), candidate)


@router.get("/runs/{run}/graph", responses=declared(404))
async def graph(run: Run, service: ServiceOf, _: Viewer) -> dict[str, Any]:
    """The graph that the run goes through, and where it stands."""
    return await _told(graph_as_json, require_ledger(service, run))


@router.get("/runs/{run}/steps/{step}", responses=declared(404))
async def step(run: Run, step: Step, service: ServiceOf, _: Viewer) -> dict[str, Any]:
    """The run as it stood after one of its steps, from which it may be forked."""
    return await _told(step_as_json, require_ledger(service, run), step)


@router.get("/runs/{run}/compare/{other}", responses=declared(404))
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


@router.get("/benchmarks", responses=declared())
async def benchmarks(service: ServiceOf, _: Viewer) -> list[str]:
    """The benchmarks that were run here."""
    return await asyncio.to_thread(benchmarks_in, service.settings.paths.home)


@router.get("/benchmarks/{name}", responses=declared(404))
async def benchmark(name: Name, service: ServiceOf, _: Viewer) -> dict[str, Any]:
    """The report of a benchmark: its warnings, and its tables as text."""
    return await _told(benchmark_as_json, service.settings.paths.home, name)


async def _told(tell: Callable[..., Told], *about: Any) -> Told:
    """What a function tells, in a thread of its own; what it does not know is not found."""
    try:
        return await asyncio.to_thread(tell, *about)
    except UsageError as fault:
        raise Refused(404, fault.message, remedy=fault.remedy) from fault


def benchmarks_in(home: Path) -> list[str]:
    """Names of the benchmarks below a home that have measured something."""
    return sorted(path.parent.name for path in (home / "benchmarks").glob("*/rows.jsonl"))


def benchmark_as_json(home: Path, name: str) -> dict[str, Any]:
    """A benchmark's report: warnings, and each section's tables.

    Args:
        home: The folder of state, as the setting `paths.home`.
        name: As `benchmarks_in` tells it.

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
