"""Evaluate one task with one arm: run it through the public API, and grade the run after it has ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from suture.api import WriteOptions, solve
from suture.bench.grading.hidden_checks import Grade, grade_code, is_forged_pass, sandbox_holds
from suture.bench.problem import Problem, Regime, build_task, shows_hidden_checks
from suture.bench.prompt_leaks import find_leaks
from suture.bench.rows import BenchmarkRow
from suture.bench.running.candidate_steps import (
    load_candidate_files,
    read_steps,
    sum_run_totals,
)
from suture.core.ledger import Event, RunFolder, read_ledger, select_events
from suture.core.ledger.kinds import MoveFailed
from suture.core.records import Result, render_reason
from suture.core.settings import BudgetSettings, Settings
from suture.errors import Cancelled, ModelAuthError, PrerequisiteError, StorageError, SutureError, UsageError
from suture.models import Model, Role
from suture.sandbox import Sandbox

UNLIMITED_SECONDS, UNLIMITED_TOKENS = 24 * 3600.0, 10**9
"""More than any run takes, because a benchmark limits only the reply tokens."""
ABORTING_ERRORS = (Cancelled, ModelAuthError, PrerequisiteError, StorageError, UsageError)
"""Exceptions that every further task would raise too. They end the benchmark, which can be resumed later."""
ARM_FAULTS = (
    "BudgetExceeded", "ContextTooLong", "EditDoesNotApply", "MalformedReply", "MissingAnswer", "UnchangedCode",
)  # fmt: skip
"""Faults of a move that the arm caused. Any other fault means that the model could not be called."""
SANDBOX_FAULTS = ("SandboxError", "SandboxBroken")
"""Names of the exceptions by which a run reports that its sandbox failed."""


@dataclass(frozen=True, kw_only=True)
class EvaluationJob:
    """A row to measure: a task, and the arm, model, cap and seed with which it is run.

    Attributes:
        arm: The name of the recipe.
        model: `provider:model`, used for every role.
        cap: Maximum reply tokens of the run.
        reference: Grade of the task's own reference.
    """

    problem: Problem
    arm: str
    model: str
    seed: int
    cap: int
    regime: Regime
    reference: Grade

    def row(self, **fields: Any) -> BenchmarkRow:
        """Return a row of this job with some fields set."""
        row = BenchmarkRow(
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
            hidden_checks_visible=shows_hidden_checks(self.problem, self.regime),
        )
        return replace(row, **fields)


def make_arm_settings(settings: Settings, job: EvaluationJob) -> Settings:
    """Return the settings of one run: the arm's recipe, the cap, and no other limit."""
    # As many attempts as reply tokens, so that the cap is reached first.
    budget = BudgetSettings(
        attempts=job.cap, tokens=UNLIMITED_TOKENS, completion_tokens=job.cap, seconds=UNLIMITED_SECONDS
    )
    return make_run_settings(settings, job.arm, budget)


def make_run_settings(settings: Settings, recipe: str, budget: BudgetSettings) -> Settings:
    """Return the settings of a run that is measured: one model, a recipe and a budget, and no certification."""
    return settings.model_copy(
        update={
            "loop": settings.loop.model_copy(update={"recipe": recipe}),
            "budget": budget,
            # A row is about one model, so no role may use another.
            "models": settings.models.model_copy(update=dict.fromkeys(get_args(Role))),
            # A certificate says nothing about solving, and takes as long as the run.
            "certification": settings.certification.model_copy(update={"seconds": 0.0}),
        }
    )


async def evaluate(
    job: EvaluationJob, *, model: Model, settings: Settings, sandbox: Sandbox, judge: Sandbox
) -> BenchmarkRow:
    """Run a task with an arm, then grade its first candidate and every one that was the best so far.

    If the sandbox fails in the run, harmless code runs in it, then the run is repeated with the same replies,
    and harmless code runs again. A run that breaks the sandbox twice, while harmless code does not, counts as
    wrong and not as a fault of the machinery. The row has a fault if the sandbox or the model failed.

    Args:
        model: The model; it must give the same replies again.
        settings: The settings; the run folder is below their `paths.home`.
        judge: Another sandbox, for the hidden checks.

    Raises:
        PrerequisiteError: A sandbox, a model or a key is missing.
        UsageError: The arm is unknown, or a recorded reply is missing.
        StorageError: A folder cannot be written.
        Cancelled: The user stopped it.
    """
    if reason := _explain_unusable(job):
        return job.row(fault=reason)
    sandbox_failure = ""
    try:
        result = await _run(job, model, settings, sandbox)
        # The hidden checks must not enter the sandbox of the runs.
        harmless = replace(job.problem, hidden="pass")
        if _sandbox_fault(result) and await sandbox_holds(harmless, sandbox, settings.sandbox):
            result = await _run(job, model, settings, sandbox)
            second_fault = _sandbox_fault(result)
            if second_fault and await sandbox_holds(harmless, sandbox, settings.sandbox):
                sandbox_failure = second_fault
    except ABORTING_ERRORS:
        raise
    except SutureError as fault:
        return job.row(run=fault.run_id or "", fault=f"{type(fault).__name__}: {fault}")
    folder = RunFolder(settings.paths.home / "runs" / result.run_id)
    return await build_row(job, folder, result, settings, judge, sandbox_failure=sandbox_failure)


async def _run(job: EvaluationJob, model: Model, settings: Settings, sandbox: Sandbox) -> Result:
    task = build_task(job.problem, job.regime)
    options = WriteOptions(settings=make_arm_settings(settings, job), model=model, sandbox=sandbox)
    return await solve(task, options)


def _sandbox_fault(result: Result) -> str:
    """Return how the sandbox failed in a run; empty if it did not."""
    failed = result.outcome == "infra_error" and result.reason.fault in SANDBOX_FAULTS
    return render_reason(result.reason) if failed else ""


async def build_row(
    job: EvaluationJob,
    folder: RunFolder,
    result: Result,
    settings: Settings,
    judge: Sandbox,
    *,
    sandbox_failure: str = "",
) -> BenchmarkRow:
    """Build the row of an ended run, with the grades of its first candidate and of every one that was the best.

    `sandbox_failure` says how the run's code broke the sandbox, if it did.
    """
    events = read_ledger(folder.ledger_path).events
    row = job.row(
        run=folder.id,
        outcome=result.outcome,
        confidence=result.confidence,
        steps=read_steps(events),
        fault=_explain_unusable(job) or _fault(job, folder, result, events, sandbox_failure),
        sandbox_failure=sandbox_failure,
        **sum_run_totals(events),
    )
    if row.fault:
        return row
    grades: dict[str, Grade] = {}
    first_step = row.first_proposed()
    for step in row.steps:
        # The first candidate counts even if it is no better than the given code.
        if (step.is_best_so_far or step is first_step) and step.candidate not in grades:
            code = load_candidate_files(step, folder, events)
            grades[step.candidate] = await grade_code(
                job.problem, code, judge, settings.sandbox, reference=job.reference
            )
    failed_grade = next((grade for grade in grades.values() if grade.status == "infra"), None)
    row = replace(
        row,
        steps=tuple(replace(step, grade=grades.get(step.candidate)) for step in row.steps),
        fault=f"grading failed: {failed_grade.reason or 'no reason'}" if failed_grade is not None else "",
    )
    final_step = row.best_step()
    if final_step is None or not final_step.claimed:
        return row
    code = load_candidate_files(final_step, folder, events)
    return replace(row, forged=await is_forged_pass(job.problem, job.regime, code, judge, settings.sandbox))


def _explain_unusable(job: EvaluationJob) -> str:
    """Return why the task cannot be measured; empty if it can."""
    if job.reference.right:
        return ""
    return f"its own reference does not pass here: {job.reference.reason or 'no reason'}"


def _fault(
    job: EvaluationJob, folder: RunFolder, result: Result, events: tuple[Event, ...], sandbox_failure: str
) -> str:
    """Return why the run has no result; empty if it has one."""
    # The regime `oracle` shows the hidden checks on purpose.
    if job.regime != "oracle" and (leaks := find_leaks(job.problem, folder, job.regime)):
        return f"a prompt has a hidden check: {leaks[0]!r:.80}"
    return explain_infrastructure_fault(result, events, ignores_end=bool(sandbox_failure))


def explain_infrastructure_fault(
    result: Result, events: Sequence[Event], *, ignores_end: bool = False
) -> str:
    """Return how the model or the sandbox failed in a run; empty if the run ended by what the model wrote.

    Args:
        ignores_end: Whether only calls of the model count, because the run's own code broke the sandbox.
    """
    for _, failed_move in select_events(events, MoveFailed):
        if failed_move.error_type not in ARM_FAULTS:
            return f"{failed_move.error_type}: {failed_move.message}"
    return render_reason(result.reason) if result.outcome == "infra_error" and not ignores_end else ""
