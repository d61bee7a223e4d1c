"""Everything graded anew from the run folders: no model is asked, and no row is believed."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace
from functools import partial
from pathlib import Path

from suture.bench.problem import Problem
from suture.bench.rows import Row
from suture.bench.running.bench_folder import BenchFolder, require_same_tasks
from suture.bench.running.benchmark import Advance, Listener, grade_references
from suture.bench.running.controls import require_controls
from suture.bench.running.evaluating import EvaluationJob, row_of_run
from suture.core.ledger import RunFolder, find_run, first_payload, read_ledger
from suture.core.ledger.kinds import RunFinished
from suture.core.records import Result
from suture.core.settings import Settings
from suture.errors import SandboxBroken, StorageError
from suture.sandbox import Sandbox, SandboxPool, open_sandbox


async def regrade(
    folder: BenchFolder,
    settings: Settings,
    *,
    parallel: int = 4,
    on_progress: Listener = lambda advance: None,
) -> list[tuple[Row, Row]]:
    """Make every row anew of its run's folder, and put them in the place of those that were there.

    First the two solvers whose scores are known are tried again, as the grading may have changed. A row
    without a number is made anew too, where its run has ended: what kept it from being graded may be gone.

    Returns:
        The rows whose grades or sums came out otherwise: as it was, as it is.

    Raises:
        UsageError: There is no benchmark, a set or a run's folder is gone, or a task is not what it was when
            it was measured.
        PrerequisiteError: A set or the sandbox is missing, or the two solvers do not score what they must.
        StorageError: A run's folder is damaged.
    """
    home = settings.paths.model_copy(update={"home": folder.path.resolve()})
    settings = settings.model_copy(update={"paths": home})
    with folder.held():
        plan, rows = folder.plan(), folder.rows()
        problems = {(problem.dataset, problem.id): problem for problem in plan.problems()}
        require_same_tasks(folder, problems, rows)
        opened = partial(open_sandbox, settings.sandbox, keys=settings.keys, cache=settings.paths.cache)
        # A wall for each that grades: code that fells its wall takes nobody else's verdict with it.
        async with SandboxPool(opened, size=parallel) as judges, SandboxPool(opened, size=1) as sandboxes:
            async with judges.lease() as judge, sandboxes.lease() as sandbox:
                tasks = tuple(problems.values())
                references = await grade_references(
                    tasks, judge, settings, parallel=parallel, on_progress=on_progress
                )
                controls = await require_controls(
                    tasks,
                    references,
                    settings,
                    sandbox,
                    judge,
                    lambda done, total: on_progress(Advance(doing="controls", done=done, total=total)),
                )

            async def again(judge: Sandbox, row: Row) -> Row:
                problem = problems[row.dataset, row.problem]
                ended = _ended_run(row, problem, settings.paths.home)
                if ended is None:
                    return row
                job = EvaluationJob(
                    problem=problem,
                    arm=row.arm,
                    model=row.model,
                    seed=row.seed,
                    cap=row.cap,
                    regime=row.regime,
                    reference=references[problem.content_hash],
                )
                return await row_of_run(job, *ended, settings, judge, felled=row.felled)

            anew: list[Row] = []
            async with aclosing(judges.map(again, rows)) as graded:
                async for row in graded:
                    if isinstance(row, SandboxBroken):
                        row = replace(rows[len(anew)], fault=f"grading failed: {row}")
                    anew.append(row)
                    on_progress(Advance(doing="grading", done=len(anew), total=len(rows)))
        folder.write_references(references)
        folder.write_controls(controls)
        folder.write_rows(anew)
    return [(was, now) for was, now in zip(rows, anew, strict=True) if _bare(was) != _bare(now)]


def _ended_run(row: Row, problem: Problem, home: Path) -> tuple[RunFolder, Result] | None:
    """The run of a row, and how it ended; `None` for a row without a number that has no such run."""
    if row.fault and (not row.run or row.problem_hash != problem.content_hash):
        return None
    run = find_run(home, row.run)
    finished = first_payload(read_ledger(run.ledger_path).events, RunFinished)
    if finished is not None:
        return run, run.get_record(Result, finished.result)
    if row.fault:
        return None
    raise StorageError(
        f"the run {row.run!r} of {row.problem!r} did not end", remedy="measure it anew in another folder"
    )


def _bare(row: Row) -> Row:
    """A row without how long the grading took."""
    timeless = [s.grade and replace(s.grade, wall_s=0.0, cpu_s=None) for s in row.steps]
    return replace(row, steps=tuple(replace(s, grade=g) for s, g in zip(row.steps, timeless, strict=True)))
