"""The transport to a zygote in an E2B machine."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Sequence
from typing import Any

from suture.sandbox.tuning import MAX_UNSENT_BYTES, TASK_CANCEL_INTERVAL_S

CHUNK = 32 << 10
"""Bytes of one message to the service."""
KILLED = -9
"""The return code by which asyncio reports a process that SIGKILL ended."""


class E2bTransport:
    """The connection to a machine of our own; see `ZygoteTransport`. Call `start` once.

    Args:
        machine: An `AsyncSandbox` of the SDK.
    """

    def __init__(self, machine: Any) -> None:
        self.stdout, self.stderr = asyncio.StreamReader(), asyncio.StreamReader()
        self._machine = machine
        self._line = ""
        self._unsent = bytearray()
        self._has_unsent, self._may_write = asyncio.Event(), asyncio.Event()
        self._may_write.set()
        self._is_gone = False
        self._handle: Any = None
        self._removal: asyncio.Task[None] | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, command: str) -> None:
        """Start the bootstrap program as the machine's root, by a command line for its shell."""
        self._handle = await self._machine.commands.run(
            command,
            background=True,
            stdin=True,
            user="root",
            timeout=0,
            on_stdout=self._receive,
            on_stderr=lambda text: self.stderr.feed_data(text.encode()),
            retain_output=False,
        )
        self._tasks = [asyncio.create_task(self._send_queued()), asyncio.create_task(self._wait_for_end())]

    def _receive(self, text: str) -> None:
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            try:
                self.stdout.feed_data(base64.b64decode(line, validate=True))
            except (ValueError, binascii.Error):
                self.kill()

    async def _wait_for_end(self) -> None:
        try:
            await self._handle.wait()
        except Exception as fault:  # the SDK, its HTTP client and its protocol each raise their own types
            self.stderr.feed_data(str(fault).encode())
        finally:
            self.stdout.feed_eof()
            self.stderr.feed_eof()

    async def _send_queued(self) -> None:
        while True:
            await self._has_unsent.wait()
            self._has_unsent.clear()
            while self._unsent:
                chunk = bytes(self._unsent[:CHUNK])
                del self._unsent[:CHUNK]
                await self._handle.send_stdin(base64.b64encode(chunk) + b"\n")
                if len(self._unsent) < MAX_UNSENT_BYTES:
                    self._may_write.set()

    def write(self, data: bytes) -> None:
        """See `ZygoteTransport.write`."""
        self._unsent += data
        self._has_unsent.set()
        if len(self._unsent) >= MAX_UNSENT_BYTES:
            self._may_write.clear()

    async def drain(self) -> None:
        """See `ZygoteTransport.drain`."""
        writable = asyncio.create_task(self._may_write.wait())
        await asyncio.wait([writable, *self._tasks], return_when=asyncio.FIRST_COMPLETED)
        writable.cancel()

    def close_stdin(self) -> None:
        """Discard the whole machine."""
        self.kill()

    @property
    def returncode(self) -> int | None:
        """Negative once the machine is gone."""
        return KILLED if self._is_gone else None

    def kill(self) -> None:
        """Discard the machine with everything in it; see `ZygoteTransport.kill`."""
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
        self._is_gone = True
        return KILLED


async def stop(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancel tasks until they end. The SDK may swallow a cancellation and continue, so it is repeated."""
    running = {task for task in tasks if not task.done()}
    while running:
        for task in running:
            task.cancel()
        _, running = await asyncio.wait(running, timeout=TASK_CANCEL_INTERVAL_S)
    await asyncio.gather(*tasks, return_exceptions=True)
