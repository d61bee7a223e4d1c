"""A run that stops at once by Ctrl-C: also in the middle of a computation, and beside work in a thread.

`asyncio.run` cancels the coroutine when the signal comes, and that is heard only where it awaits. Code that
computes for long would go on until it is done, or end without a word at the second Ctrl-C. Here somebody
watches from then on: where the event loop does not turn within a second, the cancellation is raised right
where the code is, and goes the way of any other: the run is recorded as cancelled.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from types import FrameType
from typing import Any, TypeVar, cast

T = TypeVar("T")
PATIENCE_S = 1.0
"""How long the event loop may stand still once it is told to stop."""
WINDING_UP_S = 5.0
"""The same after it was interrupted: what is open is closed then, and written down."""


def run_interruptibly(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end where there is no event loop yet.

    Raises:
        KeyboardInterrupt: The user stopped it, and it did not turn that into a fault of its own.
    """
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return asyncio.run(coroutine)  # somebody else's program hears signals in its own way
    stop = _Stop()

    async def main() -> T:
        stop.begin()
        return await coroutine

    signal.signal(signal.SIGINT, stop.on_signal)
    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        if stop.asked:
            raise KeyboardInterrupt from None
        raise
    finally:
        stop.ended.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)


class _Stop:
    """One run's way to be stopped. Handlers of signals run in the main thread, between two instructions."""

    def __init__(self) -> None:
        self.asked = False
        self.ended = threading.Event()
        self._turned = threading.Event()
        self._nudged = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._cancelling: asyncio.Handle | None = None

    def begin(self) -> None:
        """Note which task is to be stopped: the one that runs."""
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()

    def on_signal(self, _: int, frame: FrameType | None) -> None:
        """Stop; at once where the user insists."""
        if self._nudged:
            self._nudged = False
            if not self._turned.is_set():
                self._interrupt()
        elif self.asked or self._loop is None or self._task is None:
            raise KeyboardInterrupt
        else:
            self.asked = True
            # Not right here: where the task computes, it is to be cancelled once and not once more later.
            self._cancelling = self._loop.call_soon_threadsafe(self._task.cancel)
            self._ping()
            threading.Thread(target=self._watch, daemon=True).start()

    def _interrupt(self) -> None:
        """Raise in whatever computes; where that is another task, the run's own is cancelled as well."""
        if self._cancelling is not None and asyncio.current_task(self._loop) is self._task:
            self._cancelling.cancel()
        raise asyncio.CancelledError

    def _ping(self) -> None:
        """Ask the event loop to say that it turns; it wakes where it waits for something."""
        self._turned.clear()
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._turned.set)

    def _watch(self) -> None:
        """Interrupt what does not come back to the event loop."""
        patience_s = PATIENCE_S
        while not self.ended.wait(patience_s):
            if not self._turned.is_set():
                self._nudged = True
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
                patience_s = WINDING_UP_S
                continue
            try:
                self._ping()
            except RuntimeError:
                return  # it is closed


async def run_in_daemon_thread(work: Callable[[], T]) -> T:
    """Do something in a thread; who is cancelled meanwhile does not wait for it.

    `asyncio.to_thread` would: its threads are waited for when the loop is closed, and Ctrl-C with them.

    Args:
        work: What to do; it must not leave anything half done that others see.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, fault: Exception | None) -> None:
        if done.done():
            return
        if fault is not None:
            done.set_exception(fault)
        else:
            done.set_result(cast(T, result))

    def run() -> None:
        result, fault = None, None
        try:
            result = work()
        except Exception as raised:  # raised where it is awaited
            fault = raised
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, result, fault)

    threading.Thread(target=run, daemon=True).start()
    return await done
