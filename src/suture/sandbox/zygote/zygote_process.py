"""A zygote's process, and one run in it, from the host's side."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from contextlib import suppress

from suture.errors import SandboxBroken
from suture.sandbox.execution.memory_cgroups import MemoryCgroup
from suture.sandbox.execution.program import GONE_S, SandboxNotStarted
from suture.sandbox.zygote.transport import ZygoteTransport
from suture.sandbox.zygote.zygote_run import KILL_S, FdChannel, FdSender, ZygoteRun

READY_S = 60.0
"""Seconds in which a zygote must be ready; generous, because a busy machine is no fault of it."""
MOST_FRAME_BYTES = 1 << 20
"""A longer frame is no frame of a zygote's."""
MOST_RUNS = 500
MOST_AGE_S = 900.0
"""Runs, and seconds of life, after which a zygote is let go and the next one starts afresh."""
MOST_TIMEOUTS = 3
"""Runs in a row that had to be killed, after which a zygote is let go."""
HEADER_BYTES = 5
"""A frame's kind, one letter, and its length."""
CHUNK = 1 << 16
COMPLAINT_BYTES = 8192
"""The end of what a zygote said on stderr: why it died stands there."""


class Zygote:
    """A process behind the wall that forks a child for each run. Make it with `Zygote.start`."""

    def __init__(
        self,
        carrier: ZygoteTransport,
        *,
        most_runs: int | None = None,
        group: MemoryCgroup | None = None,
        fd_sender: FdSender | None = None,
    ) -> None:
        self._carrier = carrier
        self._fd_sender = fd_sender
        self._group = group
        self._kills = 0
        self._ending: asyncio.Task[None] | None = None
        self._most_runs = most_runs
        self._run: ZygoteRun | None = None
        self._ready = asyncio.Event()
        self._started_s = time.monotonic()
        self._runs = 0
        self._killed_in_a_row = 0
        self._complaint = b""
        self._retired = ""
        self._tasks = [asyncio.create_task(self._listen()), asyncio.create_task(self._hear_complaints())]

    @classmethod
    async def start(
        cls,
        carrier: ZygoteTransport,
        words: bytes,
        *,
        most_runs: int | None = None,
        group: MemoryCgroup | None = None,
        fd_sender: FdSender | None = None,
    ) -> Zygote:
        """Wait until a zygote is ready.

        Args:
            carrier: Where the boot program has been started; it is ended where this fails.
            words: What the boot program reads first (see `bundle`).
            most_runs: Runs after which it is let go, where not after the usual number.
            group: The control group that it lives in.
            fd_sender: The way to give it descriptors.

        Raises:
            SandboxNotStarted: It ended before it was ready.
            SandboxBroken: It did neither get ready nor end.
        """
        zygote = cls(carrier, most_runs=most_runs, group=group, fd_sender=fd_sender)
        try:
            await zygote._await_ready(words)
        except BaseException:
            await zygote.shut_down()
            raise
        return zygote

    async def _await_ready(self, words: bytes) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):
            self._carrier.write(words)
            await self._carrier.drain()
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
        raise SandboxNotStarted(self._complaint.decode("utf-8", "replace").strip())

    @property
    def usable(self) -> bool:
        """Whether it may serve one more run."""
        return not (
            self._retired
            or self._run is not None
            or self._carrier.returncode is not None
            or self._runs >= (self._most_runs or MOST_RUNS)
            or self._killed_in_a_row >= MOST_TIMEOUTS
            or time.monotonic() - self._started_s > MOST_AGE_S
        )

    async def begin_conversation(self, packed: bytes, total_memory_mb: int | None = None) -> ZygoteRun:
        """As `begin`, with pipes straight to the program where it can be given them."""
        pipes = None if self._fd_sender is None else await FdChannel.lay(self._fd_sender)
        try:
            return self.begin(packed, total_memory_mb, pipes)
        except BaseException:
            self.kill("a run was not begun")  # it may wait for one
            if pipes is not None:
                pipes.close()
            raise

    def begin(
        self,
        packed: bytes,
        total_memory_mb: int | None = None,
        pipes: FdChannel | None = None,
        *,
        mute: bool = False,
    ) -> ZygoteRun:
        """Start a run; there must be none.

        Args:
            packed: The request, as `pack_for_zygote` makes it.
            total_memory_mb: What its processes and files may hold together, in MiB; for its control group.
            pipes: To the program, whose ends have been given to the zygote.
            mute: Whether the program's stdin is empty.

        Raises:
            SandboxBroken: The kernel refuses to limit its memory.
        """
        assert self._run is None
        if self._group is not None and total_memory_mb is not None:
            try:
                self._group.limit(total_memory_mb)
            except OSError as fault:
                raise SandboxBroken(f"the memory of a run cannot be limited: {fault}") from fault
            self._kills = self._group.kills()
        self._runs += 1
        self._run = run = ZygoteRun(self, pipes, mute=mute)
        self.send(b"d" if pipes is not None else b"n" if mute else b"q", packed)
        if self._tasks[0].done():  # it died while pipes were laid, and nobody else would tell the run
            self._lose_run(-signal.SIGKILL)
        return run

    def send(self, kind: bytes, content: bytes = b"") -> None:
        """Send one frame (see `inside/relay.py`); a zygote that is gone does not make this fail."""
        self._carrier.write(kind + len(content).to_bytes(4, "big") + content)

    async def drain(self) -> None:
        """Wait until more may be sent."""
        await self._carrier.drain()

    async def _listen(self) -> None:
        why = "it ended"
        try:
            while True:
                head = await self._carrier.stdout.readexactly(HEADER_BYTES)
                size = int.from_bytes(head[1:], "big")
                if size > MOST_FRAME_BYTES:
                    why = "a frame is too long"
                    break
                if not self._take(head[:1], await self._carrier.stdout.readexactly(size)):
                    why = "a frame makes no sense"
                    break
        except asyncio.IncompleteReadError:
            pass
        except asyncio.CancelledError:
            # The loop is ending: nobody hears the end of the run now, and whoever waits for it would hang.
            self.kill("its host stopped")
            self._lose_run(-9)
            raise
        self.kill(why)
        self._lose_run(await self._carrier.wait())

    def _lose_run(self, code: int) -> None:
        if self._run is not None:
            said = self._complaint.decode("utf-8", "replace").strip()
            self._run.over(code if code < 0 else -9, starved=self._starved(), complaint=said)
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
            ending = json.loads(content)
            status, starved, anomaly = int(ending["status"]), bool(ending["starved"]), str(ending["anomaly"])
        except (ValueError, KeyError, TypeError):
            return False
        assert self._run is not None
        run, self._run = self._run, None
        self._retired = self._retired or anomaly
        self._killed_in_a_row = self._killed_in_a_row + 1 if run.killed else 0
        run.over(status, starved=starved or self._starved())
        return True

    def _starved(self) -> bool:
        return self._group is not None and self._group.kills() > self._kills

    async def _hear_complaints(self) -> None:
        while chunk := await self._carrier.stderr.read(CHUNK):
            self._complaint = (self._complaint + chunk)[-COMPLAINT_BYTES:]

    def kill(self, why: str) -> None:
        """End it, and everything that runs in it, now."""
        self._retired = self._retired or why
        self._carrier.kill()

    async def shut_down(self) -> None:
        """End it and wait until it is gone, also when cancelled meanwhile; safe to call twice.

        Raises:
            SandboxBroken: It does not end.
        """
        if self._ending is None:
            self._ending = asyncio.create_task(self._end())
        try:
            await asyncio.shield(self._ending)
        except asyncio.CancelledError:
            await asyncio.wait([self._ending])
            raise

    async def _end(self) -> None:
        self.kill("it was let go")
        self._carrier.close_stdin()
        _, alive = await asyncio.wait(self._tasks, timeout=GONE_S)
        if self._group is not None:
            self._group.drop()
        if self._fd_sender is not None:
            self._fd_sender.close()
        if alive:
            for task in alive:
                task.cancel()
            await asyncio.wait(alive)
            raise SandboxBroken("a wall still stands after it was ended")
        await self._carrier.wait()
        # What it leaves behind dies a moment later than it; a loop that ends before complains in a traceback.
        for stream in (self._carrier.stdout, self._carrier.stderr):
            with suppress(TimeoutError):
                async with asyncio.timeout(KILL_S):
                    while await stream.read(CHUNK):
                        pass
