"""Work that takes a moment and awaits nothing, beside the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar, cast

T = TypeVar("T")


async def in_thread(work: Callable[[], T]) -> T:
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
