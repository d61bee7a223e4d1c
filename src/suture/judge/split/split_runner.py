"""The host's side of a split verdict: it relays between a judge with the tests and a candidate with the code.

The two programs run in separate sandboxes and cannot see each other. The host passes on calls and answers as typed
data, checks the shape of every answer, and enforces the time limits. The candidate can answer wrongly, but it cannot
decide.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from suture.core.records import CheckStatus, FailureCode
from suture.core.settings import SandboxSettings
from suture.judge.extraction.program_plans import ProgramPlan, get_module_name
from suture.judge.failures import render_failure, render_run_ending
from suture.judge.sandbox_programs import make_program_request
from suture.judge.split.call_values import Ask, RecordedCalls
from suture.judge.split.codec import is_well_formed
from suture.judge.split.program_sessions import JudgeSession, ProgramSession, acquire_judge, release_judge
from suture.judge.split.wire import BadFrame, dump, load
from suture.judge.tuning import (
    JUDGE_GRACE_S,
    MAX_EXCEPTION_BASES,
    MAX_FAULT_CHARS,
    MAX_PROTECTED_RUNS,
    PROGRAM_LIFETIME_S,
)
from suture.sandbox import RunResult, Sandbox

REQUEST_FIELDS = {"op", "module", "name", "handle", "value", "nodes"}
"""The fields of a judge's request that the host passes on to the candidate."""
EXCEPTION_FIELDS: dict[str, type | tuple[type, ...]] = {
    "type": str,
    "module": str,
    "bases": list,
    "text": str,
    "file": str,
    "line": (int, type(None)),
}
"""Field of an exception that a candidate describes -> its type."""
ENDING_EXCEPTIONS = frozenset(("GeneratorExit", "KeyboardInterrupt", "SystemExit"))
"""Exceptions that end a program unless it expects them."""


@dataclass(frozen=True, kw_only=True)
class ProgramOutcome:
    """The outcome of one test program.

    Attributes:
        status: Whether the program passed, failed, ended with an error or timed out.
        fact: What was seen: `call`, `expected`, `actual`, `exception`, `file`, `line`, as far as known.
        live_reason: Why the program needs live objects, that is, must run in the candidate's process; then
            `status` means nothing. Empty if data is enough.
        digest: (digest, text) of the answer, for a program that leaves an answer to compare (see
            answer_digest.py); otherwise empty.
    """

    status: CheckStatus
    fact: Mapping[str, Any] = field(default_factory=dict)
    live_reason: str = ""
    digest: tuple[str, ...] = ()


class SplitRunner:
    """Runs the checks of one verdict with a judge and a candidate; an asynchronous context manager.

    Args:
        module: The path of the module whose names programs may use without an import.
        check_timeout_s: The time limit of each program in seconds; the setting `check_timeout_s` by default.
        cpu_s: CPU seconds that each process of the candidate may take; limited only by the clock by default.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        settings: SandboxSettings,
        files: Mapping[str, bytes],
        module: str,
        check_timeout_s: float | None = None,
        cpu_s: float | None = None,
    ) -> None:
        self._module = module
        self._wall_s = check_timeout_s or settings.check_timeout_s
        self._load_wall_s = max(self._wall_s, settings.check_timeout_s)  # a short check needs the same start
        self._sandbox = sandbox
        self._settings = settings
        self._judge = JudgeSession(sandbox, settings)
        self._candidate = ProgramSession(
            sandbox,
            make_program_request("split.candidate_program", files, settings, PROGRAM_LIFETIME_S),
            cpu_s,
        )
        self._limit_s = self._deadline = 0.0
        # How the candidate's process ended during the current program; empty while it runs.
        self._death = ""
        self._death_code: FailureCode | None = None
        self._timed_out = False
        self._changing_call = ""
        # Where and how the program failed with protected arguments.
        self._failed_lines: frozenset[int] = frozenset()
        self._is_joint = False
        self._expects: frozenset[str] = frozenset()
        self._calls = self._most_calls = RecordedCalls()

    async def __aenter__(self) -> SplitRunner:
        self._judge = await acquire_judge(self._sandbox, self._settings)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            await asyncio.gather(release_judge(self._judge), self._candidate.stop())
        else:  # cancelled or out of time, so a hanging program is not given time to answer
            await asyncio.gather(self._judge.kill(), self._candidate.kill())

    @property
    def output(self) -> bytes:
        """What the candidate printed, up to the last time that it ended."""
        return b"".join(self._candidate.output)

    @property
    def candidate_cpu_s(self) -> float | None:
        """CPU seconds that the candidate used, known after a regular end; otherwise `None`."""
        return self._candidate.cpu_s

    async def load(self) -> ProgramOutcome | None:
        """Start both programs and load the candidate; return the outcome of loading if it fails."""
        started, loaded = await asyncio.gather(self._judge.start(), self._load(), return_exceptions=True)
        for fault in (started, loaded):
            if isinstance(fault, BaseException):
                raise fault
        return loaded if isinstance(loaded, ProgramOutcome) else None

    async def _load(self) -> ProgramOutcome | None:
        self._expects = frozenset()
        self._set_deadline(self._load_wall_s)
        reply = await self._start_candidate()
        if "died" in reply:
            fact = {"exception": f"while loading: {self._death}", "code": self._death_code}
            return ProgramOutcome(status=self._get_death_status(), fact=fact)
        if "raised" in reply:
            raised = reply["raised"]
            text = f"{raised['type']}: {raised['text']}"[:MAX_FAULT_CHARS]
            fact = {"exception": text, "file": raised["file"], "line": raised["line"]}
            return ProgramOutcome(status="error", fact=fact)
        return None

    async def try_program(self, program: ProgramPlan) -> ProgramOutcome:
        """Run one test program against the candidate.

        If a call changed an argument, the program must pass again, with a fresh candidate and with its
        arguments protected (see argument_protection.py). Otherwise all runs would be the same.
        """
        outcome = await self._run_program(program)
        if outcome.status != "passed" or outcome.live_reason or outcome.digest or not self._changing_call:
            return outcome
        call = self._changing_call
        protected = await self._try_protected(program)
        if protected.status != "failed":
            return protected
        if self._is_joint:
            return replace(protected, live_reason=f"the test checks {call} together with what it changes")
        text = render_failure("changed_argument", call=call)
        return replace(protected, fact={**protected.fact, "exception": text, "code": "changed_argument"})

    async def stop_candidate(self) -> None:
        """End the candidate's process, so that all its output is known."""
        await self._candidate.stop()

    async def find_order_dependence(self) -> bool:
        """Return whether the candidate's answers depend on the order of the calls; `False` if time runs out."""
        calls = self._most_calls

        async def restart() -> Ask | None:
            await self._candidate.stop()
            if await self._load() is not None:
                return None
            self._set_deadline(self._wall_s)
            self._death, self._death_code, self._timed_out = "", None, False
            return self._ask_again

        depends = await calls.find_order_dependence(restart)
        return depends and not self._timed_out

    async def _ask_again(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"died": self._death} if self._death else await self._ask_candidate(request)

    async def _try_protected(self, program: ProgramPlan) -> ProgramOutcome:
        """Run a program with protected arguments, and again as long as it fails on further lines."""
        lines: set[int] = set()
        for _ in range(MAX_PROTECTED_RUNS):
            await self._candidate.stop()
            outcome = await self._load() or await self._run_program(program, lines)
            if outcome.status != "failed" or self._failed_lines <= lines:
                break
            lines |= self._failed_lines
        return outcome

    async def _run_program(
        self, program: ProgramPlan, failed_lines: Collection[int] | None = None
    ) -> ProgramOutcome:
        """Run a program once; with protected arguments if there are lines on which it failed before."""
        self._set_deadline(self._wall_s)
        self._death, self._death_code, self._timed_out = "", None, False
        await self._judge.start()
        self._expects = frozenset(program.expects)
        request = {
            "source": program.source,
            "names": dict(program.names),
            "expects": program.expects,
            "protects_arguments": failed_lines is not None,
            "failed_lines": sorted(failed_lines or ()),
        }
        frame = dump(request)
        while True:
            # After the candidate's death the judge still has to decide what it means to the test.
            timeout_s = JUDGE_GRACE_S if self._death else self._get_remaining_s()
            answer = await self._judge.exchange(frame, timeout_s)
            if answer is None:
                return await self._judge_ended()
            message = _read_judge_message(answer)
            if "outcome" in message:
                return self._make_outcome(message["outcome"])
            if "ask" not in message:  # the tests ended the process that ran them
                return await self._judge_ended()
            frame = dump(await self._relay_request(message["ask"]))

    def _make_outcome(self, outcome: dict[str, Any]) -> ProgramOutcome:
        self._changing_call = outcome.get("changing_call", "")
        self._failed_lines = frozenset(outcome.get("failed_lines", ()))
        self._is_joint = outcome.get("joint") is True
        if outcome.get("live"):
            return ProgramOutcome(status="error", live_reason=outcome["live"])
        if outcome.get("passed") is True and not self._death:
            return ProgramOutcome(status="passed", digest=tuple(outcome.get("digest", ())))
        fact = outcome.get("fact") or {"exception": self._death}
        if not self._death:
            return ProgramOutcome(status="failed", fact=fact)
        return ProgramOutcome(status=self._get_death_status(), fact={**fact, "code": self._death_code})

    def _get_death_status(self) -> CheckStatus:
        return "timeout" if self._timed_out else "error"

    async def _judge_ended(self) -> ProgramOutcome:
        timed_out = self._timed_out or self._get_remaining_s() <= 0
        await self._judge.kill()
        code: FailureCode = "test_timeout" if timed_out else "judge_ended"
        fact: dict[str, Any] = {"exception": render_failure(code, seconds=self._limit_s), "code": code}
        if self._death:
            fact = {"exception": self._death, "code": self._death_code}
        return ProgramOutcome(status="timeout" if timed_out else "error", fact=fact)

    async def _relay_request(self, request: dict[str, Any]) -> dict[str, Any]:
        if self._death:
            return {"died": self._death}
        if not self._candidate.alive:
            started = await self._start_candidate()
            if "died" in started or "raised" in started:
                return started
        forwarded = {key: request[key] for key in REQUEST_FIELDS & request.keys()}
        reply = await self._ask_candidate(forwarded)
        if "died" not in reply:
            self._calls.record(forwarded, reply)
            self._most_calls = max(self._most_calls, self._calls, key=len)
        return reply

    async def _start_candidate(self) -> dict[str, Any]:
        self._calls = RecordedCalls()
        await self._candidate.start()
        return await self._ask_candidate({"op": "load", "module": get_module_name(self._module)})

    async def _ask_candidate(self, request: dict[str, Any]) -> dict[str, Any]:
        answer = await self._candidate.exchange(dump(request), self._get_remaining_s())
        reply = None if answer is None else _check_reply(answer)
        if reply is not None and "raised" in reply and _ends_program(reply["raised"], self._expects):
            reply = {"died": f"{reply['raised']['type']}: {reply['raised']['text']}"[:MAX_FAULT_CHARS]}
        if reply is None or "died" in reply:
            self._timed_out = self._get_remaining_s() <= 0
            run_result = await self._candidate.stop()
            was_stopped = run_result is not None and run_result.status == "timeout"
            if answer is None and not self._timed_out and was_stopped:
                self._timed_out = True
                self._death_code = "cpu_limit"
                self._death = render_failure("cpu_limit", seconds=self._candidate.limits.cpu_s)
            else:
                self._death_code = self._find_death_code(reply, answered=answer is not None)
                self._death = (reply or {}).get("died", "") or self._render_death(run_result)
            return {"died": self._death}
        return reply

    def _find_death_code(self, reply: dict[str, Any] | None, *, answered: bool) -> FailureCode:
        if reply is not None and reply.get("died"):
            return "process_ended"
        if answered:
            return "malformed_answer"
        return "no_answer" if self._timed_out else "process_ended"

    def _render_death(self, run_result: RunResult | None) -> str:
        code = self._death_code or "process_ended"
        text = render_failure(code, seconds=self._limit_s)
        if code != "process_ended" or run_result is None:
            return text
        has_ending = run_result.signal is not None or run_result.exit_code is not None
        return f"{text} ({render_run_ending(run_result)})" if has_ending else text

    def _set_deadline(self, wall_s: float) -> None:
        self._limit_s = wall_s
        self._deadline = asyncio.get_running_loop().time() + wall_s

    def _get_remaining_s(self) -> float:
        return self._deadline - asyncio.get_running_loop().time()


def _ends_program(raised: dict[str, Any], expects: frozenset[str]) -> bool:
    """Whether an exception ends a program, and the test's source does not expect it."""
    class_names = {raised["type"], *raised["bases"]}
    return bool(class_names & ENDING_EXCEPTIONS) and not class_names & ENDING_EXCEPTIONS & expects


def _read_judge_message(frame: bytes) -> dict[str, Any]:
    """Return the judge's message; empty if the tests in it wrote something else to the host."""
    try:
        return load(frame)
    except BadFrame:
        return {}


def _check_reply(frame: bytes) -> dict[str, Any] | None:
    """Return the candidate's answer without unexpected fields; `None` if it is malformed."""
    try:
        message = load(frame)
    except BadFrame:
        return None
    if isinstance(message.get("died"), str):
        return {"died": message["died"][:MAX_FAULT_CHARS]}
    if not is_well_formed(message.get("value", ...), message.get("nodes")):
        return None
    is_callable = message.get("callable") is True
    reply = {"value": message["value"], "nodes": message["nodes"], "callable": is_callable}
    names = message.get("exception")
    # The module of an exception class, then the names of the class and of its base classes.
    if isinstance(names, list) and len(names) > 1 and all(isinstance(name, str) for name in names):
        reply["exception"] = names[:MAX_EXCEPTION_BASES]
    if "raised" in message:
        raised = _check_exception(message["raised"])
        return None if raised is None else {**reply, "raised": raised}
    return reply


def _check_exception(raised: Any) -> dict[str, Any] | None:
    if not isinstance(raised, dict):
        return None
    if not all(isinstance(raised.get(key, ...), kind) for key, kind in EXCEPTION_FIELDS.items()):
        return None
    if not all(isinstance(base, str) for base in raised["bases"]):
        return None
    if not is_well_formed(raised.get("args", ...), raised.get("nodes")):
        return None
    return {key: raised[key] for key in (*EXCEPTION_FIELDS, "args", "nodes")}
