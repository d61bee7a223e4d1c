"""Reaching the verdict on a candidate."""

from __future__ import annotations

import ast
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from suture.core.records import (
    Candidate,
    Check,
    CheckOutcome,
    Counterexample,
    Evidence,
    Task,
    Verdict,
    VerdictNote,
)
from suture.core.settings import SandboxSettings
from suture.judge.extraction.program_plans import TaskNames, plan_program
from suture.judge.failures import truncate_output
from suture.judge.protected_files import apply_allowed_files
from suture.judge.split.nonce_runner import run_with_nonce
from suture.judge.split.split_runner import ProgramOutcome, SplitRunner
from suture.judge.suite import Suite
from suture.project.python_source.parsing import parse_module
from suture.project.workspace import decode_text
from suture.sandbox import Sandbox
from suture.sandbox.packages import PackagesRefused

EVIDENCE_ORDER: tuple[Evidence, ...] = ("split", "nonce", "report", "exit_status")
PACKAGES = "its packages are installed"
"""The id of the check that a candidate's packages can be installed."""


@dataclass(frozen=True, kw_only=True)
class GradedOutcome:
    """The outcome of a hidden test program.

    Attributes:
        outcome: The outcome of the program as a single check.
        cpu_s: CPU seconds that the candidate used; `None` if it shared a process with the tests, or if the
            sandbox does not measure it.
    """

    outcome: CheckOutcome
    cpu_s: float | None = None

    @property
    def passed(self) -> bool:
        """Whether the program passed."""
        return self.outcome.passed


async def check_candidate(candidate: Candidate, suite: Suite, *, wall_s: float | None = None) -> Verdict:
    """Judge a candidate. Several candidates may be judged at the same time.

    Args:
        candidate: The candidate to judge.
        suite: What the candidate must pass.
        wall_s: Seconds for each function-level check; the setting `check_timeout_s` by default.

    Raises:
        UsageError: A path of the candidate leaves the project.
        PrerequisiteError: The candidate asks for packages and their index cannot be reached.
        SandboxError: The sandbox failed.
    """
    refused = suite.vet(candidate) if suite.vet is not None else None
    if refused is not None:
        return refused
    started_s, ran_s = time.monotonic(), 0.0
    files, notes = apply_allowed_files(candidate, suite)
    try:
        suite, files = await suite.install_packages(files)
    except PackagesRefused as fault:
        return _refuse_packages(candidate, fault)
    outcomes: list[CheckOutcome] = []
    outputs: list[str] = []
    if suite.calls is not None:
        results, output = await suite.calls.judge(suite.task.checks, files, wall_s)
        outcomes += _state_facts_once(suite.task.checks, results)
        outputs.append(truncate_output(output))
    elif suite.task.checks:
        names = _names(suite, files)
        judged, output, _ = await _judge(
            suite.task.checks, files, suite.sandbox, suite.settings, names, wall_s
        )
        outcomes += judged
        outputs.append(output)
    if suite.command is not None:
        run = await suite.command.run(files)
        outcomes += run.outcomes
        ran_s = run.wall_s
        outputs.append(run.output)
        notes += run.notes
    if suite.smoke is not None:
        smoke_run = await suite.smoke.run(files)
        outcomes += smoke_run.outcomes
        outputs.append(smoke_run.output)
        notes += smoke_run.notes
    return Verdict(
        candidate=candidate.hash,
        outcomes=tuple(outcomes),
        evidence=max((o.evidence for o in outcomes), key=EVIDENCE_ORDER.index, default="split"),
        output="\n".join(text for text in outputs if text),
        wall_s=max(time.monotonic() - started_s, ran_s),
        notes=(*notes, *_note_live_objects(outcomes, suite.task.checks)),
    )


async def run_programs(
    candidate: Candidate, suite: Suite, programs: Sequence[str], wall_s: float
) -> tuple[ProgramOutcome, ...]:
    """Run programs that are no checks, such as questions, on a candidate by the split verdict.

    Args:
        candidate: The candidate.
        suite: The suite that judges the candidate; its checks are not run.
        programs: Python sources that use the task's module. In other languages the result is always an error.
        wall_s: The time limit of each program in seconds.

    Raises:
        SandboxError: The sandbox failed.
    """
    if suite.calls is not None or (suite.vet is not None and suite.vet(candidate) is not None):
        return (ProgramOutcome(status="error"),) * len(programs)
    files, _ = apply_allowed_files(candidate, suite)
    names = _names(suite, files)
    async with SplitRunner(suite.sandbox, suite.settings, files, names.module, wall_s) as runner:
        unloadable = await runner.load()
        if unloadable is not None:
            return (unloadable,) * len(programs)
        plans = [plan_program(text, names) for text in programs]
        return tuple(
            [
                ProgramOutcome(status="error", live_reason=plan.live)
                if plan.live
                else await runner.try_program(plan)
                for plan in plans
            ]
        )


async def grade_program(
    source: str,
    program: str,
    sandbox: Sandbox,
    settings: SandboxSettings,
    *,
    entry_point: str | None = None,
    files: Mapping[str, bytes] | None = None,
    module: str = "solution.py",
    wall_s: float | None = None,
    cpu_s: float | None = None,
    own: Collection[str] | None = None,
) -> GradedOutcome:
    """Judge a candidate by a whole hidden test program, for the evaluator and never inside a run.

    Args:
        source: The candidate's module as source.
        program: The test program, such as HumanEval's `check` and its call.
        sandbox: Runs programs.
        settings: The sandbox limits.
        entry_point: The function or class under test; a candidate cannot turn a function into a class.
        files: Other files beside the module.
        module: The module's path.
        wall_s: The time limit in seconds; the setting `check_timeout_s` by default.
        cpu_s: CPU seconds for the candidate; limited only by the clock by default.
        own: Paths from which tests may import; all of `files` by default.
    """
    hidden = Check(id="hidden tests", provenance="oracle", source=program)
    project = {**(files or {}), module: source.encode("utf-8", "surrogateescape")}
    is_class = entry_point is not None and entry_point[:1].isupper() and "_" not in entry_point
    functions = frozenset({entry_point} if entry_point and not is_class else ())
    imported = tuple(files or () if own is None else own)
    names = TaskNames(files=imported, module=module, functions=functions)
    (outcome,), _, used_s = await _judge((hidden,), project, sandbox, settings, names, wall_s, cpu_s)
    return GradedOutcome(outcome=outcome, cpu_s=used_s if outcome.evidence == "split" else None)


def _refuse_packages(candidate: Candidate, fault: PackagesRefused) -> Verdict:
    fact = Counterexample(
        check_id=PACKAGES,
        call="its packages",
        exception=fault.reason,
        expected="packages that can be installed",
        code="packages_refused",
    )
    outcome = CheckOutcome(check_id=PACKAGES, status="error", counterexample=fact)
    return Verdict(candidate=candidate.hash, outcomes=(outcome,), evidence="nonce", output=fault.reason)


def _module(task: Task, files: Mapping[str, bytes]) -> str:
    if task.entry_point is None or (task.module in files and not task.allows_more_files):
        return task.module
    requested = [path for path in task.modules if path in files]
    for path, content in {path: files[path] for path in (*requested, *files)}.items():
        if path.endswith(".py") and _defines(decode_text(content), task.entry_point):
            return path
    return task.module


def _names(suite: Suite, files: Mapping[str, bytes]) -> TaskNames:
    """Return what the checks may import.

    A module whose path the candidate chose offers only the names that the task asks for.
    """
    task, module = suite.task, _module(suite.task, files)
    only = None
    if module not in task.modules and module not in task.files:
        only = suite.functions | ({task.entry_point} if task.entry_point else set())
    return TaskNames(
        files=(*task.files, *task.modules),
        module=module,
        functions=suite.functions,
        classes=suite.classes,
        only=only,
        beside=tuple(path for path in task.modules if path in files and path != module),
    )


def _defines(source: str, name: str) -> bool:
    tree = parse_module(source)
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return tree is not None and any(isinstance(node, kinds) and node.name == name for node in tree.body)


async def _judge(
    checks: Sequence[Check],
    files: Mapping[str, bytes],
    sandbox: Sandbox,
    settings: SandboxSettings,
    names: TaskNames,
    wall_s: float | None = None,
    cpu_s: float | None = None,
) -> tuple[list[CheckOutcome], str, float | None]:
    outcomes: list[CheckOutcome] = []
    async with SplitRunner(sandbox, settings, files, names.module, wall_s, cpu_s) as runner:
        unloadable = await runner.load()
        for check in checks:
            if unloadable is not None:
                # One fact is enough, because it is the same for every check.
                outcomes.append(_outcome(check, unloadable, "split", with_fact=not outcomes))
                continue
            program = plan_program(check.source, names)
            result = ProgramOutcome(status="error", live_reason=program.live)
            if not program.live:
                result = await runner.try_program(program)
            evidence: Evidence = "nonce" if result.live_reason else "split"
            if result.live_reason:
                result = await run_with_nonce(sandbox, settings, files, names.module, check.source, wall_s)
            outcomes.append(_outcome(check, result, evidence))
    return outcomes, truncate_output(runner.output.decode("utf-8", "replace")), runner.candidate_cpu_s


def _state_facts_once(checks: Sequence[Check], results: Sequence[ProgramOutcome]) -> list[CheckOutcome]:
    """Return the outcomes of calls; a fact that is the same for every check is stated once."""
    pairs = zip(checks, results, strict=True)
    return [_outcome(check, r, "split", with_fact=r not in results[:n]) for n, (check, r) in enumerate(pairs)]


def _outcome(
    check: Check, result: ProgramOutcome, evidence: Evidence, *, with_fact: bool = True
) -> CheckOutcome:
    counterexample = None
    if result.status != "passed" and with_fact:
        fact = {key: value for key, value in result.fact.items() if value is not None}
        counterexample = Counterexample(check_id=check.id, **fact)
    return CheckOutcome(
        check_id=check.id,
        status=result.status,
        provenance=check.provenance,
        trust=check.trust,
        evidence=evidence,
        counterexample=counterexample,
    )


def _note_live_objects(outcomes: Sequence[CheckOutcome], checks: Sequence[Check]) -> tuple[VerdictNote, ...]:
    own = {check.id for check in checks}
    live = [o.check_id for o in outcomes if o.evidence == "nonce" and o.check_id in own]
    if not live:
        return ()
    return (VerdictNote(code="live_objects", subjects=tuple(live)),)
