"""Run a benchmark: every task under every arm, several at once, each row on disk before the next task."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from suture.bench.grading.hidden_checks import Grade, grade_code
from suture.bench.problem import Problem
from suture.bench.replies.reply_pool import PooledModel, ReplyPool
from suture.bench.rows import Row
from suture.bench.running.bench_folder import BenchFolder, RowKey, key_of, require_same_tasks
from suture.bench.running.controls import require_controls
from suture.bench.running.evaluating import EvaluationJob, evaluate
from suture.bench.running.plans import BenchmarkPlan
from suture.bench.running.ray_tasks import Cluster, Opener
from suture.core.settings import Settings
from suture.errors import SutureError
from suture.loop import load_recipe
from suture.models import Model, open_model
from suture.sandbox import Sandbox, open_sandbox

Evaluator = Callable[[EvaluationJob], Awaitable[Row]]


@dataclass(frozen=True, kw_only=True)
class Advance:
    """How far a benchmark is.

    Attributes:
        doing: What goes on: `references`, `controls`, or `tasks`.
        done: Lines that are done, those of earlier sessions included.
        total: How many steps there are in all.
        row: The one that was just finished.
    """

    doing: str
    done: int
    total: int
    row: Row | None = None


Listener = Callable[[Advance], None]


@dataclass(kw_only=True)
class _Session:
    """What all tasks of one session share."""

    folder: BenchFolder
    settings: Settings
    parallel: int
    on_progress: Listener
    sandbox: Sandbox
    judge: Sandbox
    pool: ReplyPool
    done: int = 0
    total: int = 0

    async def work_off(self, jobs: Sequence[EvaluationJob], evaluator: Evaluator) -> None:
        """So many at once; each row is written down when it is there."""
        waiting = iter(jobs)

        async def work() -> None:
            for job in waiting:
                row = await evaluator(job)
                self.folder.add_row(row)
                self.done += 1
                self.on_progress(Advance(doing="tasks", done=self.done, total=self.total, row=row))

        await together([work() for _ in range(self.parallel)])

    async def row(self, job: EvaluationJob, model: Model | None) -> Row:
        """Evaluate in this process."""
        answering = PooledModel(model, job.model, self.pool, job.problem, seed=job.seed)
        try:
            return await evaluate(
                job, model=answering, settings=self.settings, sandbox=self.sandbox, judge=self.judge
            )
        except SutureError:
            raise
        except Exception as fault:
            # The edge: a crash in one task is a line of the table, not the end of all the others.
            return job.row(fault=f"{type(fault).__name__}: {fault}")

    async def references(self, problems: Sequence[Problem]) -> dict[str, Grade]:
        """How the references are graded; those not known to pass are graded now, and that is written down."""
        known = {name: grade for name, grade in self.folder.references().items() if grade.right}
        missing = [problem for problem in problems if problem.content_hash not in known]
        if missing:
            known |= await grade_references(
                missing, self.judge, self.settings, parallel=self.parallel, on_progress=self.on_progress
            )
            self.folder.write_references(known)
        return known

    async def require_controls(self, problems: Sequence[Problem], references: Mapping[str, Grade]) -> None:
        """The two solvers whose scores are known, once for each benchmark and set of tasks."""
        tried = self.folder.controls()
        new = [p for p in problems if p.dataset not in {dataset for dataset, _ in tried}]
        if new:
            tried += await require_controls(
                new,
                references,
                self.settings,
                self.sandbox,
                self.judge,
                lambda done, total: self.on_progress(Advance(doing="controls", done=done, total=total)),
            )
            self.folder.write_controls(tried)


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
    opener: Opener = open_model,
    on_progress: Listener = lambda advance: None,
) -> None:
    """Measure what is not measured yet; rows with a fault are measured again.

    Args:
        plan: Tasks, arms, models, seeds and caps.
        folder: Where; its rows of earlier sessions are kept.
        settings: The knobs; runs lie below the folder, whatever their `paths.home` is.
        parallel: Tasks that run at the same time, at most.
        pool: A folder of replies, to draw from and to add to; the benchmark's own where not given.
        recordings: Files of replies to draw from.
        replayed: Whether a reply that neither holds is an error, in place of asking the model.
        cluster: The address of a Ray cluster that evaluates in the place of this process.
        opener: Makes a model of its name.
        on_progress: Called after each step.

    Raises:
        UsageError: An arm is unknown, a set has changed since, another process measures there, or a reply is
            missing that must not be asked for.
        PrerequisiteError: Something is missing: a set, a sandbox, a model, a key; or the controls fail.
        StorageError: The folder is damaged or full.
        Cancelled: The user stopped it; it can be resumed.
    """
    home = settings.paths.model_copy(update={"home": folder.path.resolve()})
    settings = settings.model_copy(update={"paths": home})
    with folder.held():
        problems = {(problem.dataset, problem.id): problem for problem in plan.problems()}
        replies = ReplyPool(pool or folder.path / "pool", recordings)
        async with AsyncExitStack() as stack:
            sandbox, judge = _vetted_sandbox(settings), _vetted_sandbox(settings)
            stack.push_async_callback(sandbox.close)
            stack.push_async_callback(judge.close)
            _require_arms(plan, settings)
            models: dict[str, Model] = {}
            if cluster is None and not replayed:
                for name in plan.models:
                    models[name] = opener(settings, name)
                    stack.push_async_callback(models[name].close)
            folder.write_plan(plan)  # only now: what cannot be measured must not stay in it
            finished = _kept_rows(folder, problems)
            jobs = list(plan.jobs())
            session = _Session(
                folder=folder,
                settings=settings,
                parallel=parallel,
                on_progress=on_progress,
                sandbox=sandbox,
                judge=judge,
                pool=replies,
                done=sum(key in finished for key in jobs),
                total=len(jobs),
            )
            references = await session.references(tuple(problems.values()))
            await session.require_controls(tuple(problems.values()), references)
            left = [key for key in jobs if key not in finished]
            # One cap after the other: what a smaller one asks is to be answered by the replies of the larger.
            for (model, _), keys in groupby(left, key=lambda key: key[3:5]):
                mine = [_job(key, plan, problems, references) for key in keys]
                async with _evaluator(
                    session, models.get(model), cluster, None if replayed else opener
                ) as evaluator:
                    await session.work_off(mine, evaluator)


@asynccontextmanager
async def _evaluator(
    session: _Session, model: Model | None, cluster: str | None, opener: Opener | None
) -> AsyncIterator[Evaluator]:
    """Who evaluates: this process with a model, or a cluster's workers, each of which opens its own."""
    if cluster is not None:
        async with Cluster(
            cluster,
            home=session.folder.path,
            settings=session.settings,
            pool=session.pool,
            opener=opener,
        ) as workers:
            yield workers.row
        return
    yield lambda job: session.row(job, model)


def _require_arms(plan: BenchmarkPlan, settings: Settings) -> None:
    for arm in plan.arms:
        load_recipe(settings.loop.model_copy(update={"recipe": arm}), settings.model.temperature)


async def grade_references(
    problems: Sequence[Problem],
    judge: Sandbox,
    settings: Settings,
    *,
    parallel: int = 4,
    on_progress: Listener = lambda advance: None,
) -> dict[str, Grade]:
    """How each task's own reference is graded here, by the hash of the task."""
    grades: dict[str, Grade] = {}
    waiting = iter(problems)

    async def work() -> None:
        for problem in waiting:
            grades[problem.content_hash] = await grade_code(
                problem, problem.solution, judge, settings.sandbox
            )
            on_progress(Advance(doing="references", done=len(grades), total=len(problems)))

    await together([work() for _ in range(parallel)])
    return grades


def _job(
    key: RowKey,
    plan: BenchmarkPlan,
    problems: Mapping[tuple[str, str], Problem],
    references: Mapping[str, Grade],
) -> EvaluationJob:
    dataset, task, arm, model, cap, seed = key
    problem = problems[dataset, task]
    return EvaluationJob(
        problem=problem,
        arm=arm,
        model=model,
        seed=seed,
        cap=cap,
        regime=plan.regime,
        reference=references[problem.content_hash],
    )


def _vetted_sandbox(settings: Settings) -> Sandbox:
    return open_sandbox(settings.sandbox, keys=settings.keys, cache=settings.paths.cache)


def _kept_rows(folder: BenchFolder, problems: Mapping[tuple[str, str], Problem]) -> frozenset[RowKey]:
    """What is finished. Rows with a fault are taken out, and done again.

    Raises:
        UsageError: A task is not what it was.
    """
    rows = [row for row in folder.rows() if not row.fault]
    require_same_tasks(folder, problems, rows)
    folder.write_rows(rows)
    return frozenset(map(key_of, rows))


async def together(workers: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Run workers to their end; the first fault ends them all, and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            for worker in workers:
                group.create_task(worker)
    except BaseExceptionGroup as faults:
        raise faults.exceptions[0] from None
