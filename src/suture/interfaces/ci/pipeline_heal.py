"""Heal in a pipeline: check the gates, reproduce the failure, heal within the budget, gate the change."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from suture.api import heal
from suture.api.options import HealOptions
from suture.core.ledger import find_run
from suture.core.records import Candidate, Task, Verdict, render_reason
from suture.core.settings import Settings
from suture.errors import UsageError
from suture.interfaces.ci.ci_checkout import Checkout, base_files, read_checkout
from suture.interfaces.ci.ci_pipeline import Pipeline
from suture.interfaces.ci.delivery_gates import Refusal, check_change_gates, check_pipeline_gates
from suture.interfaces.ci.heal_report import CERTIFICATE, HealReport, refused_report
from suture.interfaces.ci.line_edits import LineEdit, count_changed_lines, line_edits_between
from suture.interfaces.ci.tuning import MAX_DESELECTED
from suture.interfaces.narrative.wording import render_capability
from suture.judge import (
    Suite,
    TriageResult,
    check_candidate,
    has_endless_loops,
    prepare_suite,
    triage_endless_tests,
    triage_failures,
)
from suture.loop.intake.heal_task import build_heal_task
from suture.project.languages.diagnostics import find_runtime_language
from suture.project.workspace import overlay_candidate
from suture.sandbox import Sandbox, discover_programs, open_sandbox

StepReporter = Callable[[str], None]
"""Shows what is being done, in one line."""
DESELECT_OPTION = "--deselect="
"""pytest's option that leaves out one test."""
FAILING_STATUSES = ("failed", "error", "timeout")
"""Statuses of a test that failed at the base commit; one that is `missing` there is new."""


@dataclass(frozen=True, kw_only=True)
class HealRequest:
    """What a user asks for.

    Attributes:
        test: The test command; with `None` that of the settings, or the detected one.
        base: The commit to compare with; with `None` that of the CI service, or the parent.
    """

    root: Path
    test: str | None = None
    base: str | None = None


def plan_heal(
    request: HealRequest, pipeline: Pipeline, settings: Settings
) -> tuple[Refusal | None, dict[str, str]]:
    """Return (refusal, choices) of a heal without running anything.

    The refusal is that of a gate, or `None`. The choices say as text what the heal would do.

    Raises:
        UsageError: As `heal_in_pipeline` does.
    """
    checkout = read_checkout(request.root, pipeline, request.base)
    task = load_heal_task(request, settings)
    model = settings.model.name
    base = checkout.base[:12] if settings.ci.new_only else "nothing, every failure counts as new"
    choices = {
        "service": pipeline.host,
        "commit": checkout.commit[:12] + (f" of {pipeline.branch}" if pipeline.branch else ""),
        "compared with": base or "no base commit found",
        "test command": " ".join(task.full_command),
        "proposers": "the search only, no model" if model == "none" else f"the search, then {model}",
        "seconds": f"{settings.budget.seconds:g}",
        "delivered as": settings.ci.delivery,
    }
    return check_pipeline_gates(pipeline, checkout, settings), choices


async def heal_in_pipeline(
    request: HealRequest,
    pipeline: Pipeline,
    settings: Settings,
    report_step: StepReporter,
    *,
    sandbox: Sandbox | None = None,
) -> HealReport:
    """Reproduce a failure, heal it and check the gates; nothing is delivered.

    Args:
        request: What the user asks for.
        pipeline: What the CI service says.
        settings: The settings, including the gates.
        report_step: Called with a line for each step, which contains no untrusted text.
        sandbox: The sandbox; by default the one of the settings.

    Raises:
        UsageError: There is no repository, there are no tests, or the service expects another commit.
        PrerequisiteError: Git, a sandbox, a model or a key is missing.
        SandboxError: The sandbox failed.
        StorageError: The run folder or the repository cannot be used.
    """
    started_s = time.monotonic()
    checkout = read_checkout(request.root, pipeline, request.base)
    refusal = check_pipeline_gates(pipeline, checkout, settings)
    if refusal is not None:
        return _add_commit(refused_report(refusal), checkout, pipeline)
    task = load_heal_task(request, settings)
    run_sandbox = sandbox or open_sandbox(settings.sandbox, keys=settings.keys, cache=settings.paths.cache)
    try:
        report_step("running the tests once, in the sandbox")
        limited_settings = _limit_seconds(settings, settings.budget.seconds)
        reproduced = await reproduce(task, request.root, run_sandbox, limited_settings)
        report = await _report_from_tests(reproduced, checkout, settings, report_step)
        remaining_s = settings.budget.seconds - (time.monotonic() - started_s)
        if report.outcome == "" and remaining_s <= 0:
            report = replace(
                report, outcome="budget_exhausted", detail="running the tests took all of budget.seconds"
            )
        elif report.outcome == "":
            report_step(f"{len(report.failing)} failing; healing, for at most {remaining_s:.0f} s")
            limited_settings = _limit_seconds(settings, remaining_s)
            report = await _heal_and_gate(report, task, request.root, run_sandbox, limited_settings)
    finally:
        if run_sandbox is not sandbox:
            await run_sandbox.close()
    return replace(_add_commit(report, checkout, pipeline), seconds=time.monotonic() - started_s)


def _add_commit(report: HealReport, checkout: Checkout, pipeline: Pipeline) -> HealReport:
    return replace(report, commit=checkout.commit, branch=pipeline.branch, base=checkout.base)


def load_heal_task(request: HealRequest, settings: Settings) -> Task:
    """Return the task for the project.

    Raises:
        UsageError: As `suture heal` does, or a proposer is set: its change has no certificate to deliver it by.
    """
    if settings.proposer.command:
        raise UsageError(
            "suture ci delivers certified repairs only, and the change of a proposer is judged, not certified",
            remedy="unset proposer.command; `suture judge` gives the verdict on an agent's change in a pipeline",
        )
    test = settings.project.test if request.test is None else request.test
    task, *_ = build_heal_task(
        request.root, test=test, secrets=settings.sandbox.secrets, python=settings.sandbox.python
    )
    return replace(task, services=settings.project.services)


def _limit_seconds(settings: Settings, remaining_s: float) -> Settings:
    """Return the settings with the remaining time, which also limits a single run of the tests."""
    test_timeout_s = min(settings.sandbox.test_timeout_s, remaining_s)
    return settings.model_copy(
        update={
            "budget": settings.budget.model_copy(update={"seconds": remaining_s}),
            "sandbox": settings.sandbox.model_copy(update={"test_timeout_s": test_timeout_s}),
        }
    )


async def _report_from_tests(
    reproduced: ReproducedFailure, checkout: Checkout, settings: Settings, report_step: StepReporter
) -> HealReport:
    """Return the report as far as the tests decide it; the outcome is empty if there is something to heal."""
    verdict, triage = reproduced.verdict, reproduced.triage
    ids = [outcome.check_id for outcome in verdict.outcomes] if verdict else []
    failing = tuple(check_id for check_id in ids if verdict and check_id in verdict.failed)
    report = HealReport(outcome="", failing=failing, verdict=verdict)
    if triage.cause:
        return replace(
            report,
            outcome="not_a_code_fault",
            failing=failing or tuple(failure.test for failure in triage.not_code),
            reason=triage.cause,
            detail=triage.reason,
        )
    if not failing:
        return replace(report, outcome="nothing_to_heal", detail="every test passes here")
    if not settings.ci.new_only:
        return report
    report_step("running the failing tests at the base commit")
    old = await find_old_failures(reproduced, checkout)
    command = reproduced.suite.command
    can_deselect = len(old) <= MAX_DESELECTED and command is not None and command.is_pytest
    can_deselect = can_deselect and not any(
        outcome.provenance == "tool" and outcome.check_id in old
        for outcome in (verdict.outcomes if verdict else ())
    )
    # Old failures that cannot be left out of the command would fail every heal.
    if len(old) == len(failing) or (old and not can_deselect):
        refusal = Refusal(reason="not_new", detail=f"{len(old)} of {len(failing)}")
        return replace(refused_report(refusal), failing=failing, verdict=verdict)
    return replace(report, old_failures=tuple(sorted(old)))


async def _heal_and_gate(
    report: HealReport, task: Task, root: Path, run_sandbox: Sandbox, settings: Settings
) -> HealReport:
    tests = deselect_tests(task.test_command, frozenset(report.old_failures))
    command: Sequence[str] = replace(task, test_command=tests).full_command
    if settings.loop.strict is None:  # Nobody reads the diff of a pipeline before it is delivered.
        settings = settings.model_copy(update={"loop": settings.loop.model_copy(update={"strict": True})})
    result = await heal(root, HealOptions(test=command, settings=settings, sandbox=run_sandbox))
    edits: tuple[LineEdit, ...] = ()
    if result.candidate is not None and result.diff:
        edits = line_edits_between(task.files, overlay_candidate(task.files, result.candidate.files))
    report = replace(
        report,
        outcome=result.outcome,
        reason=result.cause or "",
        detail=render_reason(result.reason) + (f" ({result.reason.remedy})" if result.reason.remedy else ""),
        run=result.run_id,
        diff=result.diff,
        edits=edits,
        confidence=result.confidence,
        evidence=result.evidence,
        warnings=(*map(render_capability, result.capabilities), *result.warnings),
    )
    if result.outcome != "healed":
        return report
    refusal = check_change_gates(
        settings,
        files=sorted(result.candidate.files) if result.candidate else (),
        lines=count_changed_lines(edits),
        confidence=result.confidence,
        evidence=result.evidence,
        capabilities=result.capabilities,
    )
    certificate = find_run(settings.paths.home, result.run_id).path / CERTIFICATE
    if refusal is None and not certificate.is_file():
        refusal = Refusal(reason="no_certificate", detail="the repair of a flaky test never has one")
    if refusal is not None:
        refused = refused_report(refusal)
        return replace(report, outcome=refused.outcome, reason=refused.reason, detail=refused.detail)
    return replace(report, certificate=certificate)


@dataclass(frozen=True, kw_only=True)
class ReproducedFailure:
    """What the tests say about the unchanged code.

    Attributes:
        verdict: The verdict; `None` if an endless loop was found, so that the tests were not run.
        triage: Which failing tests are not the code's fault.
    """

    suite: Suite
    verdict: Verdict | None
    triage: TriageResult


async def reproduce(task: Task, root: Path, sandbox: Sandbox, settings: Settings) -> ReproducedFailure:
    """Run the tests once and triage those that fail."""
    interpreter = discover_programs(root, os.environ, find_runtime_language(task), settings.sandbox.python)
    may_be_endless = has_endless_loops(task.files)
    suite = await prepare_suite(task, sandbox, settings.sandbox, interpreter, run=not may_be_endless)
    if may_be_endless and (triage := await triage_endless_tests(suite)).cause:
        return ReproducedFailure(suite=suite, verdict=None, triage=triage)
    verdict = await check_candidate(Candidate(files={}, origin="user"), suite)
    triage = await triage_failures(suite, verdict) if verdict.failed else TriageResult()
    return ReproducedFailure(suite=suite, verdict=verdict, triage=triage)


async def find_old_failures(reproduced: ReproducedFailure, checkout: Checkout) -> frozenset[str]:
    """Return the failing tests that also fail at the base commit; only these tests are run there.

    What linters report there cannot be left out of a command, so that no tests are run then.

    A test that does not exist at the base is new.
    """
    suite, command, verdict = reproduced.suite, reproduced.suite.command, reproduced.verdict
    if verdict is None or not verdict.failed:
        return frozenset()
    files = base_files(checkout, suite.task.files)
    if suite.diagnostics is not None:
        outcomes = (await suite.diagnostics.run(files)).outcomes
        reported = frozenset(outcome.check_id for outcome in outcomes if not outcome.passed)
        if reported & verdict.failed:
            return reported & verdict.failed
    if command is None or suite.task.tests_only_guard:
        return frozenset()
    base_command = command.copy_with_files(files)
    try:
        await base_command.collect()
    except UsageError:  # the tests do not exist there or cannot run, so every failure is new
        return frozenset()
    outcomes = await base_command.run_selected(files, verdict.failed)
    return verdict.failed & {outcome.check_id for outcome in outcomes if outcome.status in FAILING_STATUSES}


def deselect_tests(command: tuple[str, ...], tests: frozenset[str]) -> tuple[str, ...]:
    """Return a pytest command that leaves out some tests."""
    return (*command, *(f"{DESELECT_OPTION}{test}" for test in sorted(tests)))


def split_deselected(command: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return (a command as it was before `deselect_tests`, the tests that it leaves out)."""
    words = tuple(word for word in command if not word.startswith(DESELECT_OPTION))
    tests = tuple(word.removeprefix(DESELECT_OPTION) for word in command if word.startswith(DESELECT_OPTION))
    return words, tests
