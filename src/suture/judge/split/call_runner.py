"""The host's side of a split verdict on one function of another language.

The host holds the examples and compares the answers with them. A *call driver*, a program in the function's
own language, runs inside the sandbox with the candidate. It receives only arguments. Everything that comes
back is data, so a candidate can answer wrongly but cannot decide anything.

An *answer* is a dict with one of these keys: `value` (the result, with `altered`, the positions of the arguments that
the call has changed), `raised` (an error, with `stack`), `unfit`
(why the result cannot cross), `died` (why there is no answer), `ready`, `absent` or `unable`.

The host's side of nonce mode, which runs a test program and the candidate in one process.

Nonce mode is for tests that need live objects: objects that are more than data, such as a result whose
methods the test calls. The split verdict cannot run these, because only data crosses between its processes.

A nonce is a random string that nobody can guess. The host sends it before the candidate is loaded, and the
program sends it back after the test's last statement. So a candidate that ends the process early, or that
writes an outcome of its own, does not pass. A candidate that reads the process's memory can find the nonce;
that is why verdicts list the checks that were run this way.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from suture.core.records import Check, Task
from suture.core.settings import SandboxSettings
from suture.errors import PrerequisiteError
from suture.judge.extraction.call_examples import CallExample, parse_call
from suture.judge.extraction.program_plans import ProgramPlan, get_module_name
from suture.judge.failures import decode_output, get_last_line, render_failure, render_run_ending
from suture.judge.sandbox_programs import (
    PRIVATE_FOLDER,
    drop_private_files,
    make_program_request,
    make_test_limits,
)
from suture.judge.split.call_values import is_call_value, render_value, values_match
from suture.judge.split.program_sessions import ProgramSession
from suture.judge.split.split_runner import ProgramOutcome
from suture.judge.split.wire import BadFrame, dump, load
from suture.judge.tuning import (
    CLOCK_TOLERANCE_S,
    MAX_ANSWER_BYTES,
    MAX_FAULT_CHARS,
    MAX_UNANSWERED_CALLS,
    NONCE_GRACE_S,
    PROGRAM_LIFETIME_S,
)
from suture.project.languages import (
    LANGUAGES,
    CallDriver,
    CallSite,
    Interpreter,
    JsonPlus,
    program_environment,
)
from suture.sandbox import BOX, RunRequest, RunResult, Sandbox, mounts_for_interpreter

LOCATION_RE = re.compile(
    rf"{BOX}/([\w./-]+):(\d{{1,9}})|^(?:\./)?([\w./-]+\.\w+):(\d{{1,9}}):\d+: ", re.MULTILINE
)
"""A file and a line, as a stack trace inside the sandbox or a compiler writes them."""
MAX_LINE_DIGITS = 8
Answer = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class CallRunner:
    """Judges candidates by calls of the task's function."""

    task: Task
    sandbox: Sandbox
    settings: SandboxSettings
    interpreter: Interpreter

    @property
    def driver(self) -> CallDriver:
        """The call driver of the task's language."""
        driver = LANGUAGES[self.task.language].calls
        assert driver is not None
        return driver

    def request(self, files: Mapping[str, bytes]) -> RunRequest:
        """Return the request that starts the driver together with a candidate.

        Args:
            files: The project's files with the candidate's. Go's test files are left out, because the driver
                for Go is one itself.
        """
        site = CallSite(
            module=self.task.module, name=self.task.entry_point or "", folder=PRIVATE_FOLDER, files=files
        )
        project_files = {
            path: content
            for path, content in drop_private_files(files).items()
            if not path.endswith("_test.go")
        }
        return RunRequest(
            argv=tuple(self.driver.argv(site)),
            files={**project_files, **self.driver.files(site)},
            env=program_environment(self.interpreter, BOX),
            mounts=mounts_for_interpreter(self.interpreter),
            limits=make_test_limits(self.settings, PROGRAM_LIFETIME_S, self.task.language),
        )

    async def judge(
        self, checks: Sequence[Check], files: Mapping[str, bytes], wall_s: float | None = None
    ) -> tuple[list[ProgramOutcome], str, bool]:
        """Return (outcomes, output, depends_on_order).

        These are the outcome of each check, what the candidate printed, and whether a candidate that passes fails in
        another order of the calls.

        Args:
            checks: Calls with their results, in the form that `parse_call` reads.
            wall_s: The time limit of each call in seconds; the setting `check_timeout_s` by default.

        Raises:
            PrerequisiteError: The language cannot be run here.
        """
        session = CandidateSession(self, files, wall_s or self.settings.check_timeout_s)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(session.program.kill)
            outcomes = [await session.judge_check(check) for check in checks]
            await session.program.stop()  # only a program that ended regularly has its output kept
        depends_on_order = False
        if len(checks) > 1 and all(outcome.status == "passed" for outcome in outcomes):
            again = CandidateSession(self, files, wall_s or self.settings.check_timeout_s)
            async with AsyncExitStack() as stack:
                stack.push_async_callback(again.program.kill)
                repeated = [await again.judge_check(check) for check in reversed(checks)]
                depends_on_order = any(outcome.status == "failed" for outcome in repeated)
        return outcomes, b"".join(session.program.output).decode("utf-8", "replace"), depends_on_order

    async def answers(
        self, calls: Sequence[Sequence[JsonPlus]], files: Mapping[str, bytes], wall_s: float
    ) -> list[Answer]:
        """Return what a candidate answers to calls whose correct answers are unknown.

        Args:
            calls: The arguments of each call.
            wall_s: The time limit of each call in seconds; loading has its own limit.

        Returns:
            One answer per call; that of a call without an answer has the key `died`. After
            `MAX_UNANSWERED_CALLS` of these the remaining calls are not made.

        Raises:
            PrerequisiteError: The language cannot be run here.
        """
        session = CandidateSession(self, files, wall_s)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(session.program.kill)
            return [await session.answer_call(args) for args in calls]


class CandidateSession:
    """The call driver's process with one candidate, which is started again after it died."""

    def __init__(self, runner: CallRunner, files: Mapping[str, bytes], wall_s: float) -> None:
        self._runner = runner
        self._files = files
        self._wall_s = wall_s
        self._load_failure: ProgramOutcome | None = None
        self._death_count = 0
        self.program = ProgramSession(runner.sandbox, runner.request(files))

    async def judge_check(self, check: Check) -> ProgramOutcome:
        """Return the outcome of one check."""
        if self._load_failure is not None:
            return self._load_failure
        task, driver = self._runner.task, self._runner.driver
        example = parse_call(check.source, task.entry_point or "", driver)
        if example is None:
            return _make_error(f"the check is no call with a result: {check.source.strip()[:200]}")
        if not self.program.alive:
            self._load_failure = await self._load()
            if self._load_failure is not None:
                return self._load_failure
        answer, timed_out = await self._ask({"args": example.args, "awaits": example.awaits}, self._wall_s)
        if self._is_correct(answer, example):
            return ProgramOutcome(status="passed")
        expected = f"it {example.result}" if example.fails else example.result  # as in "it throws RangeError"
        fact = {"call": example.call, "expected": expected, **self._make_fact(answer)}
        if "value" in answer or ("raised" in answer and example.fails):
            return ProgramOutcome(status="failed", fact=fact)
        return ProgramOutcome(status="timeout" if timed_out else "error", fact=fact)

    def _is_correct(self, answer: Answer, example: CallExample) -> bool:
        if example.fails:
            return "raised" in answer and values_match(example.expected, answer["raised"])
        statically_typed = self._runner.driver.statically_typed
        return "value" in answer and values_match(
            example.expected, answer["value"], statically_typed=statically_typed
        )

    async def answer_call(self, args: Sequence[JsonPlus]) -> Answer:
        """Return the candidate's answer to a call."""
        if self._death_count >= MAX_UNANSWERED_CALLS:
            return {"died": "the call was not made"}
        if not self.program.alive and await self._load() is not None:
            self._death_count = MAX_UNANSWERED_CALLS
            return {"died": "it cannot be loaded"}
        answer, _ = await self._ask({"args": list(args), "awaits": True}, self._wall_s)
        self._death_count += "died" in answer
        return answer

    async def _load(self) -> ProgramOutcome | None:
        """Start the process and load the candidate; return the outcome of loading if it fails."""
        task, settings, driver = self._runner.task, self._runner.settings, self._runner.driver
        await self.program.start()
        wall_s = max(self._wall_s, settings.test_timeout_s if driver.compiles else settings.check_timeout_s)
        request = {"module": task.module, "name": task.entry_point}
        if driver.missing_remedy:
            # Asked before the candidate is loaded, because the candidate could give the same answer.
            ability, _ = await self._ask({**request, "able": True}, wall_s)
            if ability == {"unable": True}:
                remedy = "or give tests that a runner of yours runs: --test FILE"
                raise PrerequisiteError(driver.missing_remedy, remedy=remedy)
        answer, timed_out = await self._ask(request, wall_s)
        if answer == {"ready": True}:
            return None
        if answer.get("absent") is True:
            return _make_error(f"{task.module} offers no function {task.entry_point!r} to call")
        fact = self._make_fact(answer)
        cause = f"while loading: {fact['exception']}" if "died" in answer else fact["exception"]
        return ProgramOutcome(status="timeout" if timed_out else "error", fact={**fact, "exception": cause})

    async def _ask(self, message: Answer, wall_s: float) -> tuple[Answer, bool]:
        """Return (answer, timed_out): a well-formed answer, and whether the call ran out of time."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + wall_s
        answer = await self.program.exchange(json.dumps(message).encode(), wall_s)
        well_formed = None if answer is None else _check_answer(answer)
        if well_formed is not None:
            return well_formed, False
        timed_out = answer is None and loop.time() >= deadline_s - CLOCK_TOLERANCE_S
        run_result = await self.program.stop()
        death = _render_death(run_result, wall_s, timed_out=timed_out, answered=answer is not None)
        return {"died": death}, timed_out

    def _make_fact(self, answer: Answer) -> dict[str, Any]:
        """Return an answer as parts of a counterexample."""
        if "value" in answer:
            return {"actual": render_value(answer["value"], self._runner.driver)}
        if "raised" not in answer:
            text = answer.get("died") or answer.get("unfit") or "no answer"
            location = self._find_location(answer)
            if not location:
                text = LOCATION_RE.sub("", text)  # a position in the driver's own code explains nothing
            return {"exception": text.replace("\n", ": "), **location}
        text = render_value(answer["raised"], self._runner.driver)
        return {"exception": text[:MAX_FAULT_CHARS], **self._find_location(answer)}

    def _find_location(self, answer: Answer) -> dict[str, Any]:
        """Return the first `file` and `line` of the project that an error's message names; empty without one."""
        text = answer.get("stack") or answer.get("died") or ""
        for match in LOCATION_RE.finditer(text):
            path, line = (match[1], match[2]) if match[1] else (match[3], match[4])
            if path in self._files and len(line) <= MAX_LINE_DIGITS:
                return {"file": path, "line": int(line)}
        return {}


def _make_error(exception: str) -> ProgramOutcome:
    return ProgramOutcome(status="error", fact={"call": "", "exception": exception})


def _render_death(run_result: RunResult | None, wall_s: float, *, timed_out: bool, answered: bool) -> str:
    if answered:
        return render_failure("malformed_answer")
    if timed_out or run_result is None:
        return render_failure("no_answer", seconds=wall_s)
    compiler_errors = [line for line in decode_output(run_result).splitlines() if LOCATION_RE.match(line)]
    detail = compiler_errors[0] if compiler_errors else get_last_line(run_result)
    text = f"{render_failure('process_ended')} ({render_run_ending(run_result)})\n{detail}"
    return text.strip()[:MAX_FAULT_CHARS]


def _check_answer(frame: bytes) -> Answer | None:
    """Return the answer without unexpected fields; `None` if it is malformed."""
    try:
        message = json.loads(frame) if len(frame) <= MAX_ANSWER_BYTES else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict):
        return None
    if "value" in message:
        altered = message.get("altered", [])
        is_answer = is_call_value(message["value"]) and isinstance(altered, list)
        if not is_answer or not all(type(at) is int for at in altered):
            return None
        return {"value": message["value"], "altered": altered}
    if "raised" in message:
        fault, stack = message["raised"], message.get("stack")
        is_error = is_call_value(fault) and isinstance(fault, list) and fault[0] == "error"
        if not is_error or not isinstance(stack, str):
            return None
        return {"raised": fault, "stack": stack[:MAX_FAULT_CHARS]}
    if isinstance(message.get("unfit"), str):
        return {"unfit": message["unfit"][:MAX_FAULT_CHARS]}
    if isinstance(message.get("died"), str):
        return {"died": message["died"][:MAX_FAULT_CHARS]}
    signal = next((name for name in ("ready", "absent", "unable") if message == {name: True}), None)
    return {signal: True} if signal else None


FACT_TEXTS = ("call", "expected", "actual", "exception", "file")
"""The fields of a reported fact that are strings."""


async def run_with_nonce(
    sandbox: Sandbox,
    settings: SandboxSettings,
    files: Mapping[str, bytes],
    module: str,
    program: ProgramPlan,
    wall_s: float | None = None,
) -> ProgramOutcome:
    """Run a test program and the candidate in one process; the program passes only if the nonce comes back.

    Args:
        module: The path of the module whose names the program uses.
        wall_s: The time limit in seconds; the setting `check_timeout_s` by default.
    """
    limit_s = wall_s or settings.check_timeout_s
    nonce = secrets.token_hex(32)
    # The host's wait of `limit_s` is the test's limit. The sandbox's own limit only backs it up.
    request = make_program_request("split.nonce_program", files, settings, wall_s=limit_s + NONCE_GRACE_S)
    async with sandbox.open(request) as channel:
        names = {name: dict(target) for name, target in program.names.items()}
        message = {"module": get_module_name(module), "source": program.source, "names": names}
        await channel.send(dump({"nonce": nonce, **message}))
        frame = await channel.receive(limit_s)
        run_result = await channel.finish()
    outcome = _read_outcome(frame, nonce)
    if outcome is None:
        if run_result.status == "timeout":
            text = render_failure("test_timeout", seconds=limit_s)
            return ProgramOutcome(status="timeout", fact={"exception": text, "code": "test_timeout"})
        text = f"{render_failure('process_ended')} before the test did ({render_run_ending(run_result)})"
        return ProgramOutcome(status="error", fact={"exception": text, "code": "process_ended"})
    return ProgramOutcome(
        status="passed" if outcome.get("passed") is True else "failed", fact=_read_fact(outcome)
    )


def _read_outcome(frame: bytes | None, nonce: str) -> dict[str, Any] | None:
    """Return the message with the outcome; `None` if it is malformed or does not contain the nonce."""
    try:
        message = load(frame) if frame is not None else {}
    except BadFrame:
        return None
    claimed_nonce = message.get("nonce")
    if not isinstance(claimed_nonce, str):
        return None
    return message if hmac.compare_digest(claimed_nonce.encode(), nonce.encode()) else None


def _read_fact(outcome: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the reported fact that have the right type; the candidate may have written it."""
    reported = outcome.get("fact")
    if not isinstance(reported, dict):
        return {}
    fact: dict[str, Any] = {
        key: reported[key][:MAX_FAULT_CHARS] for key in FACT_TEXTS if isinstance(reported.get(key), str)
    }
    if type(reported.get("line")) is int:
        fact["line"] = reported["line"]
    return fact
