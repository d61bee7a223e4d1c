"""Judging a candidate: running everything that it must pass, and combining the outcomes into one verdict."""

from __future__ import annotations

import ast
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

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
from suture.judge.extraction.program_plans import ProgramPlan, TaskNames, plan_program
from suture.judge.failures import truncate_output
from suture.judge.protected_files import apply_allowed_files
from suture.judge.split.call_runner import run_with_nonce
from suture.judge.split.split_runner import ProgramOutcome, SplitRunner
from suture.judge.suite import Suite
from suture.project.python_source.parsing import parse_module
from suture.project.workspace import decode_text, is_test_file
from suture.sandbox import Sandbox
from suture.sandbox.packages import PackagesRefused

EVIDENCE_ORDER: tuple[Evidence, ...] = ("split", "nonce", "report", "exit_status")
"""From the strongest evidence to the weakest. A verdict is worth as much as its weakest outcome."""
PACKAGES_CHECK_ID = "its packages are installed"
"""The id of the check that a candidate's packages can be installed."""


@dataclass(frozen=True, kw_only=True)
class GradedOutcome:
    """The outcome of a hidden test program.

    Attributes:
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
    refusal = suite.vet(candidate) if suite.vet is not None else None
    if refusal is not None:
        return refusal
    started_s, command_wall_s = time.monotonic(), 0.0
    files, notes = apply_allowed_files(candidate, suite)
    try:
        suite, files = await suite.install_packages(files)
    except PackagesRefused as fault:
        return _refuse_packages(candidate, fault)
    outcomes: list[CheckOutcome] = []
    outputs: list[str] = []
    depends_on_order = False
    if suite.calls is not None:
        results, output, depends_on_order = await suite.calls.judge(suite.task.checks, files, wall_s)
        for position, (check, result) in enumerate(zip(suite.task.checks, results, strict=True)):
            is_new = result not in results[:position]  # only the first of several equal results has a fact
            outcomes.append(_make_outcome(check, result, "split", with_fact=is_new))
        outputs.append(truncate_output(output))
    elif suite.task.checks:
        names = _make_task_names(suite, files)
        check_outcomes, output, _, depends_on_order = await _run_checks(
            suite.task.checks,
            files,
            suite.sandbox,
            suite.settings,
            names,
            wall_s,
            repeats_in_other_order=True,
        )
        outcomes += check_outcomes
        outputs.append(output)
    if depends_on_order:
        notes = (*notes, VerdictNote(code="answers_by_order"))
    if suite.diagnostics is not None:
        tool_run = await suite.diagnostics.run(files)
        outcomes += tool_run.outcomes
        command_wall_s += tool_run.wall_s
        outputs.append(tool_run.output)
        notes += tool_run.notes
        notes += (VerdictNote(code="no_guard_tests"),) if suite.command is None else ()
    if suite.command is not None:
        run = await suite.run_command(files)
        outcomes += (_attribute_outcome(outcome, suite.task) for outcome in run.outcomes)
        command_wall_s += run.wall_s
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
        evidence=find_weakest_evidence(outcomes),
        output="\n".join(text for text in outputs if text),
        wall_s=max(time.monotonic() - started_s, command_wall_s),  # the command's run may be an earlier one
        notes=(*notes, *_note_live_objects(outcomes, suite.task.checks)),
    )


def find_weakest_evidence(outcomes: Iterable[CheckOutcome]) -> Evidence:
    """Return the evidence of a verdict with these outcomes."""
    return max((outcome.evidence for outcome in outcomes), key=EVIDENCE_ORDER.index, default="split")


async def run_programs(
    candidate: Candidate, suite: Suite, programs: Sequence[str], wall_s: float
) -> tuple[ProgramOutcome, ...]:
    """Run programs that are not checks on a candidate, by the split verdict.

    Their answers are compared with those of other candidates; nothing passes or fails.

    Args:
        suite: The suite that judges the candidate; its checks are not run.
        programs: Python sources that use the task's module. In other languages the result is always an error.
    """
    if suite.calls is not None or (suite.vet is not None and suite.vet(candidate) is not None):
        return (ProgramOutcome(status="error"),) * len(programs)
    files, _ = apply_allowed_files(candidate, suite)
    names = _make_task_names(suite, files)
    async with SplitRunner(suite.sandbox, suite.settings, files, names.module, wall_s) as runner:
        load_failure = await runner.load()
        if load_failure is not None:
            return (load_failure,) * len(programs)
        outcomes: list[ProgramOutcome] = []
        for program in programs:
            outcomes.append(await _try_program(runner, plan_program(program, names)))
        return tuple(outcomes)


async def _try_program(runner: SplitRunner, plan: ProgramPlan) -> ProgramOutcome:
    """Run a program in the split runner. If it needs live objects, return an error without running it."""
    if plan.live_reason:
        return ProgramOutcome(status="error", live_reason=plan.live_reason)
    return await runner.try_program(plan)


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
    importable: Collection[str] | None = None,
) -> GradedOutcome:
    """Judge a candidate by a whole hidden test program, for the evaluator and never inside a run.

    Args:
        source: The candidate's module as source.
        program: The test program, such as HumanEval's `check` and its call.
        sandbox: Runs programs.
        settings: The sandbox limits.
        entry_point: The function or class under test; a candidate cannot turn a function into a class.
        files: The other files of the project.
        module: The module's path.
        wall_s: The time limit in seconds; the setting `check_timeout_s` by default.
        cpu_s: CPU seconds for the candidate; limited only by the clock by default.
        importable: Paths from which tests may import; all of `files` by default.
    """
    hidden_check = Check(id="hidden tests", provenance="oracle", source=program)
    project = {**(files or {}), module: source.encode("utf-8", "surrogateescape")}
    # A name such as `Account` is a class by convention; anything else must stay a function.
    is_class = entry_point is not None and entry_point[:1].isupper() and "_" not in entry_point
    functions = frozenset({entry_point} if entry_point and not is_class else ())
    importable_paths = tuple(files or () if importable is None else importable)
    names = TaskNames(files=importable_paths, module=module, functions=functions)
    (outcome,), _, used_cpu_s, _ = await _run_checks(
        (hidden_check,), project, sandbox, settings, names, wall_s, cpu_s
    )
    return GradedOutcome(outcome=outcome, cpu_s=used_cpu_s if outcome.evidence == "split" else None)


def _attribute_outcome(outcome: CheckOutcome, task: Task) -> CheckOutcome:
    """Return a test's outcome, with the provenance `smoke` if the test belongs to one of Suture's skeletons."""
    is_own = task.project is not None and any(
        is_test_file(path) and outcome.check_id.startswith(path) for path in task.project.scaffold
    )
    return replace(outcome, provenance="smoke") if is_own else outcome


def _refuse_packages(candidate: Candidate, fault: PackagesRefused) -> Verdict:
    fact = Counterexample(
        check_id=PACKAGES_CHECK_ID,
        call="its packages",
        exception=fault.reason,
        expected="packages that can be installed",
        code="packages_refused",
    )
    outcome = CheckOutcome(check_id=PACKAGES_CHECK_ID, status="error", counterexample=fact)
    return Verdict(candidate=candidate.hash, outcomes=(outcome,), evidence="nonce", output=fault.reason)


def _find_module(task: Task, files: Mapping[str, bytes]) -> str:
    """Return the path of the file that defines the entry point; the task's module if none does.

    If the task lets the candidate add files, the candidate may have put the entry point into any of them.
    """
    if task.entry_point is None or (task.module in files and not task.allows_more_files):
        return task.module
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    task_modules = [path for path in task.modules if path in files]
    for path in (*task_modules, *files):  # the modules that the task names come first
        tree = parse_module(decode_text(files[path])) if path.endswith(".py") else None
        for node in tree.body if tree is not None else ():
            if isinstance(node, definitions) and node.name == task.entry_point:
                return path
    return task.module


def _make_task_names(suite: Suite, files: Mapping[str, bytes]) -> TaskNames:
    """Return what the checks may import.

    A module whose path the candidate chose offers only the names that the task asks for.
    """
    task, module = suite.task, _find_module(suite.task, files)
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


async def _run_checks(
    checks: Sequence[Check],
    files: Mapping[str, bytes],
    sandbox: Sandbox,
    settings: SandboxSettings,
    names: TaskNames,
    wall_s: float | None = None,
    cpu_s: float | None = None,
    *,
    repeats_in_other_order: bool = False,
) -> tuple[list[CheckOutcome], str, float | None, bool]:
    """Run function-level checks and return (outcomes, output, cpu_s, depends_on_order).

    `cpu_s` are the CPU seconds that the candidate used, as far as they are known. `depends_on_order` is whether the
    answers of a candidate that passes depend on the order of the calls.

    Args:
        repeats_in_other_order: Whether to make the calls again in another order.
    """
    outcomes: list[CheckOutcome] = []
    output, depends_on_order = b"", False
    async with SplitRunner(sandbox, settings, files, names.module, wall_s, cpu_s) as runner:
        load_failure = await runner.load()
        for check in checks:
            if load_failure is not None:
                # One fact is enough, because it is the same for every check.
                outcomes.append(_make_outcome(check, load_failure, "split", with_fact=not outcomes))
                continue
            plan = plan_program(check.source, names)
            result = await _try_program(runner, plan)
            evidence: Evidence = "split"
            if result.live_reason:  # from the plan, or because the judge noticed it while the test ran
                evidence = "nonce"
                result = await run_with_nonce(sandbox, settings, files, names.module, plan, wall_s)
            outcomes.append(_make_outcome(check, result, evidence))
        if repeats_in_other_order and all(outcome.passed for outcome in outcomes):
            await runner.stop_candidate()
            output = runner.output  # without that of the calls in another order
            depends_on_order = await runner.find_order_dependence()
    output = output or runner.output
    return (
        outcomes,
        truncate_output(output.decode("utf-8", "replace")),
        runner.candidate_cpu_s,
        depends_on_order,
    )


def _make_outcome(
    check: Check, result: ProgramOutcome, evidence: Evidence, *, with_fact: bool = True
) -> CheckOutcome:
    """Return the outcome of a check, with the fact as its counterexample if it did not pass."""
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
    ids = {check.id for check in checks}  # the command's own tests may have this evidence too
    subjects = tuple(
        outcome.check_id for outcome in outcomes if outcome.evidence == "nonce" and outcome.check_id in ids
    )
    return (VerdictNote(code="live_objects", subjects=subjects),) if subjects else ()
