"""Talking with a program behind the wall, in frames over its stdin and stdout."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from suture.errors import UsageError
from suture.sandbox.contract import RunResult
from suture.sandbox.runs.program import Program

MOST_FRAME_BYTES = 64 << 20
"""A longer frame is no frame, whoever sends it."""
FINISH_S = 5.0
"""Seconds for a program to end by itself after its stdin was closed."""
EXIT_S = 2.0
"""Seconds from the end of a program's stdout to the program's own."""
HEADER_BYTES = 4
"""A frame's length, the highest byte first."""


class FrameChannel:
    """A conversation with a running program; see `contract.Channel`."""

    def __init__(self, program: Program) -> None:
        self._program = program

    async def send(self, frame: bytes) -> None:
        """Send one frame. A program that has ended does not make this fail; `receive` tells.

        Raises:
            UsageError: The frame is too long.
        """
        if len(frame) > MOST_FRAME_BYTES:
            raise UsageError(f"a frame of {len(frame)} bytes is too long; the most is {MOST_FRAME_BYTES}")
        with suppress(BrokenPipeError, ConnectionResetError):
            self._program.stdin.write(len(frame).to_bytes(HEADER_BYTES, "big") + frame)
            await self._program.stdin.drain()

    async def receive(self, timeout_s: float) -> bytes | None:
        """The next frame, or `None` when the program ended, sent no frame, or was late; then it is dead.

        Args:
            timeout_s: Seconds to wait for it.
        """
        try:
            async with asyncio.timeout(timeout_s):
                size = int.from_bytes(await self._program.stdout.readexactly(HEADER_BYTES), "big")
                if size <= MOST_FRAME_BYTES:
                    return await self._program.stdout.readexactly(size)
            await self._program.die("failed")
        except TimeoutError:
            await self._program.die("timeout")
        except asyncio.IncompleteReadError:
            # It is about to end, and then its exit code is of interest; or it closed its stdout to hide.
            await self._program.die("failed", grace_s=EXIT_S)
        return None

    async def finish(self) -> RunResult:
        """Close its stdin, end it where it still runs, and tell how it ended.

        Raises:
            SandboxBroken: The wall failed.
        """
        self._program.close_stdin()
        return await self._program.result(grace_s=FINISH_S)
