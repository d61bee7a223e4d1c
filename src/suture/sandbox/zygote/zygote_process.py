"""A zygote's process, and one run in it, from the host's side."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from contextlib import suppress

from suture.errors import SandboxBroken
from suture.sandbox.execution.memory_cgroups import MemoryCgroup
from suture.sandbox.execution.program import SandboxNotStarted
from suture.sandbox.tuning import (
    CHILD_KILL_TIMEOUT_S,
    MAX_KILLED_RUNS_IN_A_ROW,
    MAX_ZYGOTE_AGE_S,
    MAX_ZYGOTE_FRAME_BYTES,
    MAX_ZYGOTE_RUNS,
    MAX_ZYGOTE_STDERR_BYTES,
    READ_CHUNK_BYTES,
    REMOVAL_TIMEOUT_S,
    ZYGOTE_READY_TIMEOUT_S,
)
from suture.sandbox.zygote.transport import ZygoteTransport
from suture.sandbox.zygote.zygote_run import DirectPipes, FdSender, ZygoteRun

HEADER_BYTES = 5
"""A frame's kind, one letter, and its length."""


class Zygote:
    """A process behind the wall that forks a child for each run. Make it with `Zygote.start`."""

    def __init__(
        self,
        transport: ZygoteTransport,
        *,
        max_runs: int | None = None,
        cgroup: MemoryCgroup | None = None,
        fd_sender: FdSender | None = None,
    ) -> None:
        self._transport = transport
        self._fd_sender = fd_sender
        self._cgroup = cgroup
        self._kills = 0
        self._ending: asyncio.Task[None] | None = None
        self._most_runs = max_runs
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
        transport: ZygoteTransport,
        words: bytes,
        *,
        max_runs: int | None = None,
        cgroup: MemoryCgroup | None = None,
        fd_sender: FdSender | None = None,
    ) -> Zygote:
        """Wait until a zygote is ready.

        Args:
            carrier: Where the boot program has been started; it is ended where this fails.
            words: What the boot program reads first (see `build_bundle`).
            most_runs: Runs after which it is let go, where not after the usual number.
            group: The control group that it lives in.
            fd_sender: The way to give it descriptors.

        Raises:
            SandboxNotStarted: It ended before it was ready.
            SandboxBroken: It did neither get ready nor end.
        """
        zygote = cls(transport, max_runs=max_runs, cgroup=cgroup, fd_sender=fd_sender)
        try:
            await zygote._await_ready(words)
        except BaseException:
            await zygote.shut_down()
            raise
        return zygote

    async def _await_ready(self, words: bytes) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):
            self._transport.write(words)
            await self._transport.drain()
        ready = asyncio.create_task(self._ready.wait())
        try:
            await asyncio.wait(
                [ready, self._tasks[0]], timeout=ZYGOTE_READY_TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            ready.cancel()
        if self._ready.is_set():
            return
        if not self._tasks[0].done():
            raise SandboxBroken(f"the zygote was not ready after {ZYGOTE_READY_TIMEOUT_S:g} s")
        await asyncio.wait([self._tasks[1]], timeout=CHILD_KILL_TIMEOUT_S)
        raise SandboxNotStarted(self._complaint.decode("utf-8", "replace").strip())

    @property
    def usable(self) -> bool:
        """Whether it may serve one more run."""
        return not (
            self._retired
            or self._run is not None
            or self._transport.returncode is not None
            or self._runs >= (self._most_runs or MAX_ZYGOTE_RUNS)
            or self._killed_in_a_row >= MAX_KILLED_RUNS_IN_A_ROW
            or time.monotonic() - self._started_s > MAX_ZYGOTE_AGE_S
        )

    async def start_conversation(self, packed: bytes, total_memory_mb: int | None = None) -> ZygoteRun:
        """As `start_run`, with pipes straight to the program where it can be given them."""
        pipes = None if self._fd_sender is None else await DirectPipes.lay(self._fd_sender)
        try:
            return self.start_run(packed, total_memory_mb, pipes)
        except BaseException:
            self.kill("a run was not begun")  # it may wait for one
            if pipes is not None:
                pipes.close()
            raise

    def start_run(
        self,
        packed: bytes,
        total_memory_mb: int | None = None,
        pipes: DirectPipes | None = None,
        *,
        stdin_closed: bool = False,
    ) -> ZygoteRun:
        """Start a run; there must be none.

        Args:
            packed: The request, as `encode_for_zygote` makes it.
            total_memory_mb: What its processes and files may hold together, in MiB; for its control group.
            pipes: To the program, whose ends have been given to the zygote.
            mute: Whether the program's stdin is empty.

        Raises:
            SandboxBroken: The kernel refuses to limit its memory.
        """
        assert self._run is None
        if self._cgroup is not None and total_memory_mb is not None:
            try:
                self._cgroup.limit(total_memory_mb)
            except OSError as fault:
                raise SandboxBroken(f"the memory of a run cannot be limited: {fault}") from fault
            self._kills = self._cgroup.kills()
        self._runs += 1
        self._run = run = ZygoteRun(self, pipes, stdin_closed=stdin_closed)
        self.send(b"d" if pipes is not None else b"n" if stdin_closed else b"q", packed)
        if self._tasks[0].done():  # it died while pipes were laid, and nobody else would tell the run
            self._lose_run(-signal.SIGKILL)
        return run

    def send(self, kind: bytes, content: bytes = b"") -> None:
        """Send one frame (see `inside/relay.py`); a zygote that is gone does not make this fail."""
        self._transport.write(kind + len(content).to_bytes(4, "big") + content)

    async def drain(self) -> None:
        """Wait until more may be sent."""
        await self._transport.drain()

    async def _listen(self) -> None:
        why = "it ended"
        try:
            while True:
                head = await self._transport.stdout.readexactly(HEADER_BYTES)
                size = int.from_bytes(head[1:], "big")
                if size > MAX_ZYGOTE_FRAME_BYTES:
                    why = "a frame is too long"
                    break
                if not self._take(head[:1], await self._transport.stdout.readexactly(size)):
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
        self._lose_run(await self._transport.wait())

    def _lose_run(self, code: int) -> None:
        if self._run is not None:
            said = self._complaint.decode("utf-8", "replace").strip()
            self._run.over(code if code < 0 else -9, out_of_memory=self._starved(), complaint=said)
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
            status, out_of_memory, anomaly = (
                int(ending["status"]),
                bool(ending["starved"]),
                str(ending["anomaly"]),
            )
        except (ValueError, KeyError, TypeError):
            return False
        assert self._run is not None
        run, self._run = self._run, None
        self._retired = self._retired or anomaly
        self._killed_in_a_row = self._killed_in_a_row + 1 if run.killed else 0
        run.over(status, out_of_memory=out_of_memory or self._starved())
        return True

    def _starved(self) -> bool:
        return self._cgroup is not None and self._cgroup.kills() > self._kills

    async def _hear_complaints(self) -> None:
        while chunk := await self._transport.stderr.read(READ_CHUNK_BYTES):
            self._complaint = (self._complaint + chunk)[-MAX_ZYGOTE_STDERR_BYTES:]

    def kill(self, why: str) -> None:
        """End it, and everything that runs in it, now."""
        self._retired = self._retired or why
        self._transport.kill()

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
        self._transport.close_stdin()
        _, alive = await asyncio.wait(self._tasks, timeout=REMOVAL_TIMEOUT_S)
        if self._cgroup is not None:
            self._cgroup.drop()
        if self._fd_sender is not None:
            self._fd_sender.close()
        if alive:
            for task in alive:
                task.cancel()
            await asyncio.wait(alive)
            raise SandboxBroken("a wall still stands after it was ended")
        await self._transport.wait()
        # What it leaves behind dies a moment later than it; a loop that ends before complains in a traceback.
        for stream in (self._transport.stdout, self._transport.stderr):
            with suppress(TimeoutError):
                async with asyncio.timeout(CHILD_KILL_TIMEOUT_S):
                    while await stream.read(READ_CHUNK_BYTES):
                        pass
