"""The split verdict: the host between a judge that holds the tests and a candidate that holds the code.

Two programs behind two walls; neither sees the other. The host relays calls and answers as typed data, looks
at the shape of every answer, and keeps the time. The candidate can answer wrongly; it cannot decide.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from suture.core.records import CheckStatus
from suture.core.settings import SandboxSettings
from suture.judge.extraction.program_plans import PlannedProgram, module_name
from suture.judge.sandbox_programs import make_program_request
from suture.judge.split.decoding import well_formed
from suture.judge.split.judge_pool import Judge, give_back, take_judge
from suture.judge.split.program_sessions import LIFETIME_S, ProgramSession
from suture.judge.split.wire import MAX_FRAME_BYTES, BadFrame, dump, load
from suture.sandbox import RunResult, Sandbox

ASK_FIELDS = {"op", "module", "name", "handle", "value", "nodes"}
RAISED_FIELDS: dict[str, type | tuple[type, ...]] = {
    "type": str,
    "module": str,
    "bases": list,
    "text": str,
    "file": str,
    "line": (int, type(None)),
}
MOST_TEXT = 4000
"""Characters of what the candidate says of its own failure."""
MOST_BASES = 10
"""Names of an exception's classes that are believed; an honest candidate sends fewer (`BASE_TYPES`)."""
ENDS = frozenset(("GeneratorExit", "KeyboardInterrupt", "SystemExit"))
AFTER_DEATH_S = 5.0
"""Seconds for the judge to say what the candidate's death means to the test; the test's own may be up."""


@dataclass(frozen=True, kw_only=True)
class ProgramOutcome:
    """What came of one test program.

    Attributes:
        status: Whether it passed, failed, ended with an error or ran out of time.
        fact: What was seen: `call`, `expected`, `got`, `exception`, `file`, `line`, as far as known.
        live: Why the program needs live objects, where it does; then `status` says nothing yet.
        digest: For a program that asked a question: a digest of the answer, and the answer as text (see
            value_digest.py); else empty.
    """

    status: CheckStatus
    fact: Mapping[str, Any] = field(default_factory=dict)
    live: str = ""
    digest: tuple[str, ...] = ()


class SplitRunner:
    """A judge and a candidate for the checks of one verdict; an asynchronous context.

    Args:
        sandbox: Where programs run.
        settings: The group `sandbox`: time and memory for each program.
        files: The candidate's project.
        module: The path of the module that programs may use without importing it.
        check_wall_s: Seconds for each program; the settings' `check_wall_s` where it is left out.
        cpu_s: CPU seconds that each process of the candidate may take; no limit but the clock's where it is
            left out.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        settings: SandboxSettings,
        files: Mapping[str, bytes],
        module: str,
        check_wall_s: float | None = None,
        cpu_s: float | None = None,
    ) -> None:
        self._module = module
        self._wall_s = check_wall_s or settings.check_wall_s
        self._load_wall_s = max(self._wall_s, settings.check_wall_s)  # a short check needs the same start
        self._sandbox = sandbox
        self._settings = settings
        self._judge = Judge(sandbox, settings)
        self._candidate = ProgramSession(
            sandbox, make_program_request("split.candidate_program", files, settings, LIFETIME_S), cpu_s
        )
        self._limit_s = self._deadline = 0.0
        self._death = ""
        self._late = False
        self._expects: frozenset[str] = frozenset()

    async def __aenter__(self) -> SplitRunner:
        self._judge = await take_judge(self._sandbox, self._settings)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            await asyncio.gather(give_back(self._judge), self._candidate.stop())
        else:  # cancelled or out of time: nobody waits for what a hanging program may still say
            await asyncio.gather(self._judge.kill(), self._candidate.kill())

    @property
    def output(self) -> bytes:
        """What the candidate printed, up to the last time it ended."""
        return b"".join(self._candidate.output)

    @property
    def candidate_cpu_s(self) -> float | None:
        """CPU seconds that the candidate took, once it has been let end; `None` where that is not known."""
        return self._candidate.cpu_s

    async def load(self) -> ProgramOutcome | None:
        """Start both programs and load the candidate; what came of it where that fails."""
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
            return ProgramOutcome(status=self._status(), fact={"exception": f"while loading: {self._death}"})
        if "raised" in reply:
            raised = reply["raised"]
            fact = {"exception": f"{raised['type']}: {raised['text']}"[:MOST_TEXT]}
            return ProgramOutcome(
                status="error", fact={**fact, "file": raised["file"], "line": raised["line"]}
            )
        return None

    async def try_program(self, program: PlannedProgram) -> ProgramOutcome:
        """Run one test program against the candidate."""
        self._set_deadline(self._wall_s)
        self._death, self._late = "", False
        await self._judge.start()
        self._expects = frozenset(program.expects)
        request = {"source": program.source, "names": dict(program.names), "expects": program.expects}
        frame = dump(request)
        while True:
            # The judge still has to say what the candidate's death means to the test.
            patience_s = AFTER_DEATH_S if self._death else self._left_s()
            answer = await self._judge.exchange(frame, patience_s)
            if answer is None:
                return await self._judge_fell()
            message = _said(answer)
            if "outcome" in message:
                return self._outcome(message["outcome"])
            if "ask" not in message:  # the tests have ended the process that ran them
                return await self._judge_fell()
            frame = dump(await self._relay(message["ask"]))

    def _outcome(self, outcome: dict[str, Any]) -> ProgramOutcome:
        if outcome.get("live"):
            return ProgramOutcome(status="error", live=outcome["live"])
        if outcome.get("passed") is True and not self._death:
            return ProgramOutcome(status="passed", digest=tuple(outcome.get("told", ())))
        fact = outcome.get("fact") or {"exception": self._death}
        return ProgramOutcome(status=self._status() if self._death else "failed", fact=fact)

    def _status(self) -> CheckStatus:
        return "timeout" if self._late else "error"

    async def _judge_fell(self) -> ProgramOutcome:
        late = self._late or self._left_s() <= 0
        await self._judge.kill()
        what = f"the test did not end within {self._limit_s:g} s" if late else "the test ended the judge"
        return ProgramOutcome(status="timeout" if late else "error", fact={"exception": self._death or what})

    async def _relay(self, ask: dict[str, Any]) -> dict[str, Any]:
        if self._death:
            return {"died": self._death}
        if not self._candidate.alive:
            started = await self._start_candidate()
            if "died" in started or "raised" in started:
                return started
        return await self._ask_candidate({key: ask[key] for key in ASK_FIELDS & ask.keys()})

    async def _start_candidate(self) -> dict[str, Any]:
        await self._candidate.start()
        return await self._ask_candidate({"op": "load", "module": module_name(self._module)})

    async def _ask_candidate(self, ask: dict[str, Any]) -> dict[str, Any]:
        answer = await self._candidate.exchange(dump(ask), self._left_s())
        reply = None if answer is None else _checked(answer)
        if reply is not None and "raised" in reply and _ends(reply["raised"], self._expects):
            reply = {"died": f"{reply['raised']['type']}: {reply['raised']['text']}"[:MOST_TEXT]}
        if reply is None or "died" in reply:
            self._late = self._left_s() <= 0
            ended = await self._candidate.stop()
            if answer is None and not self._late and ended is not None and ended.status == "timeout":
                self._late = True
                self._death = f"it computed for more than {self._candidate.limits.cpu_s:g} s"
            else:
                self._death = self._cause(ended, answer is not None, (reply or {}).get("died", ""))
            return {"died": self._death}
        return reply

    def _cause(self, ended: RunResult | None, answered: bool, cause: str) -> str:
        if cause:
            return cause
        if answered:
            return "the answer is not data"
        if self._late:
            return f"no answer within {self._limit_s:g} s"
        if ended is not None and ended.signal is not None:
            return f"the program was ended by signal {ended.signal}"
        if ended is not None and ended.exit_code is not None:
            return f"the program ended itself with exit code {ended.exit_code}"
        return "the program ended"

    def _set_deadline(self, wall_s: float) -> None:
        self._limit_s = wall_s
        self._deadline = asyncio.get_running_loop().time() + wall_s

    def _left_s(self) -> float:
        return self._deadline - asyncio.get_running_loop().time()


def _ends(raised: dict[str, Any], expects: frozenset[str]) -> bool:
    """Whether an exception ends a program, and the test did not write that it expects it."""
    kinds = {raised["type"], *raised["bases"]}
    return bool(kinds & ENDS) and not kinds & ENDS & expects


def _said(frame: bytes) -> dict[str, Any]:
    """What the judge says; nothing where the tests that it runs have written something else to us."""
    try:
        return load(frame)
    except BadFrame:
        return {}


def _checked(frame: bytes) -> dict[str, Any] | None:
    """An answer of the candidate, cut to what an answer may be; `None` where it is none."""
    try:
        message = load(frame) if len(frame) <= MAX_FRAME_BYTES else {}
    except BadFrame:
        return None
    if isinstance(message.get("died"), str):
        return {"died": message["died"][:MOST_TEXT]}
    if not well_formed(message.get("value", ...), message.get("nodes")):
        return None
    reply = {
        "value": message["value"],
        "nodes": message["nodes"],
        "callable": message.get("callable") is True,
    }
    kinds = message.get("exception")
    if isinstance(kinds, list) and len(kinds) > 1 and all(isinstance(kind, str) for kind in kinds):
        reply["exception"] = kinds[:MOST_BASES]
    if "raised" in message:
        raised = _checked_exception(message["raised"])
        return None if raised is None else {**reply, "raised": raised}
    return reply


def _checked_exception(raised: Any) -> dict[str, Any] | None:
    if not isinstance(raised, dict):
        return None
    if not all(isinstance(raised.get(key, ...), kind) for key, kind in RAISED_FIELDS.items()):
        return None
    if not all(isinstance(base, str) for base in raised["bases"]):
        return None
    if not well_formed(raised.get("args", ...), raised.get("nodes")):
        return None
    return {key: raised[key] for key in (*RAISED_FIELDS, "args", "nodes")}
