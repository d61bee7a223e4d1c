"""Watch a project: a run for each state of its files, taken back once that state is no longer theirs."""

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

QUIET_MS = 200
"""Changes that follow one another within this time are heard as one: editors write in several steps."""
LONGEST_MS = 2000
"""After this long they are heard even where they go on."""

Heal = Callable[[], Awaitable[Result]]
Apply = Callable[[str], Awaitable[object]]


@dataclass(frozen=True, kw_only=True)
class RunEnded:
    """A run came to its end.

    Attributes:
        result: How.
        applied: Whether its change is in the user's files now.
        fault: Why it is not, where it was to be.
    """

    result: Result
    applied: bool = False
    fault: SutureError | None = None


@dataclass(frozen=True, kw_only=True)
class RunFailed:
    """A run could not be made for these files, such as for want of a test command."""

    fault: SutureError


@dataclass(frozen=True, kw_only=True)
class RunSuperseded:
    """The user changed files under a run's hands: it was cancelled, and another one follows.

    Attributes:
        changed: Which ones, relative to the project.
    """

    changed: tuple[str, ...]


WatchEvent = RunEnded | RunFailed | RunSuperseded


async def watch(project: Path, heal: Heal, apply: Apply | None = None) -> AsyncGenerator[WatchEvent, None]:
    """Heal a project, and again after each change of it, for ever.

    A change counts where a file has another content that is part of the project, as `take_snapshot` has it:
    saving the same text again, caches and what git ignores start and stop nothing.

    Args:
        project: The folder.
        heal: Starts a run that writes nothing into it.
        apply: Writes what a run has healed into the folder; its change stays a diff where not given.

    Yields:
        What became of each run.

    Raises:
        UsageError: The folder cannot be read.
    """
    changed = asyncio.Event()
    listening = asyncio.create_task(_listen(project, changed))
    try:
        await asyncio.sleep(0)  # from here on it listens
        files = await run_in_daemon_thread(lambda: hash_files(project))
        while True:
            changed.clear()
            run = asyncio.ensure_future(heal())
            try:
                now = await _overtaken(run, changed, project, files, listening)
            finally:
                await _stopped(run)
            if now is not None:
                yield RunSuperseded(changed=changed_paths(files, now))
                files = now
                continue
            yield (seen := await _told(run, project, files, apply))
            if isinstance(seen, RunEnded) and seen.applied and seen.result.candidate is not None:
                files = {**files, **_digests(seen.result.candidate.files)}
            files = await _next(changed, project, files, listening)
    finally:
        listening.cancel()
        with suppress(asyncio.CancelledError):
            await listening


def hash_files(project: Path) -> Mapping[str, str]:
    """Each file that is part of a project -> a hash of its content."""
    return {
        path: hashlib.sha256(content).hexdigest() for path, content in take_snapshot(project).files.items()
    }


def changed_paths(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """The files that were added, removed or changed, sorted."""
    return tuple(sorted(path for path in {*before, *after} if before.get(path) != after.get(path)))


def _digests(files: Mapping[str, str]) -> Mapping[str, str]:
    return {path: hashlib.sha256(text.encode()).hexdigest() for path, text in files.items()}


async def _listen(project: Path, changed: asyncio.Event) -> None:
    """Note that something changed. Which files count is looked up where it matters."""
    async for _ in awatch(project, step=QUIET_MS, debounce=LONGEST_MS):
        changed.set()


async def _overtaken(
    run: asyncio.Future[Result],
    changed: asyncio.Event,
    project: Path,
    files: Mapping[str, str],
    listening: asyncio.Task[None],
) -> Mapping[str, str] | None:
    """Wait for a run, or for other files than it works on: these, or `None` where the run has ended."""
    while True:
        waiting = asyncio.create_task(changed.wait())
        try:
            await asyncio.wait((run, waiting, listening), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if run.done():
            return None
        if listening.done():
            listening.result()
        changed.clear()
        now = await run_in_daemon_thread(lambda: hash_files(project))
        if now != files:
            return now


async def _stopped(run: asyncio.Future[Result]) -> None:
    """Cancel a run where it goes on, and wait until it is written down."""
    if not run.done():
        run.cancel()
        with suppress(asyncio.CancelledError, Cancelled):
            await run


async def _told(
    run: asyncio.Future[Result], project: Path, files: Mapping[str, str], apply: Apply | None
) -> WatchEvent:
    """What became of a run that has ended; its change is written only into files that are still the same."""
    try:
        result = run.result()
    except Cancelled:
        raise
    except SutureError as fault:
        return RunFailed(fault=fault)
    if apply is None or result.outcome != "healed":
        return RunEnded(result=result)
    now = await run_in_daemon_thread(lambda: hash_files(project))
    if now != files:
        return RunSuperseded(changed=changed_paths(files, now))
    try:
        await apply(result.run_id)
    except SutureError as fault:
        return RunEnded(result=result, fault=fault)
    return RunEnded(result=result, applied=True)


async def _next(
    changed: asyncio.Event, project: Path, files: Mapping[str, str], listening: asyncio.Task[None]
) -> Mapping[str, str]:
    """Wait until the files are others than these; they are read once changes have come to rest."""
    while True:
        waiting = asyncio.create_task(changed.wait())
        try:
            await asyncio.wait((waiting, listening), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if listening.done():
            listening.result()
        changed.clear()
        if (now := await run_in_daemon_thread(lambda: hash_files(project))) != files:
            return now
