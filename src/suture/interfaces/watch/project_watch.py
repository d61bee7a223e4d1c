"""Watch a project: run something for each state of its files, and cancel it when the files change."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from watchfiles import awatch

from suture.core.interruption import run_in_daemon_thread
from suture.errors import Cancelled, SutureError, UsageError
from suture.project.workspace import take_snapshot

DEBOUNCE_STEP_MS = 200
"""Changes within this time count as one, because editors write in several steps. Chosen by judgement; not measured."""
MAX_DEBOUNCE_MS = 2000
"""After this time, changes are reported even if they continue. Chosen by judgement; not measured."""
POLL_DELAY_MS = 1000
"""Time between two polls of all files where the system sends no notifications. Chosen by judgement; not measured."""

T = TypeVar("T")
"""What a run returns, such as a `Result` or a `Judgement`."""
Run = Callable[[], Awaitable[T]]
"""Starts a run and returns its result."""
Apply = Callable[[T], Awaitable[Mapping[str, str]]]
"""Applies a run's change to the user's files; returns path -> text of what it wrote, nothing if there is no change."""


@dataclass(frozen=True, kw_only=True)
class WatchedRunEnded(Generic[T]):
    """A run has ended.

    Attributes:
        written: Path -> text of the user's files to which its change was applied.
        fault: Why it could not be applied, if it should have been.
    """

    result: T
    written: Mapping[str, str] = field(default_factory=dict)
    fault: SutureError | None = None


@dataclass(frozen=True, kw_only=True)
class WatchedRunFailed:
    """A run could not be executed, such as without a test command."""

    fault: SutureError


@dataclass(frozen=True, kw_only=True)
class WatchedRunSuperseded:
    """The user changed files during a run: it was cancelled, and another run follows.

    Attributes:
        changed: The changed files, relative to the project.
    """

    changed: tuple[str, ...]


WatchEvent = WatchedRunEnded[T] | WatchedRunFailed | WatchedRunSuperseded


async def watch_project(
    project: Path, start: Run[T], apply: Apply[T] | None = None
) -> AsyncGenerator[WatchEvent[T], None]:
    """Start a run for a project, and again after each change, forever.

    Only changed content of files that `take_snapshot` includes counts. Saving the same content does not count,
    and neither do caches and files that git ignores.

    Args:
        project: The folder.
        start: Starts a run that does not write to the folder.
        apply: Applies a run's change to the folder; without it the change stays a diff.

    Yields:
        How each run ended.

    Raises:
        UsageError: The folder cannot be read.
    """
    notified = asyncio.Event()
    listener = asyncio.create_task(_listen(project, notified))
    try:
        await asyncio.sleep(0)  # lets the listener start
        files = await run_in_daemon_thread(lambda: hash_files(project))
        while True:
            notified.clear()
            run = asyncio.ensure_future(start())
            try:
                new_files = await _wait_for_change(project, files, notified, listener, run)
            finally:
                await _cancel_and_wait(run)
            if new_files is not None:
                yield WatchedRunSuperseded(changed=changed_paths(files, new_files))
                files = new_files
                continue
            yield (event := await _finish_run(run, project, files, apply))
            if isinstance(event, WatchedRunEnded):
                files = {**files, **_hash_texts(event.written)}
            new_files = await _wait_for_change(project, files, notified, listener)
            assert new_files is not None  # without a run, only a change ends the waiting
            files = new_files
    finally:
        listener.cancel()
        with suppress(asyncio.CancelledError):
            await listener


def hash_files(project: Path) -> Mapping[str, str]:
    """Return each file of a project with a hash of its content."""
    return {
        path: hashlib.sha256(content).hexdigest() for path, content in take_snapshot(project).files.items()
    }


def changed_paths(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """Return the added, removed and changed files, sorted."""
    return tuple(sorted(path for path in {*before, *after} if before.get(path) != after.get(path)))


def _hash_texts(files: Mapping[str, str]) -> Mapping[str, str]:
    return {path: hashlib.sha256(text.encode()).hexdigest() for path, text in files.items()}


async def _listen(project: Path, notified: asyncio.Event) -> None:
    """Set an event whenever something changes; the waiting side decides which changes count."""
    for polls in (False, True):
        with suppress(OSError, RuntimeError):  # the system has no notifications, or none left for this user
            changes = awatch(
                project,
                step=DEBOUNCE_STEP_MS,
                debounce=MAX_DEBOUNCE_MS,
                force_polling=polls or None,
                poll_delay_ms=POLL_DELAY_MS,
            )
            async for _ in changes:
                notified.set()
    raise UsageError(
        f"changes of {str(project)!r} cannot be watched",
        remedy="check that the folder exists and can be read",
    )


async def _wait_for_change(
    project: Path,
    files: Mapping[str, str],
    notified: asyncio.Event,
    listener: asyncio.Task[None],
    run: asyncio.Future[T] | None = None,
) -> Mapping[str, str] | None:
    """Wait until the files differ, and return them; return `None` if a run ends first."""
    while True:
        notification = asyncio.create_task(notified.wait())
        awaited = (notification, listener) if run is None else (notification, listener, run)
        try:
            await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
        finally:
            notification.cancel()
        if run is not None and run.done():
            return None
        if listener.done():
            listener.result()  # raises what ended the listener
        notified.clear()
        new_files = await run_in_daemon_thread(lambda: hash_files(project))
        if new_files != files:
            return new_files


async def _cancel_and_wait(run: asyncio.Future[T]) -> None:
    """Cancel an unfinished run, and wait until it is recorded."""
    if not run.done():
        run.cancel()
        with suppress(asyncio.CancelledError, Cancelled):
            await run


async def _finish_run(
    run: asyncio.Future[T], project: Path, files: Mapping[str, str], apply: Apply[T] | None
) -> WatchEvent[T]:
    """Return how a run ended, and apply its change if the files are still the same."""
    try:
        result = run.result()
    except Cancelled:
        raise
    except SutureError as fault:
        return WatchedRunFailed(fault=fault)
    if apply is None:
        return WatchedRunEnded(result=result)
    new_files = await run_in_daemon_thread(lambda: hash_files(project))
    if new_files != files:
        return WatchedRunSuperseded(changed=changed_paths(files, new_files))
    try:
        return WatchedRunEnded(result=result, written=await apply(result))
    except SutureError as fault:
        return WatchedRunEnded(result=result, fault=fault)
