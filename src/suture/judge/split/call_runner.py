"""The host's side of a split verdict on one function of another language.

The host holds the examples and compares. A program in the function's own language, inside the sandbox, holds
the candidate and receives only arguments. Everything that comes back is data, so a candidate can answer
wrongly but cannot decide anything.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from suture.core.records import Check, Task
from suture.core.settings import SandboxSettings
from suture.errors import PrerequisiteError
from suture.judge.extraction.call_examples import parse_call
from suture.judge.failures import decode_output, get_last_line, render_failure, render_run_ending
from suture.judge.sandbox_programs import PRIVATE_FOLDER, drop_private_files, make_test_limits
from suture.judge.split.call_values import is_call_value, render_value, values_match
from suture.judge.split.program_sessions import ProgramSession
from suture.judge.split.split_runner import ProgramOutcome
from suture.judge.tuning import (
    CLOCK_TOLERANCE_S,
    MAX_ANSWER_BYTES,
    MAX_FAULT_CHARS,
    MAX_UNANSWERED_CALLS,
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

LOCATION = re.compile(rf"{BOX}/([\w./-]+):(\d+)|^(?:\./)?([\w./-]+\.\w+):(\d+):\d+: ", re.MULTILINE)
Answer = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class CallRunner:
    """Judges a task's function by calls.

    Attributes:
        task: A task whose language has a call driver.
        sandbox: Runs the driver and the candidate.
        settings: The sandbox limits.
        interpreter: The interpreter and toolchain of the language.
    """

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
        """Return the request that starts the driver beside a candidate.

        Args:
            files: The project's files with the candidate's. Test files are left out, because a driver may be
                one.
        """
        site = CallSite(
            module=self.task.module, name=self.task.entry_point or "", folder=PRIVATE_FOLDER, files=files
        )
        others = {path: c for path, c in drop_private_files(files).items() if not path.endswith("_test.go")}
        return RunRequest(
            argv=tuple(self.driver.argv(site)),
            files={**others, **self.driver.files(site)},
            env=program_environment(self.interpreter, BOX),
            mounts=mounts_for_interpreter(self.interpreter),
            limits=make_test_limits(self.settings, PROGRAM_LIFETIME_S, self.task.language),
        )

    async def judge(
        self, checks: Sequence[Check], files: Mapping[str, bytes], wall_s: float | None = None
    ) -> tuple[list[ProgramOutcome], str]:
        """Return the outcome of each check, and what the candidate printed.

        Args:
            checks: Calls with their results, in the form that `parse_call` reads.
            files: The project's files with the candidate's.
            wall_s: The time limit of each call in seconds; the setting `check_timeout_s` by default.

        Raises:
            PrerequisiteError: The language cannot be run here.
            SandboxError: The sandbox failed.
        """
        talk = _CandidateSession(self, files, wall_s or self.settings.check_timeout_s)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(talk.session.kill)
            outcomes = [await talk.outcome(check) for check in checks]
            await talk.end()
        return outcomes, b"".join(talk.session.output).decode("utf-8", "replace")

    async def answers(
        self, calls: Sequence[Sequence[JsonPlus]], files: Mapping[str, bytes], wall_s: float
    ) -> list[Answer]:
        """Return what a candidate answers to calls whose correct answers are unknown.

        Args:
            calls: The arguments of each call.
            files: The project's files with the candidate's.
            wall_s: The time limit of each call in seconds; loading has its own limit.

        Returns:
            One answer per call: `value`, `raised`, or `died` if there was none. After `MAX_UNANSWERED_CALLS`
            calls without an answer the remaining calls are not made.

        Raises:
            PrerequisiteError: The language cannot be run here.
            SandboxError: The sandbox failed.
        """
        talk = _CandidateSession(self, files, wall_s)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(talk.session.kill)
            return [await talk.answer(args) for args in calls]


class _CandidateSession:
    """The process of one candidate, which is started again after it died.

    Args:
        calls: What to judge.
        files: The project's files with the candidate's.
        wall_s: The time limit of each call in seconds.
    """

    def __init__(self, calls: CallRunner, files: Mapping[str, bytes], wall_s: float) -> None:
        self._calls = calls
        self._files = files
        self._wall_s = wall_s
        self._unloadable: ProgramOutcome | None = None
        self._deaths = 0
        self.session = ProgramSession(calls.sandbox, calls.request(files))

    async def outcome(self, check: Check) -> ProgramOutcome:
        """Return the outcome of one check."""
        if self._unloadable is not None:
            return self._unloadable
        task, driver = self._calls.task, self._calls.driver
        call = parse_call(check.source, task.entry_point or "", driver)
        if call is None:
            return _error("", f"the check is no call with a result: {check.source.strip()[:200]}")
        if not self.session.alive:
            self._unloadable = await self._load()
            if self._unloadable is not None:
                return self._unloadable
        answer, timed_out = await self._ask({"args": call.args, "awaits": call.awaits}, self._wall_s)
        expected = call.result if not call.fails else f"it {call.result}"
        if (
            "value" in answer
            and not call.fails
            and values_match(call.expected, answer["value"], typed=driver.typed)
        ):
            return ProgramOutcome(status="passed")
        if call.fails and "raised" in answer and values_match(call.expected, answer["raised"]):
            return ProgramOutcome(status="passed")
        fact = {"call": call.call, "expected": expected, **self._fact_of(answer)}
        if "value" in answer or ("raised" in answer and call.fails):
            return ProgramOutcome(status="failed", fact=fact)
        return ProgramOutcome(status="timeout" if timed_out else "error", fact=fact)

    async def answer(self, args: Sequence[JsonPlus]) -> Answer:
        """Return the candidate's answer to a call."""
        if self._deaths >= MAX_UNANSWERED_CALLS:
            return {"died": "the call was not made"}
        if not self.session.alive and await self._load() is not None:
            self._deaths = MAX_UNANSWERED_CALLS
            return {"died": "it cannot be loaded"}
        answer, _ = await self._ask({"args": list(args), "awaits": False}, self._wall_s)
        self._deaths += "died" in answer
        return answer

    async def _load(self) -> ProgramOutcome | None:
        """Start the process and load the candidate; return the outcome of loading if it fails."""
        task, settings, driver = self._calls.task, self._calls.settings, self._calls.driver
        await self.session.start()
        wall_s = max(self._wall_s, settings.test_timeout_s if driver.compiles else settings.check_timeout_s)
        wanted = {"module": task.module, "name": task.entry_point}
        if (
            driver.missing_remedy
        ):  # asked before the candidate is loaded, because the candidate could claim it too
            able, _ = await self._ask({**wanted, "able": True}, wall_s)
            if able == {"unable": True}:
                remedy = "or give tests that a runner of yours runs: --test FILE"
                raise PrerequisiteError(driver.missing_remedy, remedy=remedy)
        answer, timed_out = await self._ask(wanted, wall_s)
        if answer == {"ready": True}:
            return None
        if answer.get("absent") is True:
            return _error("", f"{task.module} offers no function {task.entry_point!r} to call")
        fact = self._fact_of(answer)
        cause = f"while loading: {fact['exception']}" if "died" in answer else fact["exception"]
        return ProgramOutcome(status="timeout" if timed_out else "error", fact={**fact, "exception": cause})

    async def _ask(self, message: Answer, wall_s: float) -> tuple[Answer, bool]:
        """Return a well-formed answer, and whether it came too timed_out."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + wall_s
        answer = await self.session.exchange(json.dumps(message).encode(), wall_s)
        checked = None if answer is None else _checked(answer)
        if checked is not None:
            return checked, False
        timed_out = answer is None and loop.time() >= deadline_s - CLOCK_TOLERANCE_S
        ended = await self.session.stop()
        return {"died": _cause(ended, wall_s, timed_out=timed_out, answered=answer is not None)}, timed_out

    def _fact_of(self, answer: Answer) -> dict[str, Any]:
        """Return an answer as parts of a counterexample."""
        if "value" in answer:
            return {"actual": render_value(answer["value"], self._calls.driver)}
        if "raised" not in answer:
            text = answer.get("died") or answer.get("unfit") or "no answer"
            place = self._place(answer)
            # A position in the driver's own code explains nothing.
            shortened = text if place else LOCATION.sub("", text)
            return {"exception": shortened.replace("\n", ": "), **place}
        text = render_value(answer["raised"], self._calls.driver)
        return {"exception": text[:MAX_FAULT_CHARS], **self._place(answer)}

    def _place(self, answer: Answer) -> dict[str, Any]:
        text = answer.get("stack") or answer.get("died") or ""
        for match in LOCATION.finditer(text):
            path, line = (match[1], match[2]) if match[1] else (match[3], match[4])
            if path in self._files and len(line) < 9:
                return {"file": path, "line": int(line)}
        return {}

    async def end(self) -> None:
        """Let the process end, and keep what it printed."""
        await self.session.stop()


def _error(call: str, exception: str) -> ProgramOutcome:
    return ProgramOutcome(status="error", fact={"call": call, "exception": exception})


def _cause(ended: RunResult | None, wall_s: float, *, timed_out: bool, answered: bool) -> str:
    if answered:
        return render_failure("malformed_answer")
    if timed_out or ended is None:
        return render_failure("no_answer", seconds=wall_s)
    lines = [line for line in decode_output(ended).splitlines() if LOCATION.match(line)] or [
        get_last_line(ended)
    ]
    return f"{render_failure('process_ended')} ({render_run_ending(ended)})\n{lines[0]}".strip()[
        :MAX_FAULT_CHARS
    ]


def _checked(frame: bytes) -> Answer | None:
    """Return the answer without unexpected fields; `None` if it is malformed."""
    try:
        message = json.loads(frame) if len(frame) <= MAX_ANSWER_BYTES else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict):
        return None
    if "value" in message:
        return {"value": message["value"]} if is_call_value(message["value"]) else None
    if "raised" in message:
        fault, stack = message["raised"], message.get("stack")
        whole = is_call_value(fault) and isinstance(fault, list) and fault[0] == "error"
        return (
            {"raised": fault, "stack": str(stack)[:MAX_FAULT_CHARS]}
            if whole and isinstance(stack, str)
            else None
        )
    if isinstance(message.get("unfit"), str):
        return {"unfit": message["unfit"][:MAX_FAULT_CHARS]}
    if isinstance(message.get("died"), str):
        return {"died": message["died"][:MAX_FAULT_CHARS]}
    known = next((word for word in ("ready", "absent", "unable") if message == {word: True}), None)
    return {known: True} if known else None
