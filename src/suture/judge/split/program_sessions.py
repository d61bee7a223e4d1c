"""The host's sessions with the two programs of a split verdict, and the idle judges that wait for reuse.

A *judge* here is a process of `judge_program.py`, which runs tests; it never sees the candidate's code.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial

from suture.core.settings import SandboxSettings
from suture.judge.sandbox_programs import make_program_request
from suture.judge.split.wire import BadFrame, dump, load
from suture.judge.tuning import JUDGE_RELEASE_S, MAX_IDLE_JUDGES, PROGRAM_LIFETIME_S
from suture.sandbox import Channel, ProgramLimits, RunRequest, RunResult, Sandbox, SupportsCloseCallbacks


class ProgramSession:
    """A session with one program, which is started when it is first needed and again after it died.

    Args:
        cpu_s: CPU seconds that the program may use; those of `request` by default.

    Attributes:
        output: What the program printed each time that it ended regularly.
        cpu_s: CPU seconds used up to the last regular end; `None` if unknown.
    """

    def __init__(self, sandbox: Sandbox, request: RunRequest, cpu_s: float | None = None) -> None:
        self.sandbox = sandbox
        if cpu_s is not None:
            request = replace(request, limits=replace(request.limits, cpu_s=cpu_s))
        self._request = request
        self._stack: AsyncExitStack | None = None
        self._channel: Channel | None = None
        self.output: list[bytes] = []
        self.cpu_s: float | None = 0.0

    @property
    def alive(self) -> bool:
        """Whether the program was started and is not known to have ended."""
        return self._channel is not None

    @property
    def limits(self) -> ProgramLimits:
        """The limits of the program."""
        return self._request.limits

    async def start(self) -> None:
        """Start the program if it does not run."""
        if self._channel is None:
            self._stack = AsyncExitStack()
            self._channel = await self._stack.enter_async_context(self.sandbox.open(self._request))

    async def exchange(self, frame: bytes, timeout_s: float) -> bytes | None:
        """Send a frame and wait for the answer; `None` if the program died or timed out."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        try:
            async with asyncio.timeout(timeout_s):  # the program may have stopped reading
                await self.send(frame)
        except TimeoutError:
            return None
        return await self.receive(max(0.001, deadline - loop.time()))

    async def send(self, frame: bytes) -> None:
        """Send a frame if the program runs."""
        if self._channel is not None:
            await self._channel.send(frame)

    async def receive(self, timeout_s: float) -> bytes | None:
        """Wait for a frame; `None` if the program died or timed out."""
        return None if self._channel is None else await self._channel.receive(timeout_s)

    async def kill(self) -> None:
        """End the program at once, whatever it is doing."""
        stack, self._channel, self._stack = self._stack, None, None
        if stack is not None:
            await stack.aclose()

    async def stop(self) -> RunResult | None:
        """Let the program end, and add what it printed to `output`; `None` if it does not run."""
        if self._channel is None or self._stack is None:
            return None
        channel, stack, self._channel, self._stack = self._channel, self._stack, None, None
        try:
            result = await channel.finish()
        finally:
            await stack.aclose()
        self.output.append(result.stderr)
        if self.cpu_s is not None:
            self.cpu_s = None if result.cpu_s is None else self.cpu_s + result.cpu_s
        return result


_idle_judges: dict[Sandbox, list[JudgeSession]] = {}
"""Sandbox -> the judges in it that are started and serve no verdict."""


class JudgeSession(ProgramSession):
    """The program that holds the tests of one verdict at a time.

    A judge forks a process for each verdict, which is gone before the next one starts (see
    `judge_program.main`). So an idle judge itself has run no test, and the next verdict may use it.
    """

    def __init__(self, sandbox: Sandbox, settings: SandboxSettings) -> None:
        super().__init__(
            sandbox, make_program_request("split.judge_program", {}, settings, PROGRAM_LIFETIME_S)
        )
        self._key = ""

    async def start(self) -> None:
        """Start the program if it does not run, and begin a verdict if none has begun."""
        await super().start()
        if not self._key:
            self._key = secrets.token_hex(16)
            await self.send(dump({"key": self._key}))

    async def kill(self) -> None:
        """End the program at once, whatever it is doing."""
        self._key = ""
        await super().kill()

    async def end_verdict(self) -> None:
        """Tell the judge that the verdict is over, without waiting for an answer."""
        await self.send(dump({}))

    async def is_free(self) -> bool:
        """Whether everything of the last verdict is gone; the judge shows it by sending the verdict's key."""
        key, self._key = self._key, ""
        answer = await self.receive(JUDGE_RELEASE_S)
        try:
            return answer is not None and load(answer) == {"over": key}
        except BadFrame:
            return False


async def acquire_judge(sandbox: Sandbox, settings: SandboxSettings) -> JudgeSession:
    """Return a judge for one verdict: an idle one with the same limits, or a new one that is not started yet.

    Idle judges are reused because starting one takes longer than most verdicts do.
    """
    new_judge = JudgeSession(sandbox, settings)
    idle_judges = _idle_judges.get(sandbox, [])
    for judge in reversed(idle_judges):
        if judge.limits == new_judge.limits:
            idle_judges.remove(judge)
            is_free = False
            try:
                is_free = await judge.is_free()
            finally:  # also after a cancellation, because the judge is in no list now
                if not is_free:
                    await judge.kill()
            if is_free:
                return judge
    return new_judge


async def release_judge(judge: JudgeSession) -> None:
    """Keep a judge for the next verdict while its sandbox is open."""
    sandbox = judge.sandbox
    if not judge.alive or not isinstance(sandbox, SupportsCloseCallbacks):
        await judge.stop()
        return
    if sandbox not in _idle_judges:
        _idle_judges[sandbox] = []
        sandbox.add_close_callback(partial(_kill_idle_judges, sandbox))
    if len(_idle_judges[sandbox]) >= MAX_IDLE_JUDGES:
        await judge.stop()
        return
    _idle_judges[sandbox].append(judge)  # first, so that the judge is not lost if sending fails
    await judge.end_verdict()


async def _kill_idle_judges(sandbox: Sandbox) -> None:
    for judge in _idle_judges.pop(sandbox, []):
        await judge.kill()
