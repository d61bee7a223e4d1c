"""Grade a benchmark again from its run folders, without calling a model and without using an old grade."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace
from functools import partial
from pathlib import Path

from suture.bench.problem import Problem
from suture.bench.rows import BenchmarkRow
from suture.bench.running.bench_folder import BenchFolder, require_same_tasks
from suture.bench.running.benchmark import grade_references
from suture.bench.running.benchmark_plan import BenchmarkProgress, ProgressListener
from suture.bench.running.control_solvers import require_controls
from suture.bench.running.evaluation import EvaluationJob, build_row
from suture.core.ledger import RunFolder, find_first_payload, find_run
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
    on_progress: ProgressListener = lambda progress: None,
) -> list[tuple[BenchmarkRow, BenchmarkRow]]:
    """Build every row again from its run folder; return (old row, new row) where grades or totals differ.

    The control solvers run first, because the grading may have changed. A row with a fault is built again if
    its run has ended, because the cause of the fault may be gone.
    """
    home = settings.paths.model_copy(update={"home": folder.path.resolve()})
    settings = settings.model_copy(update={"paths": home})
    with folder.lock():
        plan, rows = folder.plan(), folder.rows()
        problems = {(problem.dataset, problem.id): problem for problem in plan.problems()}
        require_same_tasks(folder, problems, rows)
        opener = partial(open_sandbox, settings.sandbox, keys=settings.keys, cache=settings.paths.cache)
        # Each grading has its own sandbox, so that code which breaks one affects no other verdict.
        async with SandboxPool(opener, size=parallel) as judges, SandboxPool(opener, size=1) as sandboxes:
            async with judges.lease() as judge, sandboxes.lease() as sandbox:
                tasks = tuple(problems.values())
                references = await grade_references(
                    tasks, judge, settings, parallel=parallel, on_progress=on_progress
                )
                control_tasks = await require_controls(
                    tasks, references, settings, sandbox, judge, on_progress
                )

            async def grade_again(judge: Sandbox, row: BenchmarkRow) -> BenchmarkRow:
                problem = problems[row.dataset, row.problem]
                ended_run = _find_ended_run(row, problem, settings.paths.home)
                if ended_run is None:
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
                run, result = ended_run
                return await build_row(job, run, result, settings, judge, sandbox_failure=row.sandbox_failure)

            regraded: list[BenchmarkRow] = []
            async with aclosing(judges.map(grade_again, rows)) as graded:
                async for row in graded:
                    if isinstance(row, SandboxBroken):
                        row = replace(rows[len(regraded)], fault=f"grading failed: {row}")
                    regraded.append(row)
                    on_progress(BenchmarkProgress(phase="grading", done=len(regraded), total=len(rows)))
        folder.write_references(references)
        folder.write_controls(control_tasks)
        folder.write_rows(regraded)
    return [
        (old, new)
        for old, new in zip(rows, regraded, strict=True)
        if _without_times(old) != _without_times(new)
    ]


def _find_ended_run(row: BenchmarkRow, problem: Problem, home: Path) -> tuple[RunFolder, Result] | None:
    """Return the run of a row and its result; `None` for a row with a fault that has no ended run."""
    if row.fault and (not row.run or row.problem_hash != problem.content_hash):
        return None
    run = find_run(home, row.run)
    finished = find_first_payload(run.ledger_path, RunFinished)
    if finished is not None:
        return run, run.load_record(Result, finished.result)
    if row.fault:
        return None
    raise StorageError(
        f"the run {row.run!r} of {row.problem!r} did not end", remedy="measure it again in another folder"
    )


def _without_times(row: BenchmarkRow) -> BenchmarkRow:
    """Return a row without the durations of its grading."""
    steps = (
        replace(step, grade=step.grade and replace(step.grade, wall_s=0.0, cpu_s=None)) for step in row.steps
    )
    return replace(row, steps=tuple(steps))
