"""A zygote and its runs as the host sees them: a zygote gets one run after another, until it must be replaced."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from contextlib import suppress

from suture.errors import SandboxBroken
from suture.sandbox import tuning
from suture.sandbox.execution.memory_cgroups import MemoryCgroup
from suture.sandbox.execution.process import StdinWriter
from suture.sandbox.execution.program import SandboxNotStarted
from suture.sandbox.zygote.zygote_transport import DirectPipes, FdSender, ZygoteTransport

HEADER_BYTES = 5
"""A frame starts with its kind, one letter, and its length, a big-endian u32."""


class Zygote:
    """A process in a sandbox that forks a child for each run. Create it with `Zygote.start`."""

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
        self._oom_kills_before = 0
        self._shutdown_task: asyncio.Task[None] | None = None
        self._max_runs = max_runs
        self._run: ZygoteRun | None = None
        self._ready = asyncio.Event()
        self._started_s = time.monotonic()
        self._runs = 0
        self._killed_in_a_row = 0
        self._stderr_tail = b""
        self._retirement_reason = ""
        self._tasks = [asyncio.create_task(self._read_frames()), asyncio.create_task(self._read_stderr())]

    @classmethod
    async def start(
        cls,
        transport: ZygoteTransport,
        payload: bytes,
        *,
        max_runs: int | None = None,
        cgroup: MemoryCgroup | None = None,
        fd_sender: FdSender | None = None,
    ) -> Zygote:
        """Wait until a zygote is ready.

        Args:
            transport: The connection to the boot program; it is killed if this fails.
            payload: What the boot program reads first (see `build_bundle`).
            max_runs: Runs after which it is replaced, if not `tuning.MAX_ZYGOTE_RUNS`.
            cgroup: The control group that it lives in.

        Raises:
            SandboxNotStarted: It ended before it was ready.
            SandboxBroken: It neither became ready nor ended.
        """
        zygote = cls(transport, max_runs=max_runs, cgroup=cgroup, fd_sender=fd_sender)
        try:
            await zygote._wait_until_ready(payload)
        except BaseException:
            await zygote.shut_down()
            raise
        return zygote

    async def _wait_until_ready(self, payload: bytes) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):
            self._transport.write(payload)
            await self._transport.drain()
        ready = asyncio.create_task(self._ready.wait())
        try:
            await asyncio.wait(
                [ready, self._tasks[0]],
                timeout=tuning.ZYGOTE_READY_TIMEOUT_S,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            ready.cancel()
        if self._ready.is_set():
            return
        if not self._tasks[0].done():
            raise SandboxBroken(f"the zygote was not ready after {tuning.ZYGOTE_READY_TIMEOUT_S:g} s")
        await asyncio.wait([self._tasks[1]], timeout=tuning.CHILD_KILL_TIMEOUT_S)
        raise SandboxNotStarted(self._stderr_tail.decode("utf-8", "replace").strip())

    @property
    def is_usable(self) -> bool:
        """Whether it may serve one more run."""
        return not (
            self._retirement_reason
            or self._run is not None
            or self._transport.returncode is not None
            or self._runs >= (self._max_runs or tuning.MAX_ZYGOTE_RUNS)
            or self._killed_in_a_row >= tuning.MAX_KILLED_RUNS_IN_A_ROW
            or time.monotonic() - self._started_s > tuning.MAX_ZYGOTE_AGE_S
        )

    async def start_conversation(self, encoded: bytes, total_memory_mb: int | None = None) -> ZygoteRun:
        """Start a run, with pipes straight to the program if descriptors can be sent; see `start_run`."""
        pipes = None if self._fd_sender is None else await DirectPipes.create(self._fd_sender)
        try:
            return self.start_run(encoded, total_memory_mb, pipes)
        except BaseException:
            self.kill("a run was not begun")  # the zygote may wait for a request that never comes
            if pipes is not None:
                pipes.close()
            raise

    def start_run(
        self,
        encoded: bytes,
        total_memory_mb: int | None = None,
        pipes: DirectPipes | None = None,
        *,
        stdin_closed: bool = False,
    ) -> ZygoteRun:
        """Start a run. No other run may be in progress.

        Args:
            encoded: The request, as `encode_for_zygote` returns it.
            total_memory_mb: Memory of all its processes and files together, in MiB, for the control group.
            pipes: Pipes to the program, whose ends have been sent to the zygote.
            stdin_closed: Whether the program's stdin is empty.

        Raises:
            SandboxBroken: The kernel refuses to limit its memory.
        """
        assert self._run is None
        if self._cgroup is not None and total_memory_mb is not None:
            try:
                self._cgroup.limit_growth(total_memory_mb)
            except OSError as fault:
                raise SandboxBroken(f"the memory of a run cannot be limited: {fault}") from fault
            self._oom_kills_before = self._cgroup.count_oom_kills()
        self._runs += 1
        self._run = run = ZygoteRun(self, pipes, stdin_closed=stdin_closed)
        # The three kinds of requests: with direct pipes, without stdin, and with everything relayed.
        self.send(b"d" if pipes is not None else b"n" if stdin_closed else b"q", encoded)
        if self._tasks[0].done():  # the zygote died while the pipes were created; the reader has ended
            self._abort_run(-signal.SIGKILL)
        return run

    def send(self, kind: bytes, content: bytes = b"") -> None:
        """Send one frame (see `inside/relay.py`). This does not fail if the zygote is gone."""
        self._transport.write(kind + len(content).to_bytes(4, "big"))
        if content:  # written by itself, because joining it with its head would copy all files of a project
            self._transport.write(content)

    async def drain(self) -> None:
        """Wait until more may be sent."""
        await self._transport.drain()

    async def _read_frames(self) -> None:
        """Handle the zygote's frames until it ends or sends one that makes no sense."""
        reason = "it ended"
        try:
            while True:
                head = await self._transport.stdout.readexactly(HEADER_BYTES)
                size = int.from_bytes(head[1:], "big")
                if size > tuning.MAX_ZYGOTE_FRAME_BYTES:
                    reason = "a frame is too long"
                    break
                if not self._handle_frame(head[:1], await self._transport.stdout.readexactly(size)):
                    reason = "a frame makes no sense"
                    break
        except asyncio.IncompleteReadError:
            pass
        except asyncio.CancelledError:
            # The event loop is ending: nothing will report the run's end later, and a waiter would hang.
            self.kill("its host stopped")
            self._abort_run(-9)
            raise
        self.kill(reason)
        self._abort_run(await self._transport.wait())

    def _abort_run(self, code: int) -> None:
        if self._run is not None:
            stderr_text = self._stderr_tail.decode("utf-8", "replace").strip()
            # A zygote that exits on its own has killed its child too, as signal 9 does.
            self._run.finish(
                code if code < 0 else -9, out_of_memory=self._has_oom_kill(), error_text=stderr_text
            )
            self._run = None

    def _handle_frame(self, kind: bytes, content: bytes) -> bool:
        """Handle one frame; return false if it makes no sense."""
        if kind == b"h":
            self._ready.set()
            return not content
        if self._run is None:
            return False
        if kind == b".":
            return self._handle_end(content)
        return self._run.handle_frame(kind, content)

    def _handle_end(self, content: bytes) -> bool:
        """Handle the frame that ends a run; return false if it makes no sense."""
        try:
            ending = json.loads(content)
            status, out_of_memory = int(ending["status"]), bool(ending["starved"])
            anomaly = str(ending["anomaly"])
        except (ValueError, KeyError, TypeError):
            return False
        assert self._run is not None
        run, self._run = self._run, None
        self._retirement_reason = self._retirement_reason or anomaly
        self._killed_in_a_row = self._killed_in_a_row + 1 if run.killed else 0
        run.finish(status, out_of_memory=out_of_memory or self._has_oom_kill())
        return True

    def _has_oom_kill(self) -> bool:
        return self._cgroup is not None and self._cgroup.count_oom_kills() > self._oom_kills_before

    async def _read_stderr(self) -> None:
        while chunk := await self._transport.stderr.read(tuning.READ_CHUNK_BYTES):
            self._stderr_tail = (self._stderr_tail + chunk)[-tuning.MAX_ZYGOTE_STDERR_BYTES :]

    def kill(self, reason: str) -> None:
        """Kill it and everything that runs in it now."""
        self._retirement_reason = self._retirement_reason or reason
        self._transport.kill()

    async def shut_down(self) -> None:
        """Kill it and wait until it is gone, even if this is cancelled in the meantime. Safe to call twice.

        Raises:
            SandboxBroken: It does not end.
        """
        if self._shutdown_task is None:
            self._shutdown_task = asyncio.create_task(self._shut_down())
        try:
            await asyncio.shield(self._shutdown_task)
        except asyncio.CancelledError:
            await asyncio.wait([self._shutdown_task])
            raise

    async def _shut_down(self) -> None:
        self.kill("it was let go")
        self._transport.close_stdin()
        _, alive = await asyncio.wait(self._tasks, timeout=tuning.REMOVAL_TIMEOUT_S)
        if self._cgroup is not None:
            self._cgroup.schedule_removal()
        if self._fd_sender is not None:
            self._fd_sender.close()
        if alive:
            for task in alive:
                task.cancel()
            await asyncio.wait(alive)
            raise SandboxBroken("a zygote still lives after it was killed")
        await self._transport.wait()
        # Its descendants die a moment later. An event loop that closes before that prints tracebacks.
        for stream in (self._transport.stdout, self._transport.stderr):
            with suppress(TimeoutError):
                async with asyncio.timeout(tuning.CHILD_KILL_TIMEOUT_S):
                    while await stream.read(tuning.READ_CHUNK_BYTES):
                        pass


class ZygoteRun:
    """One run in a zygote; see `process.SupervisedRun`."""

    def __init__(
        self, zygote: Zygote, pipes: DirectPipes | None = None, *, stdin_closed: bool = False
    ) -> None:
        self._zygote = zygote
        self._pipes = pipes
        self._is_gone = asyncio.Event()
        self._code: int | None = None
        self._delayed_kill: asyncio.TimerHandle | None = None
        self.killed = self.out_of_memory = False
        self.error_text = ""
        self._relayed_stdin = RelayedStdin(zygote, self, closed=stdin_closed)
        self.stdin: StdinWriter = self._relayed_stdin
        self.stdout, self.stderr, self.report = (asyncio.StreamReader() for _ in range(3))
        self.stdout.set_transport(OutputFlowControl(zygote, self))
        self._relayed = {b"o": self.stdout, b"e": self.stderr, b"r": self.report}
        if pipes is not None:
            self.stdin, self.stdout = pipes.stdin, pipes.stdout
            del self._relayed[b"o"]

    @property
    def returncode(self) -> int | None:
        """See `SupervisedRun.returncode`."""
        return self._code

    def handle_frame(self, kind: bytes, content: bytes) -> bool:
        """Handle one frame; return false if it makes no sense."""
        if kind in (b"p", b"c"):
            self._relayed_stdin.pause(kind == b"p")
            return not content
        if kind not in self._relayed:
            return False
        self._relayed[kind].feed_data(content)
        return True

    def finish(self, code: int, *, out_of_memory: bool = False, error_text: str = "") -> None:
        """Record that everything of this run is gone; see `SupervisedRun` for the arguments."""
        self._code = code
        self.out_of_memory = out_of_memory
        self.error_text = error_text
        if self._delayed_kill is not None:
            self._delayed_kill.cancel()
        for stream in self._relayed.values():
            stream.feed_eof()
        self._relayed_stdin.pause(False)
        self._is_gone.set()

    def kill(self) -> None:
        """See `SupervisedRun.kill`. A zygote that does not obey is killed with the run."""
        if self._code is None and not self.killed:
            self.killed = True
            self._zygote.send(b"k")
            loop = asyncio.get_running_loop()
            self._delayed_kill = loop.call_later(
                tuning.CHILD_KILL_TIMEOUT_S, self._zygote.kill, "it did not end a child"
            )

    async def wait(self) -> int:
        """See `SupervisedRun.wait`."""
        await self._is_gone.wait()
        assert self._code is not None
        return self._code

    def release(self) -> None:
        """Close the direct pipes, if there are any. Safe to call twice."""
        if self._pipes is not None:
            self._pipes.close()


class RelayedStdin:
    """A child's stdin; see `process.StdinWriter`."""

    def __init__(self, zygote: Zygote, run: ZygoteRun, *, closed: bool) -> None:
        self._zygote = zygote
        self._run = run
        self._unsent = bytearray()
        self._may_send = asyncio.Event()
        self._may_send.set()
        self._closed = closed

    def write(self, data: bytes) -> None:
        """Queue bytes; `drain` sends them."""
        if not self._closed:
            self._unsent += data

    async def drain(self) -> None:
        """Send what was written, as fast as the child reads it."""
        while self._unsent:
            await self._may_send.wait()
            if self._run.returncode is not None:  # what is sent now would go to the next run
                break
            self._zygote.send(b"i", bytes(self._unsent[: tuning.READ_CHUNK_BYTES]))
            del self._unsent[: tuning.READ_CHUNK_BYTES]
            with suppress(BrokenPipeError, ConnectionResetError):
                await self._zygote.drain()
        self._unsent.clear()

    def pause(self, paused: bool) -> None:
        """Record whether the child has enough input for now."""
        if paused:
            self._may_send.clear()
        else:
            self._may_send.set()

    def close(self) -> None:
        """Let the program see the end of its stdin. Safe to call twice."""
        if not self._closed and self._run.returncode is None:
            self._zygote.send(b"i")
        self._closed = True


class OutputFlowControl(asyncio.Transport):
    """The transport through which a stream reader reports that its buffer is full."""

    def __init__(self, zygote: Zygote, run: ZygoteRun) -> None:
        super().__init__()
        self._zygote = zygote
        self._run = run

    def pause_reading(self) -> None:
        """Ask the zygote to stop reading the child's stdout."""
        self._send_order(b"p")

    def resume_reading(self) -> None:
        """Ask the zygote to read the child's stdout again."""
        self._send_order(b"c")

    def _send_order(self, kind: bytes) -> None:
        if self._run.returncode is None:
            self._zygote.send(kind)
