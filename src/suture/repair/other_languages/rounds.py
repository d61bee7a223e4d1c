"""Rounds of trials side by side: where one has found what passes, the others are not waited for long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
LEAST_S = 1.5
SHARE = 0.5
"""Of what a round took until it passed: so long others may go on, for rivals of what was found."""


async def side_by_side(
    rounds: Sequence[Coroutine[Any, Any, list[T]]], passes: Callable[[Sequence[T]], bool]
) -> list[T]:
    """What rounds tell, in their order; of one that was not waited for, nothing.

    Args:
        rounds: They, not begun.
        passes: Whether something passes in what one tells.

    Raises:
        Exception: What went wrong in the first of them in which something did.
    """
    began_s, tasks = time.monotonic(), [asyncio.create_task(one) for one in rounds]
    try:
        waiting = set(tasks)
        while waiting and not any(task.exception() or passes(task.result()) for task in tasks if task.done()):
            _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if waiting:
            await asyncio.wait(waiting, timeout=max(LEAST_S, SHARE * (time.monotonic() - began_s)))
        return [pair for task in tasks if task.done() for pair in task.result()]
    finally:
        for task in tasks:  # none goes on behind a fault
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
