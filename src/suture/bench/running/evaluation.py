"""One task under one arm: the run through the front door, then, when it has ended, its grading."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, get_args

from suture.api import WriteOptions, solve
from suture.bench.grading.hidden_checks import Grade, grade_code, is_forged_pass, sandbox_holds
from suture.bench.problem import Problem, Regime, build_task, shows_hidden_checks
from suture.bench.prompt_leaks import find_leaks
from suture.bench.rows import BenchmarkRow
from suture.bench.running.candidate_steps import (
    assess_generated_tests,
    load_candidate_files,
    read_steps,
    sum_run_totals,
)
from suture.core.ledger import Event, RunFolder, read_ledger, select_events
from suture.core.ledger.kinds import MoveFailed
from suture.core.records import Result, render_reason
from suture.core.settings import BudgetSettings, Settings
from suture.errors import (
    Cancelled,
    ModelAuthError,
    PrerequisiteError,
    StorageError,
    SutureError,
    UsageError,
)
from suture.models import Model, Role
from suture.sandbox import Sandbox

GENEROUS_SECONDS = 24 * 3600.0
GENEROUS_TOKENS = 10**9
"""More than any run takes: a benchmark limits the tokens of replies alone."""
ABORTING_ERRORS = (Cancelled, ModelAuthError, PrerequisiteError, StorageError, UsageError)
"""Faults that the next task would meet too: they end the benchmark, which is resumed when they are gone."""
LOST_MOVES = ("BudgetExceeded", "MalformedReply", "EditDoesNotApply", "ContextTooLong")
"""Faults of a move that are the arm's own; any other means that the model could not be asked."""
SANDBOX_FAULTS = ("SandboxError", "SandboxBroken")


@dataclass(frozen=True, kw_only=True)
class EvaluationJob:
    """One line of a table: a task under an arm.

    Attributes:
        problem: The task.
        arm: The name of the recipe that is measured.
        model: `provider:model`, which speaks for every role.
        seed: Which repetition, from 0.
        cap: The most tokens of replies.
        regime: What of the checks the loop may see.
        reference: How the task's own reference is graded here.
    """

    problem: Problem
    arm: str
    model: str
    seed: int
    cap: int
    regime: Regime
    reference: Grade

    def row(self, **fields: Any) -> BenchmarkRow:
        """A row of this job, with so much of it filled in."""
        bare = BenchmarkRow(
            problem=self.problem.id,
            problem_hash=self.problem.content_hash,
            dataset=self.problem.dataset,
            regime=self.regime,
            arm=self.arm,
            model=self.model,
            seed=self.seed,
            cap=self.cap,
            run="",
            outcome="infra_error",
            confidence=0.0,
            shown=shows_hidden_checks(self.problem, self.regime),
        )
        return replace(bare, **fields)


def make_arm_settings(settings: Settings, job: EvaluationJob) -> Settings:
    """The settings of one run: the arm's recipe, the cap, and nothing else that could end it."""
    budget = BudgetSettings(
        attempts=job.cap, tokens=GENEROUS_TOKENS, completion_tokens=job.cap, seconds=GENEROUS_SECONDS
    )
    return settings.model_copy(
        update={
            "loop": settings.loop.model_copy(update={"recipe": job.arm}),
            "budget": budget,
            # The job's model speaks for every role: a row is of no other.
            "models": settings.models.model_copy(update=dict.fromkeys(get_args(Role))),
            # A proof says nothing about solving, and takes as long as the run.
            "certification": settings.certification.model_copy(update={"seconds": 0.0}),
        }
    )


async def evaluate(
    job: EvaluationJob, *, model: Model, settings: Settings, sandbox: Sandbox, judge: Sandbox
) -> BenchmarkRow:
    """Run a task under an arm, then grade its first candidate and every one that led.

    Where the wall fails in the run, harmless code is run behind it, then everything once more, and harmless
    code again: `model` must give the same replies again. A run that brings the wall down twice, while
    harmless code between and after does not, is wrong and no fault of the machinery.

    Args:
        job: The task, the recipe, the model, the seed and the cap.
        model: The model that is asked.
        settings: The knobs; the run's folder comes below their `paths.home`.
        sandbox: The wall for the run.
        judge: Another one, for the hidden checks.

    Returns:
        A row; one with a fault where the wall or the model failed.

    Raises:
        PrerequisiteError: Something is missing: a sandbox, a model, a key.
        UsageError: The arm is unknown, or the recordings lack a reply and nobody is to be asked.
        StorageError: A folder cannot be written.
        Cancelled: The user stopped it.
    """
    if unfit := _unfit(job):
        return job.row(fault=unfit)
    felled = ""
    try:
        result = await _ran(job, model, settings, sandbox)
        harmless = _harmless(job.problem)
        if _sandbox_fault(result) and await sandbox_holds(harmless, sandbox, settings.sandbox):
            result = await _ran(job, model, settings, sandbox)
            fell = _sandbox_fault(result)
            felled = fell if fell and await sandbox_holds(harmless, sandbox, settings.sandbox) else ""
    except ABORTING_ERRORS:
        raise
    except SutureError as fault:
        return job.row(run=fault.run_id or "", fault=f"{type(fault).__name__}: {fault}")
    folder = RunFolder(settings.paths.home / "runs" / result.run_id)
    return await build_row(job, folder, result, settings, judge, felled=felled)


async def _ran(job: EvaluationJob, model: Model, settings: Settings, sandbox: Sandbox) -> Result:
    task = build_task(job.problem, job.regime)
    options = WriteOptions(settings=make_arm_settings(settings, job), model=model, sandbox=sandbox)
    return await solve(task, options)


def _sandbox_fault(result: Result) -> str:
    """How the wall failed in a run; empty where it did not."""
    failed = result.outcome == "infra_error" and result.reason.fault in SANDBOX_FAULTS
    return render_reason(result.reason) if failed else ""


def _harmless(problem: Problem) -> Problem:
    """The task with nothing to grade: its hidden checks have no business in the wall of the runs."""
    return replace(problem, hidden="pass")


async def build_row(
    job: EvaluationJob,
    folder: RunFolder,
    result: Result,
    settings: Settings,
    judge: Sandbox,
    *,
    felled: str = "",
) -> BenchmarkRow:
    """What a run's folder says, with grades for its first candidate and for every one that led at some time.

    Args:
        job: The task, the recipe, the model, the seed and the cap.
        folder: The run's.
        result: The run's outcome, candidate and spend.
        settings: The limits of the sandbox.
        judge: A wall that the run did not use.
        felled: How the run's code brought its wall down, where it did.

    Raises:
        StorageError: The folder is damaged.
    """
    events = read_ledger(folder.ledger_path).events
    row = job.row(
        run=folder.id,
        outcome=result.outcome,
        confidence=result.confidence,
        steps=read_steps(folder, events),
        fault=_unfit(job) or _fault(job, folder, result, events, felled),
        felled=felled,
        **sum_run_totals(events),
    )
    if row.fault:
        return row
    grades: dict[str, Grade] = {}
    first = row.first_proposed()
    for step in row.steps:
        # The first one counts also where it does no better than the code that was given.
        if (step.leads or step is first) and step.candidate not in grades:
            code = load_candidate_files(step, folder, events)
            grades[step.candidate] = await grade_code(
                job.problem, code, judge, settings.sandbox, reference=job.reference
            )
    steps = tuple(replace(step, grade=grades.get(step.candidate)) for step in row.steps)
    broken = next((grade.why for grade in grades.values() if grade.standing == "infra"), None)
    fault = "" if broken is None else f"grading failed: {broken or 'no reason'}"
    tests = await assess_generated_tests(job.problem, folder, events, judge, settings.sandbox)
    row = replace(row, steps=steps, tests=tests, fault=fault)
    end = row.leader()
    if end is None or not end.claimed:
        return row
    code = load_candidate_files(end, folder, events)
    return replace(row, forged=await is_forged_pass(job.problem, job.regime, code, judge, settings.sandbox))


def _unfit(job: EvaluationJob) -> str:
    """Why nothing can be measured with the task; empty where something can."""
    if job.reference.right:
        return ""
    return f"its own reference does not pass here: {job.reference.why or 'no reason'}"


def _fault(
    job: EvaluationJob, folder: RunFolder, result: Result, events: tuple[Event, ...], felled: str
) -> str:
    if job.regime != "oracle":
        leaked = find_leaks(job.problem, folder, job.regime)
        if leaked:
            return f"a hidden check stood in a prompt: {leaked[0]!r:.80}"
    for _, failed in select_events(events, MoveFailed):
        if failed.error_type not in LOST_MOVES:
            return f"{failed.error_type}: {failed.message}"
    return render_reason(result.reason) if result.outcome == "infra_error" and not felled else ""
