"""The host's side of a split verdict on one function of another language.

It holds the examples and compares; a program of the function's own language, behind the wall, holds the
candidate and is told arguments alone. All that comes back is data. So a candidate can answer wrongly, and
decide nothing.
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
from suture.judge.extraction.call_examples import read_call
from suture.judge.failures import render_run_ending, get_last_line, decode_output
from suture.judge.sandbox_programs import PRIVATE_FOLDER, make_test_limits, drop_private_files
from suture.judge.split.call_values import same, shown, well_formed
from suture.judge.split.program_sessions import LIFETIME_S, ProgramSession
from suture.judge.split.split_runner import ProgramOutcome
from suture.project.languages import LANGUAGES, CallDriver, CallSite, Interpreter, Plus, program_environment
from suture.sandbox import BOX, RunRequest, RunResult, Sandbox, interpreter_mounts

MOST_BYTES = 4 << 20
"""Of one answer that the driver sends back."""
MOST_TEXT = 4000
"""Characters of what a program says of its own failure."""
MOST_DEATHS = 3
"""After so many calls without an answer a candidate is not asked the others."""
CLOCK_S = 0.05
"""By which two clocks may differ on what was too late."""
PLACE = re.compile(rf"{BOX}/([\w./-]+):(\d+)|^(?:\./)?([\w./-]+\.\w+):(\d+):\d+: ", re.MULTILINE)
Answer = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Calls:
    """What it takes to judge a task's function by calls.

    Attributes:
        task: It; its language has a driver.
        sandbox: The wall.
        settings: Its limits.
        interpreter: Where the language's own programs are.
    """

    task: Task
    sandbox: Sandbox
    settings: SandboxSettings
    interpreter: Interpreter

    @property
    def driver(self) -> CallDriver:
        """The language's."""
        driver = LANGUAGES[self.task.language].calls
        assert driver is not None
        return driver

    def request(self, files: Mapping[str, bytes]) -> RunRequest:
        """What starts the driver beside a candidate.

        Args:
            files: The project with the candidate in it. Tests of its own are left out: a driver may be one.
        """
        site = CallSite(
            module=self.task.module, name=self.task.entry_point or "", folder=PRIVATE_FOLDER, files=files
        )
        others = {path: c for path, c in drop_private_files(files).items() if not path.endswith("_test.go")}
        return RunRequest(
            argv=tuple(self.driver.argv(site)),
            files={**others, **self.driver.files(site)},
            env=program_environment(self.interpreter, BOX),
            mounts=interpreter_mounts(self.interpreter),
            limits=make_test_limits(self.settings, LIFETIME_S, self.task.language),
        )

    async def judge(
        self, checks: Sequence[Check], files: Mapping[str, bytes], wall_s: float | None = None
    ) -> tuple[list[ProgramOutcome], str]:
        """What came of each check, and what the candidate printed.

        Args:
            checks: Calls with their results, as `read_call` reads them.
            files: The project with the candidate in it.
            wall_s: Seconds for each call; the settings' `check_wall_s` where it is left out.

        Raises:
            PrerequisiteError: The language cannot be run here.
            SandboxError: The wall failed.
        """
        talk = _Talk(self, files, wall_s or self.settings.check_wall_s)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(talk.session.kill)
            outcomes = [await talk.outcome(check) for check in checks]
            await talk.end()
        return outcomes, b"".join(talk.session.output).decode("utf-8", "replace")

    async def answers(
        self, calls: Sequence[Sequence[Plus]], files: Mapping[str, bytes], wall_s: float
    ) -> list[Answer]:
        """What a candidate answers to calls of which nobody says what they should answer.

        Args:
            calls: The arguments of each.
            files: The project with the candidate in it.
            wall_s: Seconds for each call; loading has its own.

        Returns:
            One answer for each: `value`, `raised`, or `died` where none came. After a few of those the others
            are not asked.

        Raises:
            PrerequisiteError: The language cannot be run here.
            SandboxError: The wall failed.
        """
        talk = _Talk(self, files, wall_s)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(talk.session.kill)
            return [await talk.answer(args) for args in calls]


class _Talk:
    """One candidate's process, started again where it died.

    Args:
        calls: What is judged.
        files: The project with the candidate in it.
        wall_s: Seconds for each call.
    """

    def __init__(self, calls: Calls, files: Mapping[str, bytes], wall_s: float) -> None:
        self._calls = calls
        self._files = files
        self._wall_s = wall_s
        self._unloadable: ProgramOutcome | None = None
        self._deaths = 0
        self.session = ProgramSession(calls.sandbox, calls.request(files))

    async def outcome(self, check: Check) -> ProgramOutcome:
        """What came of one check."""
        if self._unloadable is not None:
            return self._unloadable
        task, driver = self._calls.task, self._calls.driver
        call = read_call(check.source, task.entry_point or "", driver)
        if call is None:
            return _error("", f"the check is no call with a result: {check.source.strip()[:200]}")
        if not self.session.alive:
            self._unloadable = await self._load()
            if self._unloadable is not None:
                return self._unloadable
        answer, late = await self._ask({"args": call.args, "awaits": call.awaits}, self._wall_s)
        expected = call.result if not call.fails else f"it {call.result}"
        if "value" in answer and not call.fails and same(call.expected, answer["value"], typed=driver.typed):
            return ProgramOutcome(status="passed")
        if call.fails and "raised" in answer and same(call.expected, answer["raised"]):
            return ProgramOutcome(status="passed")
        fact = {"call": call.call, "expected": expected, **self._fact_of(answer)}
        if "value" in answer or ("raised" in answer and call.fails):
            return ProgramOutcome(status="failed", fact=fact)
        return ProgramOutcome(status="timeout" if late else "error", fact=fact)

    async def answer(self, args: Sequence[Plus]) -> Answer:
        """What comes of a call."""
        if self._deaths >= MOST_DEATHS:
            return {"died": "not asked"}
        if not self.session.alive and await self._load() is not None:
            self._deaths = MOST_DEATHS
            return {"died": "it cannot be loaded"}
        answer, _ = await self._ask({"args": list(args), "awaits": False}, self._wall_s)
        self._deaths += "died" in answer
        return answer

    async def _load(self) -> ProgramOutcome | None:
        """Start the process and have it load the candidate; what came of it where that fails."""
        task, settings, driver = self._calls.task, self._calls.settings, self._calls.driver
        await self.session.start()
        wall_s = max(self._wall_s, settings.test_wall_s if driver.compiles else settings.check_wall_s)
        wanted = {"module": task.module, "name": task.entry_point}
        if driver.lacks:  # asked before the candidate is loaded, which could say so too
            able, _ = await self._ask({**wanted, "able": True}, wall_s)
            if able == {"unable": True}:
                remedy = "or give tests that a runner of yours runs: --test FILE"
                raise PrerequisiteError(driver.lacks, remedy=remedy)
        answer, late = await self._ask(wanted, wall_s)
        if answer == {"ready": True}:
            return None
        if answer.get("absent") is True:
            return _error("", f"{task.module} offers no function {task.entry_point!r} to call")
        fact = self._fact_of(answer)
        cause = f"while loading: {fact['exception']}" if "died" in answer else fact["exception"]
        return ProgramOutcome(status="timeout" if late else "error", fact={**fact, "exception": cause})

    async def _ask(self, message: Answer, wall_s: float) -> tuple[Answer, bool]:
        """An answer that is well-formed, and whether it came too late."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + wall_s
        answer = await self.session.exchange(json.dumps(message).encode(), wall_s)
        checked = None if answer is None else _checked(answer)
        if checked is not None:
            return checked, False
        late = answer is None and loop.time() >= deadline_s - CLOCK_S
        ended = await self.session.stop()
        return {"died": _cause(ended, wall_s, late=late, answered=answer is not None)}, late

    def _fact_of(self, answer: Answer) -> dict[str, Any]:
        """What an answer says, as parts of a counterexample."""
        if "value" in answer:
            return {"got": shown(answer["value"], self._calls.driver)}
        if "raised" not in answer:
            text = answer.get("died") or answer.get("unfit") or "no answer"
            place = self._place(answer)
            # A place in the driver's own code tells nothing.
            shortened = text if place else PLACE.sub("", text)
            return {"exception": shortened.replace("\n", ": "), **place}
        text = shown(answer["raised"], self._calls.driver)
        return {"exception": text[:MOST_TEXT], **self._place(answer)}

    def _place(self, answer: Answer) -> dict[str, Any]:
        text = answer.get("stack") or answer.get("died") or ""
        for match in PLACE.finditer(text):
            path, line = (match[1], match[2]) if match[1] else (match[3], match[4])
            if path in self._files and len(line) < 9:
                return {"file": path, "line": int(line)}
        return {}

    async def end(self) -> None:
        """Let the process end, and keep what it printed."""
        await self.session.stop()


def _error(call: str, exception: str) -> ProgramOutcome:
    return ProgramOutcome(status="error", fact={"call": call, "exception": exception})


def _cause(ended: RunResult | None, wall_s: float, *, late: bool, answered: bool) -> str:
    if answered:
        return "the answer is not data"
    if late or ended is None:
        return f"no answer within {wall_s:g} s"
    said = [line for line in decode_output(ended).splitlines() if PLACE.match(line)] or [get_last_line(ended)]
    return f"the program ended ({render_run_ending(ended)})\n{said[0]}".strip()[:MOST_TEXT]


def _checked(frame: bytes) -> Answer | None:
    """An answer, cut to what an answer may be; `None` where it is none."""
    try:
        message = json.loads(frame) if len(frame) <= MOST_BYTES else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict):
        return None
    if "value" in message:
        return {"value": message["value"]} if well_formed(message["value"]) else None
    if "raised" in message:
        fault, stack = message["raised"], message.get("stack")
        whole = well_formed(fault) and isinstance(fault, list) and fault[0] == "error"
        return (
            {"raised": fault, "stack": str(stack)[:MOST_TEXT]} if whole and isinstance(stack, str) else None
        )
    if isinstance(message.get("unfit"), str):
        return {"unfit": message["unfit"][:MOST_TEXT]}
    if isinstance(message.get("died"), str):
        return {"died": message["died"][:MOST_TEXT]}
    known = next((word for word in ("ready", "absent", "unable") if message == {word: True}), None)
    return {known: True} if known else None
