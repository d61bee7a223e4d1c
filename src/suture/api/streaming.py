"""A run as a stream of its events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from suture.api.healing import heal
from suture.api.solving import solve
from suture.core.ledger import Event
from suture.core.records import Result, Task
from suture.errors import UsageError


async def stream(task: str | Task | Path, **options: Any) -> AsyncGenerator[Event | Result, None]:
    """Write code for a task, or repair a project, and tell each step as it happens.

    The events are those of the run's ledger, read from it: whoever takes their time with one does not slow
    the run. Whoever stops listening before the end, by closing the iterator, stops the run.

    Args:
        task: A statement or a `Task`, as `solve` takes them; or the `Path` of a project, as `heal` does.
        options: Those of `solve` or `heal`, all but `on_event`.

    Yields:
        Every event, and at last the result.

    Raises:
        UsageError: The task cannot be worked with.
        SutureError: As `solve` and `heal`, after the last event.
    """
    if "on_event" in options:
        raise UsageError("a stream is its own listener", remedy="leave out on_event")
    events: asyncio.Queue[Event | None] = asyncio.Queue()
    options["on_event"] = events.put_nowait
    run = heal(task, **options) if isinstance(task, Path) else solve(task, **options)
    work = asyncio.get_running_loop().create_task(run)
    work.add_done_callback(lambda _: events.put_nowait(None))
    try:
        while (event := await events.get()) is not None:
            yield event
        yield await work
    finally:
        work.cancel()
        await asyncio.wait([work])
        if not work.cancelled():
            work.exception()  # seen: whoever still listened has had it raised
