"""Our programs at both ends of a split verdict, as the host sees them."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace

from suture.sandbox import Channel, ProgramLimits, RunRequest, RunResult, Sandbox

LIFETIME_S = 24 * 3600
"""Of a program that is talked with; each exchange has a limit of its own."""


class ProgramSession:
    """One of the two programs; started when it is first needed, and again after it died.

    Attributes:
        output: What it printed, each time that it was let end.
        cpu_s: CPU seconds that it took up to the last such end; `None` where that is not known.
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
        """Whether it runs, as far as is known."""
        return self._channel is not None

    @property
    def limits(self) -> ProgramLimits:
        """What it may use."""
        return self._request.limits

    async def start(self) -> None:
        """Start it where it does not run."""
        if self._channel is None:
            self._stack = AsyncExitStack()
            self._channel = await self._stack.enter_async_context(self.sandbox.open(self._request))

    async def exchange(self, frame: bytes, timeout_s: float) -> bytes | None:
        """Send a frame and wait for one; `None` where the program died of it or was late."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        try:
            async with asyncio.timeout(timeout_s):  # it may have stopped reading
                await self.send(frame)
        except TimeoutError:
            return None
        return await self.receive(max(0.001, deadline - loop.time()))

    async def send(self, frame: bytes) -> None:
        """Send a frame, where it runs."""
        if self._channel is not None:
            await self._channel.send(frame)

    async def receive(self, timeout_s: float) -> bytes | None:
        """Wait for a frame; `None` where the program died or was late."""
        return None if self._channel is None else await self._channel.receive(timeout_s)

    async def kill(self) -> None:
        """End it at once, whatever it is doing."""
        stack, self._channel, self._stack = self._stack, None, None
        if stack is not None:
            await stack.aclose()

    async def stop(self) -> RunResult | None:
        """Let it end, and keep what it printed."""
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
