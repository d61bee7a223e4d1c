"""Watch a project: one run for each state of its files, cancelled when the files change."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from watchfiles import awatch

from suture.api.interruption import run_in_daemon_thread
from suture.core.records import Result
from suture.errors import Cancelled, SutureError
from suture.project.workspace import take_snapshot

DEBOUNCE_STEP_MS = 200
"""Changes within this time count as one, because editors write in several steps."""
MAX_DEBOUNCE_MS = 2000
"""After this time, changes are reported even if they continue."""

Heal = Callable[[], Awaitable[Result]]
Apply = Callable[[str], Awaitable[object]]


@dataclass(frozen=True, kw_only=True)
class HealEnded:
    """A run has ended.

    Attributes:
        result: The result.
        applied: Whether its change is applied to the user's files.
        fault: Why it could not be applied, if it should have been.
    """

    result: Result
    applied: bool = False
    fault: SutureError | None = None


@dataclass(frozen=True, kw_only=True)
class HealFailed:
    """A run could not be executed, such as without a test command."""

    fault: SutureError


@dataclass(frozen=True, kw_only=True)
class HealSuperseded:
    """The user changed files during a run: it was cancelled, and another run follows.

    Attributes:
        changed: The changed files, relative to the project.
    """

    changed: tuple[str, ...]


WatchEvent = HealEnded | HealFailed | HealSuperseded


async def watch_project(
    project: Path, heal: Heal, apply: Apply | None = None
) -> AsyncGenerator[WatchEvent, None]:
    """Heal a project, and again after each change, forever.

    A change counts if the content of a file changes that is part of the project as in `take_snapshot`: saving
    the same text, caches and files that git ignores do not count.

    Args:
        project: The folder.
        heal: Starts a run that does not write to the folder.
        apply: Applies a healed run to the folder; without it the change stays a diff.

    Yields:
        How each run ended.

    Raises:
        UsageError: The folder cannot be read.
    """
    changed = asyncio.Event()
    listener = asyncio.create_task(_listen(project, changed))
    try:
        await asyncio.sleep(0)  # lets the listener start
        files = await run_in_daemon_thread(lambda: hash_files(project))
        while True:
            changed.clear()
            run = asyncio.ensure_future(heal())
            try:
                now = await _wait_for_run_or_change(run, changed, project, files, listener)
            finally:
                await _cancel_and_wait(run)
            if now is not None:
                yield HealSuperseded(changed=changed_paths(files, now))
                files = now
                continue
            yield (event := await _finish_run(run, project, files, apply))
            if isinstance(event, HealEnded) and event.applied and event.result.candidate is not None:
                files = {**files, **_hash_texts(event.result.candidate.files)}
            files = await _wait_for_change(changed, project, files, listener)
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


async def _listen(project: Path, changed: asyncio.Event) -> None:
    """Record that something changed; which files count is decided where it matters."""
    async for _ in awatch(project, step=DEBOUNCE_STEP_MS, debounce=MAX_DEBOUNCE_MS):
        changed.set()


async def _wait_for_run_or_change(
    run: asyncio.Future[Result],
    changed: asyncio.Event,
    project: Path,
    files: Mapping[str, str],
    listener: asyncio.Task[None],
) -> Mapping[str, str] | None:
    """Wait for the run to end, or for its files to change.

    Returns the changed files, or `None` if the run has ended.
    """
    while True:
        waiting = asyncio.create_task(changed.wait())
        try:
            await asyncio.wait((run, waiting, listener), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if run.done():
            return None
        if listener.done():
            listener.result()
        changed.clear()
        now = await run_in_daemon_thread(lambda: hash_files(project))
        if now != files:
            return now


async def _cancel_and_wait(run: asyncio.Future[Result]) -> None:
    """Cancel an unfinished run, and wait until it is recorded."""
    if not run.done():
        run.cancel()
        with suppress(asyncio.CancelledError, Cancelled):
            await run


async def _finish_run(
    run: asyncio.Future[Result], project: Path, files: Mapping[str, str], apply: Apply | None
) -> WatchEvent:
    """Return how a run ended, and apply its change if the files are still the same."""
    try:
        result = run.result()
    except Cancelled:
        raise
    except SutureError as fault:
        return HealFailed(fault=fault)
    if apply is None or result.outcome != "healed":
        return HealEnded(result=result)
    now = await run_in_daemon_thread(lambda: hash_files(project))
    if now != files:
        return HealSuperseded(changed=changed_paths(files, now))
    try:
        await apply(result.run_id)
    except SutureError as fault:
        return HealEnded(result=result, fault=fault)
    return HealEnded(result=result, applied=True)


async def _wait_for_change(
    changed: asyncio.Event, project: Path, files: Mapping[str, str], listener: asyncio.Task[None]
) -> Mapping[str, str]:
    """Wait until the files differ, and return them."""
    while True:
        waiting = asyncio.create_task(changed.wait())
        try:
            await asyncio.wait((waiting, listener), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if listener.done():
            listener.result()
        changed.clear()
        if (now := await run_in_daemon_thread(lambda: hash_files(project))) != files:
            return now
