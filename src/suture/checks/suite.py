"""A task's checks as one suite, and the verdict on a candidate."""

from __future__ import annotations

import ast
import posixpath
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from suture.checks.calls.calling import Calls
from suture.checks.command.libraries import libraries_of, takes_a_librarys_place
from suture.checks.command.test_command import PLUGIN, TestCommand
from suture.checks.projects.smoke import Smoke
from suture.checks.sources.needed_names import plan_program, promised_classes, promised_functions
from suture.checks.split.nonce import run_in_one_process
from suture.checks.split.split_runner import ProgramOutcome, SplitRunner
from suture.languages import LANGUAGES, Interpreter, is_source
from suture.pysource.parsing import parsed
from suture.records import Candidate, Check, CheckOutcome, Counterexample, Evidence, Task, Verdict
from suture.sandbox import Sandbox
from suture.settings import SandboxSettings
from suture.workspace import DEFAULT_PROTECTED, is_protected, overlay, text_of

EVIDENCE: tuple[Evidence, ...] = ("split", "nonce", "report", "exit_status")
LONGEST_OUTPUT = 8000
OF_PYTEST = frozenset(
    (
        "_pytest",
        "colorama",
        "exceptiongroup",
        "iniconfig",
        "packaging",
        "pluggy",
        "pygments",
        "pytest",
        "tomli",
    )
)
"""Pytest and what it requires, in all versions since 6."""


@dataclass(frozen=True, kw_only=True)
class Suite:
    """What every candidate of a task must pass.

    Attributes:
        task: The task.
        sandbox: Where programs run.
        settings: The group `sandbox`: time and memory for each program.
        command: The task's test command, where it has one; its tests are known.
        functions: Names that the statement shows to be functions.
        classes: Names that the statement or the task's own code shows to be classes.
        test_files: The project's files that hold the command's tests, whatever they are called.
        libraries: What these import of the environment.
        vet: Says of a candidate that must not be run what its verdict is; `None` for all others.
        smoke: Starts the project that the task asks for, where it asks for one.
        calls: Judges the checks where they are calls in another language than Python.
    """

    task: Task
    sandbox: Sandbox
    settings: SandboxSettings
    command: TestCommand | None = None
    functions: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()
    test_files: tuple[str, ...] = ()
    libraries: frozenset[str] = frozenset()
    vet: Callable[[Candidate], Verdict | None] | None = None
    smoke: Smoke | None = None
    calls: Calls | None = None


@dataclass(frozen=True, kw_only=True)
class Graded(CheckOutcome):
    """The outcome of a hidden test program.

    Attributes:
        cpu_s: CPU seconds that the candidate took; `None` where it ran in one process with the tests, or
            where the wall does not tell.
    """

    cpu_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class _Names:
    """What the task says of names, whatever a candidate makes of them."""

    own: tuple[str, ...]
    functions: frozenset[str]
    classes: frozenset[str] = frozenset()
    importable: frozenset[str] | None = None
    beside: tuple[str, ...] = ()


async def prepare_suite(
    task: Task,
    sandbox: Sandbox,
    settings: SandboxSettings,
    interpreter: Interpreter | None = None,
    *,
    run: bool = False,
) -> Suite:
    """Make a task's checks ready; the tests of its command are collected before any candidate is there.

    Args:
        task: What is wanted.
        sandbox: Where programs run.
        settings: The group `sandbox`: time and memory for each program.
        interpreter: What `python` means in the task's test command; not needed where there is none.
        run: Whether the command is run at once, as its verdict on the task's own files will be asked for.

    Raises:
        ValueError: The task holds a check of provenance `oracle`, which has no place inside a run.
        UsageError: The test command cannot start, or there are no tests.
        SandboxError: The wall failed, or none can be built here.
    """
    if any(check.provenance == "oracle" for check in task.checks):
        raise ValueError("an oracle check was handed to a run; only the evaluator may hold one")
    command = None
    if task.test_command:
        if interpreter is None:
            raise ValueError("a task with a test command needs an interpreter")
        command = TestCommand(task, sandbox, settings, interpreter)
        await command.collect(run=run)
    smoke = None
    if task.project is not None and task.project.kind is not None:
        if interpreter is None:
            raise ValueError("a task with a project needs an interpreter")
        smoke = Smoke(task=task, sandbox=sandbox, settings=settings, interpreter=interpreter)
    calls = None
    if task.checks and LANGUAGES[task.language].calls is not None:
        if interpreter is None:
            raise ValueError("a task with calls in another language needs an interpreter")
        calls = Calls(task=task, sandbox=sandbox, settings=settings, interpreter=interpreter)
    return Suite(
        task=task,
        sandbox=sandbox,
        settings=settings,
        command=command,
        functions=promised_functions(task.statement),
        classes=promised_classes(task.statement, *_own_sources(task)),
        test_files=command.test_files if command else (),
        libraries=libraries_of(task.files, command.test_files, command.interpreter)
        if command
        else frozenset(),
        smoke=smoke,
        calls=calls,
    )


def refused_files(candidate_files: Mapping[str, str], suite: Suite) -> tuple[str, ...]:
    """The paths that a candidate must not write, because they could change the verdict; sorted.

    Args:
        candidate_files: Path -> text, such as `Candidate.files`.
        suite: The suite that judges it.
    """
    task = suite.task
    globs = task.protected or DEFAULT_PROTECTED
    refused = []
    for path in candidate_files:
        plain = posixpath.normpath(path)
        elsewhere = bool(task.only) and not is_protected(path, task.only)
        as_text = not LANGUAGES[task.language].parsed and task.project is None
        foreign = as_text and not is_source(plain, task.language)
        guarded = elsewhere or foreign or is_protected(path, globs) or _shadows(plain, task)
        roots = suite.command.interpreter.source_roots if suite.command else ()
        guarded = guarded or takes_a_librarys_place(plain, task.files, suite.libraries, roots)
        if plain in suite.test_files or (guarded and plain not in task.modules):
            refused.append(path)
    return tuple(sorted(refused))


async def check_candidate(candidate: Candidate, suite: Suite, *, wall_s: float | None = None) -> Verdict:
    """Judge a candidate. Several may be judged at the same time.

    Args:
        candidate: What is judged.
        suite: What it must pass.
        wall_s: Seconds for each function-level check; the settings' `check_wall_s` where it is left out.

    Raises:
        UsageError: A path of the candidate leaves the project.
        SandboxError: The wall failed.
    """
    refused = suite.vet(candidate) if suite.vet is not None else None
    if refused is not None:
        return refused
    started_s, ran_s = time.monotonic(), 0.0
    files, notes = _laid_over(candidate, suite)
    outcomes: list[CheckOutcome] = []
    outputs: list[str] = []
    if suite.calls is not None:
        results, output = await suite.calls.judge(suite.task.checks, files, wall_s)
        outcomes += _told_once(suite.task.checks, results)
        outputs.append(_cut(output))
    elif suite.task.checks:
        module = _module(suite.task, files)
        names = _Names(
            own=(*suite.task.files, *suite.task.modules),
            functions=suite.functions,
            classes=suite.classes,
            importable=_importable(suite, module),
            beside=_beside(suite.task, files, module),
        )
        judged, output, _ = await _judge(
            suite.task.checks, files, module, suite.sandbox, suite.settings, names, wall_s
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
        looked = await suite.smoke.run(files)
        outcomes += looked.outcomes
        outputs.append(looked.output)
        notes += looked.notes
    return Verdict(
        candidate=candidate.hash,
        outcomes=tuple(outcomes),
        evidence=max((o.evidence for o in outcomes), key=EVIDENCE.index, default="split"),
        output="\n".join(text for text in outputs if text),
        wall_s=max(time.monotonic() - started_s, ran_s),
        notes=(*notes, *_live_notes(outcomes, suite.task.checks)),
    )


async def rule_on(
    candidate: Candidate, suite: Suite, programs: Sequence[str], wall_s: float
) -> tuple[ProgramOutcome, ...]:
    """Run programs that are no checks, such as questions, on a candidate by the split verdict.

    Args:
        candidate: What is judged.
        suite: The suite that judges it; its checks are not run.
        programs: Python sources that use the task's module; of another language nothing is known so.
        wall_s: Seconds for each.

    Raises:
        SandboxError: The wall failed.
    """
    if suite.calls is not None or (suite.vet is not None and suite.vet(candidate) is not None):
        return (ProgramOutcome(status="error"),) * len(programs)
    files, _ = _laid_over(candidate, suite)
    module = _module(suite.task, files)
    async with SplitRunner(suite.sandbox, suite.settings, files, module, wall_s) as runner:
        unloadable = await runner.load()
        if unloadable is not None:
            return (unloadable,) * len(programs)
        own = (*suite.task.files, *suite.task.modules)
        only, beside = _importable(suite, module), _beside(suite.task, files, module)
        plans = [
            plan_program(text, own, module, suite.functions, suite.classes, only=only, beside=beside)
            for text in programs
        ]
        return tuple(
            [
                ProgramOutcome(status="error", live=plan.live)
                if plan.live
                else await runner.try_program(plan)
                for plan in plans
            ]
        )


async def grade(
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
) -> Graded:
    """Judge a program by a whole hidden test program, for the evaluator; never inside a run.

    Args:
        source: The candidate's module.
        program: The test program, such as HumanEval's `check` and its call.
        sandbox: Where programs run.
        settings: The group `sandbox`: time and memory for each program.
        entry_point: What is under test; a candidate cannot make a class of a function.
        files: What else lies beside the module.
        module: The module's path.
        wall_s: Seconds for the program; the settings' `check_wall_s` where it is left out.
        cpu_s: CPU seconds for the candidate; no limit but the clock's where it is left out.
        own: Paths that are the task's own, from which tests may import; all of `files` where it is left out.
    """
    hidden = Check(id="hidden tests", provenance="oracle", source=program)
    project = {**(files or {}), module: source.encode("utf-8", "surrogateescape")}
    is_class = entry_point is not None and entry_point[:1].isupper() and "_" not in entry_point
    functions = frozenset({entry_point} if entry_point and not is_class else ())
    names = _Names(own=tuple(files or () if own is None else own), functions=functions)
    (outcome,), _, used_s = await _judge((hidden,), project, module, sandbox, settings, names, wall_s, cpu_s)
    return Graded(**vars(outcome), cpu_s=used_s if outcome.evidence == "split" else None)


def _laid_over(candidate: Candidate, suite: Suite) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """The project with the candidate in it; what could change the verdict stays the task's own."""
    refused = refused_files(candidate.files, suite)
    allowed = {path: text for path, text in candidate.files.items() if path not in refused}
    notes = tuple(f"{path} is protected: the candidate's version was left out" for path in refused)
    return overlay(suite.task.files, allowed), notes


def _shadows(path: str, task: Task) -> bool:
    # A new `json.py` in the project's root would be imported by the test runner in the real one's place; the
    # plugin that reports, which is given the key, also from a folder that the project puts on the path.
    stems = [part.removesuffix(".py") for part in path.split("/")]
    ours = stems[0] in sys.stdlib_module_names or stems[0] in OF_PYTEST or PLUGIN in stems
    return ours and path not in task.files


def _module(task: Task, files: Mapping[str, bytes]) -> str:
    if task.entry_point is None or (task.module in files and not task.several):
        return task.module
    asked = [path for path in task.modules if path in files]
    for path, content in {path: files[path] for path in (*asked, *files)}.items():
        if path.endswith(".py") and _defines(text_of(content), task.entry_point):
            return path
    return task.module


def _beside(task: Task, files: Mapping[str, bytes], module: str) -> tuple[str, ...]:
    """The other files that the task asks for by name and that are there: a check may mean names of each."""
    return tuple(path for path in task.modules if path in files and path != module)


def _importable(suite: Suite, module: str) -> frozenset[str] | None:
    """What a test may import from a module whose path a candidate chose: what the task asks for."""
    task = suite.task
    if module in task.modules or module in task.files:
        return None
    return suite.functions | ({task.entry_point} if task.entry_point else set())


def _own_sources(task: Task) -> list[str]:
    return [text_of(content) for path, content in task.files.items() if path.endswith(".py")]


def _defines(source: str, name: str) -> bool:
    tree = parsed(source)
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return tree is not None and any(isinstance(node, kinds) and node.name == name for node in tree.body)


async def _judge(
    checks: Sequence[Check],
    files: Mapping[str, bytes],
    module: str,
    sandbox: Sandbox,
    settings: SandboxSettings,
    names: _Names,
    wall_s: float | None = None,
    cpu_s: float | None = None,
) -> tuple[list[CheckOutcome], str, float | None]:
    outcomes: list[CheckOutcome] = []
    async with SplitRunner(sandbox, settings, files, module, wall_s, cpu_s) as runner:
        unloadable = await runner.load()
        for check in checks:
            if unloadable is not None:
                # One fact is enough: it is the same for every check.
                outcomes.append(_outcome(check, unloadable, "split", with_fact=not outcomes))
                continue
            program = plan_program(
                check.source,
                names.own,
                module,
                names.functions,
                names.classes,
                only=names.importable,
                beside=names.beside,
            )
            result = ProgramOutcome(status="error", live=program.live)
            if not program.live:
                result = await runner.try_program(program)
            evidence: Evidence = "nonce" if result.live else "split"
            if result.live:
                result = await run_in_one_process(sandbox, settings, files, module, check.source, wall_s)
            outcomes.append(_outcome(check, result, evidence))
    return outcomes, _cut(runner.output.decode("utf-8", "replace")), runner.candidate_cpu_s


def _cut(output: str) -> str:
    if len(output) <= LONGEST_OUTPUT:
        return output
    return f"{output[: LONGEST_OUTPUT // 2]}\n[...]\n{output[-LONGEST_OUTPUT // 2 :]}"


def _told_once(checks: Sequence[Check], results: Sequence[ProgramOutcome]) -> list[CheckOutcome]:
    """The outcomes of calls; a fact that is the same for every check is told once."""
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


def _live_notes(outcomes: Sequence[CheckOutcome], checks: Sequence[Check]) -> tuple[str, ...]:
    own = {check.id for check in checks}
    live = [o.check_id for o in outcomes if o.evidence == "nonce" and o.check_id in own]
    if not live:
        return ()
    return (f"ran in the candidate's own process, because they need live objects: {'; '.join(live)}",)
