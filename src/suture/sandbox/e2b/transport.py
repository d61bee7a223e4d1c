"""A machine of E2B's that carries a zygote."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Sequence
from typing import Any

CHUNK = 32 << 10
MUCH = 1 << 20
"""Bytes that may wait to be sent before whoever sends more is made to wait."""
KILLED = -9
"""As asyncio tells of a process that SIGKILL has ended."""
AGAIN_S = 0.1
"""Between two attempts to end a task."""


class E2bTransport:
    """A machine of our own; see `zygote.carrier.ZygoteTransport`. Call `start` once.

    Args:
        machine: An `AsyncSandbox` of the SDK.
    """

    def __init__(self, machine: Any) -> None:
        self.stdout, self.stderr = asyncio.StreamReader(), asyncio.StreamReader()
        self._machine = machine
        self._line = ""
        self._waiting = bytearray()
        self._news, self._room = asyncio.Event(), asyncio.Event()
        self._room.set()
        self._ended = False
        self._handle: Any = None
        self._removal: asyncio.Task[None] | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, command: str) -> None:
        """Start the bootstrap, as the machine's root.

        Args:
            command: What the machine's shell starts.
        """
        self._handle = await self._machine.commands.run(
            command,
            background=True,
            stdin=True,
            user="root",
            timeout=0,
            on_stdout=self._take,
            on_stderr=lambda text: self.stderr.feed_data(text.encode()),
            retain_output=False,
        )
        self._tasks = [asyncio.create_task(self._feed()), asyncio.create_task(self._await_end())]

    def _take(self, text: str) -> None:
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            try:
                self.stdout.feed_data(base64.b64decode(line, validate=True))
            except (ValueError, binascii.Error):
                self.kill()

    async def _await_end(self) -> None:
        try:
            await self._handle.wait()
        except Exception as fault:  # the SDK, its HTTP client and its protocol each raise kinds of their own
            self.stderr.feed_data(str(fault).encode())
        finally:
            self.stdout.feed_eof()
            self.stderr.feed_eof()

    async def _feed(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            while self._waiting:
                piece = bytes(self._waiting[:CHUNK])
                del self._waiting[:CHUNK]
                await self._handle.send_stdin(base64.b64encode(piece) + b"\n")
                if len(self._waiting) < MUCH:
                    self._room.set()

    def write(self, data: bytes) -> None:
        """Take bytes for the zygote's stdin; one that is gone does not make this fail."""
        self._waiting += data
        self._news.set()
        if len(self._waiting) >= MUCH:
            self._room.clear()

    async def drain(self) -> None:
        """Wait until more may be written."""
        await asyncio.wait(
            [room := asyncio.create_task(self._wait_for_room()), *self._tasks],
            return_when=asyncio.FIRST_COMPLETED,
        )
        room.cancel()

    async def _wait_for_room(self) -> None:
        await self._room.wait()

    def close_stdin(self) -> None:
        """The machine is thrown away as a whole."""
        self.kill()

    @property
    def returncode(self) -> int | None:
        """Negative once it is gone."""
        return KILLED if self._ended else None

    def kill(self) -> None:
        """Throw the machine away; safe to call twice."""
        if self._removal is None:
            self._removal = asyncio.create_task(self._remove())

    async def _remove(self) -> None:
        try:
            await self._machine.kill()
        finally:
            if self._handle is not None:
                await self._handle.disconnect()
            await stop(self._tasks)
            for stream in (self.stdout, self.stderr):
                stream.feed_eof()

    async def wait(self) -> int:
        """Wait until the machine is gone."""
        self.kill()
        assert self._removal is not None
        await asyncio.wait([self._removal])
        self._ended = True
        return KILLED


async def stop(tasks: Sequence[asyncio.Task[None]]) -> None:
    """End tasks; the SDK may take a cancellation for the end of what it waits for, and its caller goes on."""
    left = {task for task in tasks if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=AGAIN_S)
    await asyncio.gather(*tasks, return_exceptions=True)
