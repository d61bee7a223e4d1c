"""Make the calls of the tests, and calls near them, on the code before and after a change.

The tests' calls are recorded while the tests that the change fixes run on the changed code, or are read from the
task's asserts. Only calls whose arguments are literals can be made again.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from suture.core.records import Candidate, Task
from suture.judge.differential.behaviour_comparison import (
    iter_literal_calls,
    make_call_program,
    read_answer,
    render_call,
)
from suture.judge.differential.input_generation import read_arguments
from suture.judge.differential.recorded_calls import PlannedCall, get_function_name
from suture.judge.runners.test_command import TestCommand
from suture.judge.suite import Suite
from suture.judge.trials.changed_code import ChangedCode
from suture.judge.trials.command_trials import decode_answers
from suture.judge.trials.process_reports import ExecutionReport
from suture.judge.trials.spectrum import is_call
from suture.judge.trials.trial_records import ObservedCall, Proposal
from suture.judge.trials.trial_worker import TrialWorker
from suture.judge.trials.tuning import CALL_CPU_S, CALL_WORKER_SPARE_S
from suture.judge.tuning import EXAMPLE_CALL_TIMEOUT_S
from suture.judge.verdicts import run_programs
from suture.project.languages import find_search_command
from suture.project.workspace import decode_text, overlay_candidate
from suture.sandbox import lend_pytest

EXCEPTION_MARK = "!"
NO_EFFECT_MARK = "?"
OWN_TYPE = re.compile(r"~(\w+) ")
TIMED_OUT = "!timeout"
MAX_RECORDED_CALLS = 60
"""Number of recorded calls of a test from which some may be missing: `MAX_CALLS` of `trials/inside/line_tracer.py`."""
OPAQUE = " at ?"
"""How `trials/inside/function_calls.py` marks an answer, and an object in it whose content is not visible."""


@dataclass(frozen=True, kw_only=True)
class ObservedAnswer:
    """What one version of the code answers to a call.

    Attributes:
        key: Equal for equal answers, including the arguments after the call.
        content: The answer as data, as far as it is known; equal numbers of different types are equal here.
        value: The returned value as text; empty for an exception, and if it is not known.
        raises: Whether the call raised an exception.
        own_type: The name of the project's class, if the value is a number or a string of such a class.
        changed_arguments: Positions of the arguments that the call changed, of those that are literals.
    """

    key: str
    content: tuple[Any, ...] = ()
    value: str = ""
    raises: bool = False
    own_type: str = ""
    changed_arguments: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ObservedAnswers:
    """What one version of the code answers to some calls.

    Attributes:
        answers: One for each call; `None` for one that shows nothing. Those at the end may be missing.
        pairs: Numbers of two calls -> whether their values have the same `repr`, and whether they are equal.
    """

    answers: tuple[ObservedAnswer | None, ...] = ()
    pairs: Mapping[tuple[int, int], tuple[bool, bool]] = field(default_factory=dict)


class CodeVersion(Protocol):
    """One version of the code, whose functions can be called in the sandbox."""

    async def call(self, calls: Sequence[PlannedCall]) -> ObservedAnswers:
        """Return the answers to the calls."""
        ...


@dataclass(frozen=True, kw_only=True)
class ComparedVersions:
    """The code before and after a change, ready to be called.

    Attributes:
        examples: Calls that the tests make, each once.
        unrepeatable: (path, function) of the tests' calls whose arguments are not literals, or whose object or module
            was changed before; `None` if not all calls are known.
        repeated: Calls that the tests make more than once; `None` if this is not known, or if each call has its own
            process.
    """

    before: CodeVersion
    after: CodeVersion
    examples: tuple[PlannedCall, ...]
    unrepeatable: frozenset[tuple[str, str]] | None = None
    repeated: frozenset[PlannedCall] | None = None


@dataclass(kw_only=True)
class RecordedExamples:
    """The calls of the fixed tests on the changed code, which all comparisons of one change share.

    Attributes:
        calls: `None` until they are recorded.
        code: The changed code, if it is open: the calls are recorded and made there.
    """

    calls: Sequence[ObservedCall] | None = None
    code: ChangedCode | None = None


@asynccontextmanager
async def open_versions(
    candidate: Candidate,
    suite: Suite,
    fixed: Sequence[str],
    timeout_s: float,
    recorded: RecordedExamples | None = None,
) -> AsyncIterator[ComparedVersions | None]:
    """Start both versions of the code; yield `None` if its functions cannot be called.

    Args:
        fixed: Ids of the checks that fail before the change and pass after it.
        timeout_s: Wall-clock seconds that the processes may live.
        recorded: Calls of an earlier comparison of the same change; otherwise they are recorded into it.
    """
    task = suite.task
    after_files = overlay_candidate(task.files, candidate.files)
    if suite.command is None and task.checks and suite.calls is None:
        fixed_checks = [check for check in task.checks if check.id in fixed]
        calls = dict.fromkeys(("", *call) for call in iter_literal_calls(fixed_checks, task))
        original = Candidate(files={}, origin="user")
        yield ComparedVersions(
            before=_SplitVersion(candidate=original, suite=suite),
            after=_SplitVersion(candidate=candidate, suite=suite),
            examples=tuple(calls),
        )
        return
    commands = make_pytest_command(suite, task.files), make_pytest_command(suite, after_files)
    if commands[0] is None or commands[1] is None:
        yield None
        return
    recorded = recorded or RecordedExamples()
    async with _open_trial_versions(
        commands[0], commands[1], task, candidate, fixed, timeout_s, recorded
    ) as versions:
        yield versions


def make_pytest_command(suite: Suite, files: Mapping[str, bytes]) -> TestCommand | None:
    """Return the test command on some files, if pytest can run it."""
    command, test_command = suite.command, suite.task.test_command
    if command is None:
        return None
    argv = find_search_command(test_command, suite.task.files)
    if argv is None:
        return None
    task = replace(suite.task, test_command=argv, files=files)
    interpreter = lend_pytest(command.interpreter) or command.interpreter
    return TestCommand(task, suite.sandbox, suite.settings, interpreter)


@dataclass(frozen=True, kw_only=True)
class _SplitVersion:
    """Calls functions of a candidate by the split verdict, for a task without a test command."""

    candidate: Candidate
    suite: Suite

    async def call(self, calls: Sequence[PlannedCall]) -> ObservedAnswers:
        """Return the answers; values of different programs are not compared with each other."""
        programs = [make_call_program(render_call(name, arguments)) for _, name, arguments in calls]
        timeout_s = min(EXAMPLE_CALL_TIMEOUT_S, self.suite.settings.check_timeout_s)
        answers: list[ObservedAnswer | None] = []
        for result in await run_programs(self.candidate, self.suite, programs, timeout_s):
            answer = read_answer(result) if result.status != "timeout" else None
            if answer is None:
                answers.append(None)
                continue
            raises = not result.digest
            value = "" if raises else answer.text
            content = _read_literal(value)
            answers.append(ObservedAnswer(key=answer.key, content=content, value=value, raises=raises))
        return ObservedAnswers(answers=tuple(answers))


class _TrialVersion:
    """Calls functions of one version of a project in a pytest process of trials.

    Args:
        use_worker: Lends a process that is started.
        path: Path of a file that the process may replace.
        timeout_s: Wall-clock seconds after which no further call is made.
    """

    def __init__(
        self, use_worker: Callable[[], AbstractAsyncContextManager[TrialWorker]], path: str, timeout_s: float
    ) -> None:
        self._use_worker, self._number = use_worker, 0
        self._unchanged = Proposal(path=path, edits=(), label="", score=1.0, operators=())
        self._end_s = time.monotonic() + timeout_s

    async def call(self, calls: Sequence[PlannedCall]) -> ObservedAnswers:
        """Make the calls, each within `CALL_CPU_S`."""
        self._number += 1
        left_s = max(0.0, self._end_s - time.monotonic())
        async with self._use_worker() as worker:
            report = await worker.call(self._unchanged, self._number, calls, CALL_CPU_S, left_s)
        texts = decode_answers(report.answers) if report is not None else None
        if not texts:
            return ObservedAnswers()
        answers = tuple(_parse_trial_answer(text, call[2]) for text, call in zip(texts, calls, strict=False))
        return ObservedAnswers(answers=answers, pairs=_parse_pairs(texts[len(calls) :]))


@asynccontextmanager
async def _open_trial_versions(
    before: TestCommand,
    after: TestCommand,
    task: Task,
    candidate: Candidate,
    fixed: Sequence[str],
    timeout_s: float,
    recorded: RecordedExamples,
) -> AsyncIterator[ComparedVersions | None]:
    changed = {path: text for path, text in sorted(candidate.files.items()) if path.endswith(".py")}
    old_texts = {path: decode_text(task.files[path]) for path in changed if path in task.files}
    if not old_texts:
        yield None
        return
    path = next(iter(old_texts))
    async with AsyncExitStack() as stack:
        worker = TrialWorker(before, old_texts, list(old_texts), timeout_s + CALL_WORKER_SPARE_S)
        stack.push_async_callback(worker.close)
        code = recorded.code or ChangedCode(after, changed)
        if recorded.code is None:
            stack.push_async_callback(code.close)
        await asyncio.gather(_start(worker, timeout_s), code.collect())
        if recorded.calls is None:
            reports = await code.trace(fixed)
            recorded.calls = [call for report in reports.values() for call in _read_calls(report)]
        calls = recorded.calls
        counts = Counter((call.path, call.function, call.arguments) for call in calls)
        yield ComparedVersions(
            before=_TrialVersion(lambda: nullcontext(worker), path, timeout_s),
            after=_TrialVersion(code.use_worker, path, timeout_s),
            examples=tuple(counts),
            unrepeatable=_find_unrepeatable(calls),
            repeated=frozenset(call for call, count in counts.items() if count > 1),
        )


async def _start(worker: TrialWorker, timeout_s: float) -> None:
    """Start a process that only makes calls."""
    await worker.start()
    await worker.configure(timeout_s)


def _find_unrepeatable(recorded: Sequence[ObservedCall]) -> frozenset[tuple[str, str]] | None:
    if not 0 < len(recorded) < MAX_RECORDED_CALLS:
        return None
    return frozenset(
        (call.path, get_function_name(call.function))
        for call in recorded
        if not read_arguments([call.arguments])
    )


def _read_calls(report: ExecutionReport) -> list[ObservedCall]:
    return [
        ObservedCall(path=call[0], function=call[1], line=call[2], arguments=call[3])
        for call in report.calls
        if is_call(call)
    ]


def _parse_pairs(texts: Sequence[str]) -> dict[tuple[int, int], tuple[bool, bool]]:
    """Return the compared pairs from what follows the answers; the code under test may have written it."""
    try:
        return {
            (int(first), int(second)): (bool(has_same_text), bool(is_equal))
            for first, second, has_same_text, is_equal in json.loads(texts[0])
        }
    except (IndexError, TypeError, ValueError, RecursionError):
        return {}


def _parse_trial_answer(text: str, arguments: str) -> ObservedAnswer | None:
    if text == TIMED_OUT or OPAQUE in text:
        return None
    if text.startswith(EXCEPTION_MARK):
        return ObservedAnswer(key=text, raises=True)
    own_type = OWN_TYPE.match(text)
    parts = _read_literal(text.removeprefix(NO_EFFECT_MARK))
    given, after = _read_literal(arguments), parts[1] if parts and len(parts) > 1 else ()
    changed = tuple(at for at, pair in enumerate(zip(given, after, strict=False)) if pair[0] != pair[1])
    return ObservedAnswer(
        key=text,
        content=parts,
        value=repr(parts[0]) if parts else "",
        own_type=own_type[1] if own_type else "",
        changed_arguments=changed,
    )


def _read_literal(text: str) -> tuple[Any, ...]:
    """Return the tuple that `read_source` reads from a string; empty if it is something else."""
    return next(iter(read_arguments([text])), ())
