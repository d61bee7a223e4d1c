"""Run a benchmark: every task with every arm, several at once, each row on disk before the next task."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TypeVar

from suture.bench.grading.hidden_checks import Grade, grade_code
from suture.bench.problem import Problem
from suture.bench.ray_cluster.ray_tasks import ModelOpener, RayTaskRunner
from suture.bench.replies.reply_pool import PooledModel, ReplyPool
from suture.bench.rows import BenchmarkRow, RowKey
from suture.bench.running.bench_folder import BenchFolder, require_same_tasks
from suture.bench.running.benchmark_plan import BenchmarkPlan, BenchmarkProgress, ProgressListener
from suture.bench.running.control_solvers import require_controls
from suture.bench.running.evaluation import EvaluationJob, evaluate
from suture.core.settings import Settings
from suture.errors import SutureError
from suture.loop import load_recipe
from suture.models import Model, open_model
from suture.sandbox import Sandbox, open_sandbox

RowEvaluator = Callable[[EvaluationJob], Awaitable[BenchmarkRow]]
"""Evaluates a job, in this process or on a cluster."""
ItemT = TypeVar("ItemT")


@dataclass(kw_only=True)
class _Session:
    """What all tasks of one call of `run_benchmark` share; `done` and `total` count its rows."""

    folder: BenchFolder
    settings: Settings
    parallel: int
    on_progress: ProgressListener
    sandbox: Sandbox
    judge: Sandbox
    pool: ReplyPool
    done: int = 0
    total: int = 0

    async def run_jobs(self, jobs: Sequence[EvaluationJob], evaluator: RowEvaluator) -> None:
        """Run jobs, `parallel` at a time, and save each row when it is finished."""

        async def run_job(job: EvaluationJob) -> None:
            row = await evaluator(job)
            self.folder.add_row(row)
            self.done += 1
            self.on_progress(BenchmarkProgress(phase="tasks", done=self.done, total=self.total, row=row))

        await for_each(jobs, run_job, parallel=self.parallel)

    async def evaluate_here(self, job: EvaluationJob, model: Model | None) -> BenchmarkRow:
        """Evaluate a job in this process."""
        pooled_model = PooledModel(model, job.model, self.pool, job.problem, seed=job.seed)
        try:
            return await evaluate(
                job, model=pooled_model, settings=self.settings, sandbox=self.sandbox, judge=self.judge
            )
        except SutureError:
            raise
        except Exception as fault:
            # A crash in one task must not end the benchmark, so it becomes a row with a fault.
            return job.row(fault=f"{type(fault).__name__}: {fault}")

    async def references(self, problems: Sequence[Problem]) -> dict[str, Grade]:
        """Return task hash -> grade of its reference; references not known to pass are graded now."""
        grades = {name: grade for name, grade in self.folder.references().items() if grade.right}
        ungraded = [problem for problem in problems if problem.content_hash not in grades]
        if ungraded:
            grades |= await grade_references(
                ungraded, self.judge, self.settings, parallel=self.parallel, on_progress=self.on_progress
            )
            self.folder.write_references(grades)
        return grades

    async def require_controls(self, problems: Sequence[Problem], references: Mapping[str, Grade]) -> None:
        """Run the control solvers, once for each data set of the benchmark."""
        control_tasks = self.folder.controls()
        controlled_datasets = {dataset for dataset, _ in control_tasks}
        new_problems = [problem for problem in problems if problem.dataset not in controlled_datasets]
        if new_problems:
            control_tasks += await require_controls(
                new_problems, references, self.settings, self.sandbox, self.judge, self.on_progress
            )
            self.folder.write_controls(control_tasks)


async def run_benchmark(
    plan: BenchmarkPlan,
    folder: BenchFolder,
    settings: Settings,
    *,
    parallel: int = 4,
    pool: Path | None = None,
    recordings: Sequence[Path] = (),
    replayed: bool = False,
    cluster: str | None = None,
    opener: ModelOpener = open_model,
    on_progress: ProgressListener = lambda progress: None,
) -> None:
    """Measure what is not measured yet; rows with a fault are measured again.

    Args:
        folder: The benchmark folder; rows of earlier sessions are kept.
        settings: The settings of the runs. Run folders are below the benchmark folder, regardless of `paths.home`.
        parallel: Maximum number of tasks that run at the same time.
        pool: Folder of replies to draw from and to add to; by default the benchmark's own.
        recordings: Files of replies to draw from.
        replayed: Whether a reply that is not recorded is an error, instead of a call of the model.
        cluster: Address of a Ray cluster that evaluates instead of this process.

    Raises:
        UsageError: An arm is unknown, a data set has changed, another process uses the folder, or a recorded
            reply is missing.
        PrerequisiteError: A data set, a sandbox, a model or a key is missing, or the control solvers fail.
        StorageError: The folder is damaged or full.
        Cancelled: The user stopped it; it can be resumed.
    """
    home = settings.paths.model_copy(update={"home": folder.path.resolve()})
    settings = settings.model_copy(update={"paths": home})
    with folder.lock():
        problems = {(problem.dataset, problem.id): problem for problem in plan.problems()}
        replies = ReplyPool(pool or folder.path / "pool", recordings)
        async with AsyncExitStack() as stack:
            sandbox, judge = (
                open_sandbox(settings.sandbox, keys=settings.keys, cache=settings.paths.cache)
                for _ in range(2)
            )
            stack.push_async_callback(sandbox.close)
            stack.push_async_callback(judge.close)
            for arm in plan.arms:  # an unknown arm is an error now, not when its first row is due
                load_recipe(settings.loop.model_copy(update={"recipe": arm}), settings.model.temperature)
            models: dict[str, Model] = {}
            if cluster is None and not replayed:
                for name in plan.models:
                    models[name] = opener(settings, name)
                    stack.push_async_callback(models[name].close)
            folder.write_plan(plan)  # not earlier: a plan that cannot be measured must not be saved
            finished = _keep_finished_rows(folder, problems)
            row_keys = list(plan.row_keys())
            session = _Session(
                folder=folder,
                settings=settings,
                parallel=parallel,
                on_progress=on_progress,
                sandbox=sandbox,
                judge=judge,
                pool=replies,
                done=sum(key in finished for key in row_keys),
                total=len(row_keys),
            )
            references = await session.references(tuple(problems.values()))
            await session.require_controls(tuple(problems.values()), references)
            unfinished = [key for key in row_keys if key not in finished]
            # The caps run one after the other, because the replies of a larger cap answer the smaller ones.
            for (model, _cap), keys in groupby(unfinished, key=lambda key: (key.model, key.cap)):
                jobs = [_make_job(key, plan, problems, references) for key in keys]
                async with _evaluator(
                    session, models.get(model), cluster, None if replayed else opener
                ) as evaluator:
                    await session.run_jobs(jobs, evaluator)


@asynccontextmanager
async def _evaluator(
    session: _Session, model: Model | None, cluster: str | None, opener: ModelOpener | None
) -> AsyncIterator[RowEvaluator]:
    """Yield the function that evaluates a job: in this process, or on the workers of a cluster."""
    if cluster is not None:
        async with RayTaskRunner(
            cluster, home=session.folder.path, settings=session.settings, pool=session.pool, opener=opener
        ) as workers:
            yield workers.row
        return
    yield lambda job: session.evaluate_here(job, model)


async def grade_references(
    problems: Sequence[Problem],
    judge: Sandbox,
    settings: Settings,
    *,
    parallel: int = 4,
    on_progress: ProgressListener = lambda progress: None,
) -> dict[str, Grade]:
    """Grade each task's own reference; return task hash -> grade."""
    grades: dict[str, Grade] = {}

    async def grade_reference(problem: Problem) -> None:
        grade = await grade_code(problem, problem.solution, judge, settings.sandbox)
        grades[problem.content_hash] = grade
        on_progress(BenchmarkProgress(phase="references", done=len(grades), total=len(problems)))

    await for_each(problems, grade_reference, parallel=parallel)
    return grades


def _make_job(
    key: RowKey,
    plan: BenchmarkPlan,
    problems: Mapping[tuple[str, str], Problem],
    references: Mapping[str, Grade],
) -> EvaluationJob:
    problem = problems[key.dataset, key.task]
    return EvaluationJob(
        problem=problem,
        arm=key.arm,
        model=key.model,
        seed=key.seed,
        cap=key.cap,
        regime=plan.regime,
        reference=references[problem.content_hash],
    )


def _keep_finished_rows(
    folder: BenchFolder, problems: Mapping[tuple[str, str], Problem]
) -> frozenset[RowKey]:
    """Return the keys of finished rows. Rows with a fault are removed, to be measured again."""
    rows = [row for row in folder.rows() if not row.fault]
    require_same_tasks(folder, problems, rows)
    folder.write_rows(rows)
    return frozenset(row.key for row in rows)


async def for_each(
    items: Iterable[ItemT], handle: Callable[[ItemT], Awaitable[None]], *, parallel: int
) -> None:
    """Handle items, a few at a time; the first exception cancels the others and is raised unchanged."""
    waiting = iter(items)

    async def work() -> None:
        for item in waiting:
            await handle(item)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(parallel):
                group.create_task(work())
    except BaseExceptionGroup as faults:
        raise faults.exceptions[0] from None
