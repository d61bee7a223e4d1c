"""Sessions with Suture's own programs at both ends of a split verdict, and idle judges for reuse."""

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
        """Whether the program runs, as far as is known."""
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
        """Let the program end, and keep what it printed."""
        if self._channel is None or self._stack is None:
            return None
        channel, stack, self._channel, self._stack = self._channel, self._stack, None, None
        try:
            ended = await channel.finish()
        finally:
            await stack.aclose()
        self.output.append(ended.stderr)
        both = self.cpu_s, ended.cpu_s
        self.cpu_s = None if both[0] is None or both[1] is None else both[0] + both[1]
        return ended


_idle: dict[Sandbox, list[JudgeSession]] = {}


class JudgeSession(ProgramSession):
    """The program that holds the tests of one verdict at a time.

    A judge runs each verdict in a process of its own, which is gone before the next one starts (see
    `judge_program.main`). So an idle judge has run no test, and any verdict in the same sandbox may use it.
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

    async def adjourn(self) -> None:
        """End the verdict without waiting for anything."""
        await self.send(dump({}))

    async def is_free(self) -> bool:
        """Whether everything of the last verdict is gone, by a sign that only the judge itself can give."""
        answer = await self.receive(JUDGE_RELEASE_S)
        try:
            free = answer is not None and load(answer) == {"over": self._key}
        except BadFrame:
            free = False
        self._key = ""
        return free


async def acquire_judge(sandbox: Sandbox, settings: SandboxSettings) -> JudgeSession:
    """Return a judge for one verdict: an idle one, or a new one that is not started yet.

    Starting a judge takes longer than most verdicts do.
    """
    fresh = JudgeSession(sandbox, settings)
    waiting = _idle.get(sandbox, [])
    for judge in reversed(waiting):
        if judge.limits == fresh.limits:
            waiting.remove(judge)
            free = False
            try:
                free = await judge.is_free()
            finally:  # also after a cancellation, because the judge is in no list now
                if not free:
                    await judge.kill()
            if free:
                return judge
    return fresh


async def release_judge(judge: JudgeSession) -> None:
    """Keep a judge for the next verdict while its sandbox is open."""
    sandbox = judge.sandbox
    if not judge.alive or not isinstance(sandbox, SupportsCloseCallbacks):
        await judge.stop()
        return
    if sandbox not in _idle:
        _idle[sandbox] = []
        sandbox.add_close_callback(partial(_dismiss, sandbox))
    if len(_idle[sandbox]) >= MAX_IDLE_JUDGES:
        await judge.stop()
        return
    _idle[sandbox].append(judge)  # first, so that the judge is not lost if sending fails
    await judge.adjourn()


async def _dismiss(sandbox: Sandbox) -> None:
    for judge in _idle.pop(sandbox, []):
        await judge.kill()
