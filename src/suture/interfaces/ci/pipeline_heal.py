"""One heal in a pipeline: gates, the failure once more, the heal within the budget, gates again."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from suture.api import heal
from suture.core.ledger import find_run
from suture.core.records import Candidate, Result, Task, Verdict
from suture.core.settings import Settings
from suture.errors import UsageError
from suture.interfaces.ci.ci_checkout import Checkout, base_files, read_checkout
from suture.interfaces.ci.ci_pipeline import Pipeline
from suture.interfaces.ci.delivery_gates import GatedChange, Refusal, check_change_gates, check_pipeline_gates
from suture.interfaces.ci.heal_report import CERTIFICATE, HealReport, refused_report
from suture.interfaces.ci.line_edits import LineEdit, count_changed_lines, line_edits_between
from suture.judge import (
    Suite,
    Triage,
    check_candidate,
    has_endless_loops,
    prepare_suite,
    triage,
    triage_endless_tests,
)
from suture.loop.intake.heal_task import build_heal_task
from suture.project.workspace import overlay
from suture.sandbox import Sandbox, discover_programs, open_sandbox

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class HealRequest:
    """What a user asks of a heal in a pipeline.

    Attributes:
        root: The project's folder.
        test: The test command; where `None`, the setting's, else what the project's files show.
        base: The commit to compare with; where `None`, what the service says, else the parent.
    """

    root: Path
    test: str | None = None
    base: str | None = None


def plan_heal(
    asked: HealRequest, pipeline: Pipeline, settings: Settings
) -> tuple[Refusal | None, dict[str, str]]:
    """What a heal would do, without running anything: the gate that forbids it, and each choice in words.

    Raises:
        UsageError: As `heal_in_pipeline` does.
    """
    checkout = read_checkout(asked.root, pipeline, asked.base)
    task = load_heal_task(asked, settings)
    asks = (
        "the search, no model" if settings.model.name == "none" else f"the search, then {settings.model.name}"
    )
    compared = checkout.base[:12] if settings.ci.new_only else "nothing: every failure counts as new"
    return check_pipeline_gates(pipeline, checkout, settings), {
        "service": pipeline.host,
        "commit": checkout.commit[:12] + (f" of {pipeline.branch}" if pipeline.branch else ""),
        "compared with": compared or "nothing that is there",
        "test command": " ".join(task.test_command),
        "asked": asks,
        "seconds": f"{settings.budget.seconds:g}",
        "handed over as": settings.ci.hand_over,
    }


async def heal_in_pipeline(
    asked: HealRequest, pipeline: Pipeline, settings: Settings, say: Say, *, sandbox: Sandbox | None = None
) -> HealReport:
    """Reproduce a failure, heal it and gate what came of it; nothing is handed over.

    Args:
        asked: What the user asks.
        pipeline: What the service says.
        settings: The knobs, gates among them.
        say: Called with each step, in fixed words.
        sandbox: The wall; the settings' where not given.

    Raises:
        UsageError: There is no repository, no tests, or another commit is checked out than the service's.
        PrerequisiteError: Something is missing: git, a sandbox, a model, a key.
        SandboxError: The wall failed.
        StorageError: The run folder or the repository cannot be used.
    """
    started_s = time.monotonic()
    checkout = read_checkout(asked.root, pipeline, asked.base)
    refusal = check_pipeline_gates(pipeline, checkout, settings)
    if refusal is not None:
        return _placed(refused_report(refusal), checkout, pipeline)
    task = load_heal_task(asked, settings)
    wall = sandbox or open_sandbox(settings.sandbox, keys=settings.keys, cache=settings.paths.cache)
    try:
        say("running the tests once, in the sandbox")
        limited = _within(settings, settings.budget.seconds)
        reproduced = await reproduce(task, asked.root, wall, limited)
        report = await _from_tests(reproduced, checkout, settings, say)
        left_s = settings.budget.seconds - (time.monotonic() - started_s)
        if report.outcome == "" and left_s <= 0:
            report = replace(report, outcome="budget_exhausted", detail="the tests alone took budget.seconds")
        elif report.outcome == "":
            say(f"{len(report.failing)} failing; healing, for at most {left_s:.0f} s")
            report = await _heal(report, task, asked.root, wall, _within(settings, left_s))
    finally:
        if wall is not sandbox:
            await wall.close()
    return replace(_placed(report, checkout, pipeline), seconds=time.monotonic() - started_s)


def _placed(report: HealReport, checkout: Checkout, pipeline: Pipeline) -> HealReport:
    return replace(report, commit=checkout.commit, branch=pipeline.branch, base=checkout.base)


def load_heal_task(asked: HealRequest, settings: Settings) -> Task:
    """The task that the project's files make; raises as `suture heal` does."""
    test = settings.project.test if asked.test is None else asked.test
    kept = settings.sandbox
    return build_heal_task(asked.root, test=test, secrets=kept.secrets, python=kept.python)[0]


def _within(settings: Settings, left_s: float) -> Settings:
    """The settings with what is left of the time; one run of the tests is no longer than that either."""
    budget = settings.budget.model_copy(update={"seconds": left_s})
    wall_s = min(settings.sandbox.test_wall_s, left_s)
    sandbox = settings.sandbox.model_copy(update={"test_wall_s": wall_s})
    return settings.model_copy(update={"budget": budget, "sandbox": sandbox})


async def _from_tests(
    reproduced: ReproducedFailure, checkout: Checkout, settings: Settings, say: Say
) -> HealReport:
    """How it ends where the tests alone tell; the outcome is empty where there is something to heal."""
    verdict, found = reproduced.verdict, reproduced.triage
    failing = (
        tuple(one.check_id for one in verdict.outcomes if one.check_id in verdict.failed) if verdict else ()
    )
    known = HealReport(outcome="", failing=failing, verdict=verdict)
    if found.cause:
        tests = tuple(one.test for one in found.set_apart)
        known = replace(known, failing=failing or tests)
        return replace(known, outcome="not_a_code_fault", reason=found.cause, detail=found.reason)
    if not failing:
        return replace(known, outcome="nothing_to_heal", detail="every test passes here")
    if not settings.ci.new_only:
        return known
    say("running the failing tests at the base commit")
    old = await find_old_failures(reproduced, checkout)
    command = reproduced.suite.command
    if len(old) == len(failing) or len(old) > MOST_LEFT_OUT or (old and not (command and command.is_pytest)):
        detail = f"{len(old)} of {len(failing)}"
        return replace(
            refused_report(Refusal(reason="not_new", detail=detail)), failing=failing, verdict=verdict
        )
    return replace(known, old_failures=tuple(sorted(old)))


async def _heal(report: HealReport, task: Task, root: Path, wall: Sandbox, settings: Settings) -> HealReport:
    command: Sequence[str] = deselect_tests(task.test_command, frozenset(report.old_failures))
    result = await heal(root, test=command, settings=settings, sandbox=wall)
    edits = _edits(task, result)
    report = replace(
        report,
        outcome=result.outcome,
        reason=result.cause or "",
        detail=result.reason,
        run=result.run_id,
        diff=result.diff,
        edits=edits,
        confidence=result.confidence,
        evidence=result.evidence,
        warnings=result.warnings,
    )
    if result.outcome != "healed":
        return report
    change = GatedChange(
        files=tuple(sorted(result.candidate.files)) if result.candidate else (),
        lines=count_changed_lines(edits),
        confidence=result.confidence,
        evidence=result.evidence,
    )
    refusal = check_change_gates(change, settings)
    if refusal is not None:
        shut = refused_report(refusal)
        return replace(report, outcome=shut.outcome, reason=shut.reason, detail=shut.detail)
    certificate = find_run(settings.paths.home, result.run_id).path / CERTIFICATE
    return replace(report, certificate=certificate)


def _edits(task: Task, result: Result) -> tuple[LineEdit, ...]:
    if result.candidate is None or not result.diff:
        return ()
    return line_edits_between(task.files, overlay(task.files, result.candidate.files))


MOST_LEFT_OUT = 500
"""Tests that are left out by name: each is an argument of the test command."""
STILL_FAILS = ("failed", "error", "timeout")


@dataclass(frozen=True, kw_only=True)
class ReproducedFailure:
    """What the tests say of the code as it is.

    Attributes:
        suite: The tests, ready to run.
        verdict: How they end; `None` where one of them cannot end, so that they were not run.
        triage: Which failing tests are no fault of the code's.
    """

    suite: Suite
    verdict: Verdict | None
    triage: Triage


async def reproduce(task: Task, root: Path, sandbox: Sandbox, settings: Settings) -> ReproducedFailure:
    """Run the tests once, and look into those that fail.

    Raises:
        UsageError: The test command cannot start, or there are no tests.
        SandboxError: The wall failed.
    """
    interpreter = discover_programs(root, os.environ, task.language, settings.sandbox.python)
    endless = has_endless_loops(task.files)
    suite = await prepare_suite(task, sandbox, settings.sandbox, interpreter, run=not endless)
    if endless and (found := await triage_endless_tests(suite)).cause:
        return ReproducedFailure(suite=suite, verdict=None, triage=found)
    verdict = await check_candidate(Candidate(files={}, origin="user"), suite)
    found = await triage(suite, verdict) if verdict.failed else Triage()
    return ReproducedFailure(suite=suite, verdict=verdict, triage=found)


async def find_old_failures(reproduced: ReproducedFailure, checkout: Checkout) -> frozenset[str]:
    """The failing tests that fail at the base too; only they are run there.

    A test that the base does not have, or whose file is not in it, is new.

    Raises:
        SandboxError: The wall failed.
    """
    command, verdict = reproduced.suite.command, reproduced.verdict
    if command is None or verdict is None or not verdict.failed:
        return frozenset()
    files = base_files(checkout, reproduced.suite.task.files)
    at_base = command.copy_with_files(files)
    try:
        await at_base.collect()
    except UsageError:  # no such tests there, or no way to run them: all that fail are new
        return frozenset()
    outcomes = await at_base.run_selected(files, verdict.failed)
    return verdict.failed & {one.check_id for one in outcomes if one.status in STILL_FAILS}


def deselect_tests(command: tuple[str, ...], tests: frozenset[str]) -> tuple[str, ...]:
    """A pytest command that leaves some tests out."""
    return (*command, *(f"--deselect={test}" for test in sorted(tests)))


def split_deselected(command: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A command as it was before `deselect_tests`, and the tests that it leaves out."""
    words = [word for word in command if not word.startswith("--deselect=")]
    return tuple(words), tuple(word.removeprefix("--deselect=") for word in command if word not in words)
