"""Everything graded anew from the run folders: no model is asked, and no row is believed."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from suture.evals.bench_folder import BenchFolder
from suture.evals.evaluating import Job, row_of_run
from suture.evals.rows import Row
from suture.evals.runner import Advance, Listener, grade_references, require_same_tasks, together
from suture.ledger import RunFolder, find_run, read_ledger
from suture.records import Result, from_plain
from suture.sandbox import Sandbox, SandboxPool, open_sandbox
from suture.settings import Settings

__all__ = ["regrade"]


async def regrade(
    folder: BenchFolder, settings: Settings, *, parallel: int = 4, told: Listener = lambda advance: None
) -> list[tuple[Row, Row]]:
    """Make every row anew of its run's folder, and put them in the place of those that were there.

    Args:
        folder: The benchmark.
        settings: The knobs of the sandbox.
        parallel: Tasks at once.
        told: Called after each step.

    Returns:
        The rows whose grades or sums came out otherwise: as it was, as it is.

    Raises:
        UsageError: There is no benchmark, a set or a run's folder is gone, or a task is not what it was when
            it was measured.
        PrerequisiteError: A set or the sandbox is missing.
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
        async with SandboxPool(opened, size=parallel) as judges:
            async with judges.lease() as judge:
                references = await grade_references(
                    tuple(problems.values()), judge, settings, parallel=parallel, told=told
                )
            anew = list(rows)
            waiting = iter(enumerate(rows))

            async def work() -> None:
                for place, row in waiting:
                    problem = problems[row.dataset, row.problem]
                    job = Job(
                        problem=problem,
                        arm=row.arm,
                        model=row.model,
                        seed=row.seed,
                        cap=row.cap,
                        regime=row.regime,
                        reference=references[problem.content_hash],
                    )
                    if not row.fault:
                        run = find_run(settings.paths.home, row.run)
                        async with judges.lease() as judge:
                            anew[place] = await _again(job, run, settings, judge, row.felled)
                    told(Advance(doing="grading", done=place + 1, total=len(rows)))

            await together([work() for _ in range(parallel)])
        folder.write_references(references)
        folder.write_rows(anew)
    return [(was, now) for was, now in zip(rows, anew, strict=True) if _bare(was) != _bare(now)]


async def _again(job: Job, run: RunFolder, settings: Settings, judge: Sandbox, felled: str) -> Row:
    ended = (event for event in read_ledger(run.ledger_path).events if event.kind == "run.finished")
    result = from_plain(Result, run.get_json(next(ended).data["result"]))
    return await row_of_run(job, run, result, settings, judge, felled=felled)


def _bare(row: Row) -> Row:
    """A row without how long the grading took."""
    timeless = [s.grade and replace(s.grade, wall_s=0.0, cpu_s=None) for s in row.steps]
    return replace(row, steps=tuple(replace(s, grade=g) for s, g in zip(row.steps, timeless, strict=True)))
