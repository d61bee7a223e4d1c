"""Run a coroutine so that Ctrl-C stops it at once, even while it computes or waits for work in a thread.

`asyncio.run` cancels the coroutine on the signal, and the coroutine notices that only where it awaits. Code
that computes for a long time would run to its end, or die without a record at the second Ctrl-C. Here a watcher
thread starts with the signal: if the event loop does not respond within a second, the cancellation is raised in
the running code, and the run is recorded as cancelled like any other.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any, Generic, TypeVar

T = TypeVar("T")
RESPONSE_TIMEOUT_S = 1.0
"""Seconds that the event loop may fail to respond after it was asked to stop."""
CLEANUP_TIMEOUT_S = 5.0
"""Seconds that the event loop may fail to respond after an interruption, while files are closed and the end is
recorded. Both times are chosen by judgement; not measured."""


def _is_in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run one of this package's coroutines to its end.

    Where an event loop is running already, as in a notebook, the coroutine runs in its own thread; the running loop
    waits in the meantime.

    Raises:
        KeyboardInterrupt: The user stopped it before a run had begun. Later a run ends as `Cancelled`.
    """
    if _is_in_event_loop():
        with ThreadPoolExecutor(1) as executor:
            return executor.submit(asyncio.run, coroutine).result()
    is_main_thread = threading.current_thread() is threading.main_thread()
    if not is_main_thread or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return asyncio.run(coroutine)  # The embedding program handles signals in its own way.
    interruption = _Interruption()

    async def main() -> T:
        interruption.register_current_task()
        return await coroutine

    signal.signal(signal.SIGINT, interruption.on_signal)
    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        if interruption.requested:
            raise KeyboardInterrupt from None
        raise
    finally:
        interruption.ended.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)


class _Interruption:
    """Stops one run. Python calls signal handlers in the main thread, between two instructions."""

    def __init__(self) -> None:
        self.requested = False
        self.ended = threading.Event()
        self._loop_responded = threading.Event()
        self._sent_by_watcher = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._cancelling: asyncio.Handle | None = None

    def register_current_task(self) -> None:
        """Remember the current task as the one to stop."""
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()

    def on_signal(self, _: int, frame: FrameType | None) -> None:
        """Cancel the run; a second Ctrl-C ends the program at once."""
        if self._sent_by_watcher:
            self._sent_by_watcher = False
            if not self._loop_responded.is_set():
                self._interrupt()
        elif self.requested or self._loop is None or self._task is None:
            raise KeyboardInterrupt
        else:
            self.requested = True
            # Scheduled and not done here, so that `_interrupt` can withdraw it: a task that computes must be
            # cancelled only once.
            self._cancelling = self._loop.call_soon_threadsafe(self._task.cancel)
            self._ping()
            threading.Thread(target=self._watch, daemon=True).start()

    def _interrupt(self) -> None:
        """Raise in the code that computes. If that is another task, the event loop cancels the run's task too."""
        if self._cancelling is not None and asyncio.current_task(self._loop) is self._task:
            self._cancelling.cancel()
        raise asyncio.CancelledError

    def _ping(self) -> None:
        """Ask the event loop to respond; this also wakes a loop that waits."""
        self._loop_responded.clear()
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._loop_responded.set)

    def _watch(self) -> None:
        """Interrupt code that does not return to the event loop."""
        timeout_s = RESPONSE_TIMEOUT_S
        while not self.ended.wait(timeout_s):
            if not self._loop_responded.is_set():
                self._sent_by_watcher = True
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
                timeout_s = CLEANUP_TIMEOUT_S
                continue
            try:
                self._ping()
            except RuntimeError:
                return  # The event loop is closed.


class LoopThread(Generic[T]):
    """Runs a coroutine on its own event loop, in a daemon thread.

    Attributes:
        end: What the coroutine returns or raises.
    """

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self.end: Future[T] = Future()
        self._start: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = Future()
        threading.Thread(target=asyncio.run, args=(self._run(coroutine),), daemon=True).start()

    async def _run(self, coroutine: Coroutine[Any, Any, T]) -> None:
        task = asyncio.ensure_future(coroutine)
        self._start.set_result((asyncio.get_running_loop(), task))
        await asyncio.wait([task])
        if task.cancelled():
            self.end.cancel()
        elif (fault := task.exception()) is not None:
            self.end.set_exception(fault)
        else:
            self.end.set_result(task.result())

    def cancel(self) -> None:
        """Cancel the coroutine. It ends later."""
        loop, task = self._start.result()
        with suppress(RuntimeError):  # The event loop is closed: it has ended.
            loop.call_soon_threadsafe(task.cancel)


async def run_in_loop_thread(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run one of this package's coroutines, which read files, without holding up the caller's event loop.

    If the caller is cancelled, the coroutine is too, and its end is awaited.
    """
    thread = LoopThread(coroutine)
    end = asyncio.wrap_future(thread.end)
    try:
        return await asyncio.shield(end)
    except asyncio.CancelledError:
        thread.cancel()
        await asyncio.wait([end])
        raise


async def run_in_daemon_thread(work: Callable[[], T]) -> T:
    """Run a function in a thread. A caller that is cancelled does not wait for it.

    Closing the event loop waits for the threads of `asyncio.to_thread`, so that Ctrl-C would wait too.

    Args:
        work: The function. It may be abandoned halfway, so it must not leave anything half done that others see.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(set_outcome: Callable[[], None]) -> None:
        if not future.done():
            set_outcome()

    def run() -> None:
        try:
            set_outcome = partial(future.set_result, work())
        except Exception as fault:  # It is raised again where the caller awaits.
            set_outcome = partial(future.set_exception, fault)
        with suppress(RuntimeError):  # The event loop is closed, and nothing waits any more.
            loop.call_soon_threadsafe(settle, set_outcome)

    threading.Thread(target=run, daemon=True).start()
    return await future
