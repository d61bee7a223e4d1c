"""A zygote's process, and one run in it, from the host's side."""

from __future__ import annotations

import asyncio
import json
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import suppress

from suture.errors import SandboxBroken
from suture.sandbox.launch import WallNotBuilt
from suture.sandbox.running import Feed

__all__ = ["Zygote", "ZygoteRun"]

READY_S = 60.0
"""Seconds in which a zygote must be ready; generous, because a busy machine is no fault of it."""
MOST_FRAME_BYTES = 1 << 20
"""A longer frame is no frame of a zygote's."""
MOST_RUNS = 500
MOST_AGE_S = 900.0
MOST_TIMEOUTS = 3
"""Runs in a row that had to be killed, after which a zygote is let go."""
KILL_S = 2.0
"""Seconds in which a zygote must have ended a child; then it is ended itself."""
HEADER_BYTES = 5
CHUNK = 1 << 16
COMPLAINT_BYTES = 8192


class Zygote:
    """A process behind the wall that forks a child for each run. Make it with `Zygote.start`."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._run: ZygoteRun | None = None
        self._ready = asyncio.Event()
        self._started_s = time.monotonic()
        self._runs = 0
        self._killed_in_a_row = 0
        self._complaint = b""
        self._retired = ""
        self._tasks = [asyncio.create_task(self._listen()), asyncio.create_task(self._hear_complaints())]

    @classmethod
    async def start(cls, command: Sequence[str], inherit: Sequence[int], words: bytes) -> Zygote:
        """Start a zygote and wait until it is ready.

        Args:
            command: What builds the wall and starts the boot program.
            inherit: Descriptors that the command needs.
            words: What the boot program reads first (see `bundle`).

        Raises:
            WallNotBuilt: It ended before it was ready.
            SandboxBroken: It did neither get ready nor end.
        """
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env={},
            cwd="/",
            pass_fds=tuple(inherit),
            start_new_session=True,
        )
        zygote = cls(process)
        try:
            await zygote._await_ready(words)
        except BaseException:
            await zygote.end()
            raise
        return zygote

    async def _await_ready(self, words: bytes) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError, ConnectionResetError):
            self._process.stdin.write(words)
            await self._process.stdin.drain()
        ready = asyncio.create_task(self._ready.wait())
        try:
            await asyncio.wait([ready, self._tasks[0]], timeout=READY_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
        if self._ready.is_set():
            return
        if not self._tasks[0].done():
            raise SandboxBroken(f"the zygote was not ready after {READY_S:g} s")
        await asyncio.wait([self._tasks[1]], timeout=KILL_S)
        raise WallNotBuilt(self._complaint.decode("utf-8", "replace").strip())

    @property
    def usable(self) -> bool:
        """Whether it may serve one more run."""
        return not (
            self._retired
            or self._run is not None
            or self._process.returncode is not None
            or self._runs >= MOST_RUNS
            or self._killed_in_a_row >= MOST_TIMEOUTS
            or time.monotonic() - self._started_s > MOST_AGE_S
        )

    @property
    def retired(self) -> str:
        """What was wrong with it, where something was."""
        return self._retired

    def begin(self, packed: bytes) -> ZygoteRun:
        """Start a run; there must be none.

        Args:
            packed: The request, as `pack_for_zygote` makes it.
        """
        assert self._run is None
        self._runs += 1
        self._run = ZygoteRun(self)
        self.send(b"q", packed)
        return self._run

    def send(self, kind: bytes, content: bytes = b"") -> None:
        """Send one frame (see `inside/relay.py`); a zygote that is gone does not make this fail."""
        assert self._process.stdin is not None
        if not self._process.stdin.is_closing():
            self._process.stdin.write(kind + len(content).to_bytes(4, "big") + content)

    async def drain(self) -> None:
        """Wait until more may be sent."""
        assert self._process.stdin is not None
        await self._process.stdin.drain()

    async def _listen(self) -> None:
        assert self._process.stdout is not None
        why = "it ended"
        try:
            while True:
                head = await self._process.stdout.readexactly(HEADER_BYTES)
                size = int.from_bytes(head[1:], "big")
                if size > MOST_FRAME_BYTES:
                    why = "a frame is too long"
                    break
                if not self._take(head[:1], await self._process.stdout.readexactly(size)):
                    why = "a frame makes no sense"
                    break
        except asyncio.IncompleteReadError:
            pass
        self.kill(why)
        code = await self._process.wait()
        if self._run is not None:
            self._run.over(code if code < 0 else -9)
            self._run = None

    def _take(self, kind: bytes, content: bytes) -> bool:
        """Act on one frame; false where it makes no sense."""
        if kind == b"h":
            self._ready.set()
            return not content
        if self._run is None:
            return False
        if kind == b".":
            return self._take_end(content)
        return self._run.take(kind, content)

    def _take_end(self, content: bytes) -> bool:
        try:
            told = json.loads(content)
            status, anomaly = int(told["status"]), str(told["anomaly"])
        except (ValueError, KeyError, TypeError):
            return False
        assert self._run is not None
        run, self._run = self._run, None
        self._retired = self._retired or anomaly
        self._killed_in_a_row = self._killed_in_a_row + 1 if run.killed else 0
        run.over(status)
        return True

    async def _hear_complaints(self) -> None:
        assert self._process.stderr is not None
        while chunk := await self._process.stderr.read(CHUNK):
            self._complaint = (self._complaint + chunk)[-COMPLAINT_BYTES:]

    def kill(self, why: str) -> None:
        """End it, and everything that runs in it, now."""
        self._retired = self._retired or why
        with suppress(ProcessLookupError):
            self._process.kill()

    async def end(self) -> None:
        """End it and wait until it is gone; safe to call twice."""
        self.kill("it was let go")
        assert self._process.stdin is not None
        self._process.stdin.close()
        await asyncio.wait(self._tasks)
        await self._process.wait()


class ZygoteRun:
    """One run in a zygote; see `running.Running`."""

    def __init__(self, zygote: Zygote) -> None:
        self._zygote = zygote
        self._gone = asyncio.Event()
        self._code: int | None = None
        self._ultimatum: asyncio.TimerHandle | None = None
        self.killed = False
        self._feed = RunFeed(zygote, self)
        self.stdin: Feed = self._feed
        self.stdout, self.stderr, self.report = (asyncio.StreamReader() for _ in range(3))
        self.stdout.set_transport(OutputValve(zygote, self))

    @property
    def returncode(self) -> int | None:
        """How the child ended, once it has."""
        return self._code

    def take(self, kind: bytes, content: bytes) -> bool:
        """Act on one frame; false where it makes no sense."""
        if kind in (b"p", b"c"):
            self._feed.pause(kind == b"p")
            return not content
        streams = {b"o": self.stdout, b"e": self.stderr, b"r": self.report}
        if kind not in streams:
            return False
        streams[kind].feed_data(content)
        return True

    def over(self, code: int) -> None:
        """Be told that everything of this run is gone."""
        self._code = code
        if self._ultimatum is not None:
            self._ultimatum.cancel()
        for stream in (self.stdout, self.stderr, self.report):
            stream.feed_eof()
        self._feed.pause(False)
        self._gone.set()

    def kill(self) -> None:
        """End everything of this run now."""
        if self._code is None and not self.killed:
            self.killed = True
            self._zygote.send(b"k")
            loop = asyncio.get_running_loop()
            self._ultimatum = loop.call_later(KILL_S, self._zygote.kill, "it did not end a child")

    async def wait(self) -> int:
        """Wait until everything of this run is gone."""
        await self._gone.wait()
        assert self._code is not None
        return self._code

    def release(self) -> None:
        """Nothing is held besides."""


class RunFeed:
    """A child's stdin; see `running.Feed`."""

    def __init__(self, zygote: Zygote, run: ZygoteRun) -> None:
        self._zygote = zygote
        self._run = run
        self._waiting = bytearray()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._closed = False

    def write(self, data: bytes) -> None:
        """Take bytes; they go out with `drain`."""
        if not self._closed:
            self._waiting += data

    async def drain(self) -> None:
        """Send what was written, as fast as the child takes it."""
        while self._waiting and self._run.returncode is None:
            await self._flowing.wait()
            self._zygote.send(b"i", bytes(self._waiting[:CHUNK]))
            del self._waiting[:CHUNK]
            with suppress(BrokenPipeError, ConnectionResetError):
                await self._zygote.drain()
        self._waiting.clear()

    def pause(self, paused: bool) -> None:
        """Be told whether the child has enough for now."""
        if paused:
            self._flowing.clear()
        else:
            self._flowing.set()

    def close(self) -> None:
        """Let the program see the end; safe to call twice."""
        if not self._closed and self._run.returncode is None:
            self._zygote.send(b"i")
        self._closed = True


class OutputValve(asyncio.Transport):
    """What a stream's reader tells that it has enough for now."""

    def __init__(self, zygote: Zygote, run: ZygoteRun) -> None:
        super().__init__()
        self._zygote = zygote
        self._run = run

    def pause_reading(self) -> None:
        """Let the child wait."""
        self._order(b"p")

    def resume_reading(self) -> None:
        """Let the child go on."""
        self._order(b"c")

    def _order(self, kind: bytes) -> None:
        if self._run.returncode is None:
            self._zygote.send(kind)
