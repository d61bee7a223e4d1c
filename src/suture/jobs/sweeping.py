"""Projects that callers sent or named: removed when nobody has used them long and no run can want them."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from suture.errors import StorageError
from suture.jobs.job import Job
from suture.ledger import RunFolder, last_end, read_ledger
from suture.loop.resuming.recorded import has_passed

DAY_S = 86_400.0
PLACES = ("archives", "clones")
MOST_LINE_BYTES = 2**20
"""Of a ledger's first event, which says what project the run is about."""


def wanted_by(jobs: Iterable[Job]) -> set[str]:
    """The names of archives, and of runs, that jobs which have not ended may ask for."""
    asked = ((job.run, job.request.get("archive"), job.request.get("of")) for job in jobs)
    return {str(name) for names in asked for name in names if name}


def remove_unused(home: Path, days: float, wanted: Collection[str] = ()) -> list[Path]:
    """Remove the archives and clones that nobody has used for some days.

    A folder stays where a run that was begun in it may go on: one that waits for a person, was stopped or
    cancelled, or met a fault. A run that has ended needs it no more: its files lie in the run's own folder.

    Args:
        home: The folder of state.
        days: How long one is kept after it was used last.
        wanted: Archives, and runs, that are asked for and have not begun.

    Returns:
        The folders that are gone.
    """
    before_s = time.time() - days * DAY_S
    old = {folder for folder in _kept(home) if folder.name not in wanted and _used_s(folder) < before_s}
    if old:
        old -= set(_in_use(home, old, wanted, before_s))
    gone = []
    for folder in sorted(old):
        with suppress(OSError):
            if _used_s(folder) < before_s:  # else somebody has asked for it meanwhile
                shutil.rmtree(folder.rename(folder.with_name(f".new-gone-{folder.name}")))
                gone.append(folder)
    return gone


def _kept(home: Path) -> Iterator[Path]:
    """What lies there, also what a process that was killed had only begun."""
    for place in PLACES:
        with suppress(OSError):
            yield from (home / place).iterdir()


def _used_s(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:
        return time.time()  # not to be looked at, not to be removed


def _in_use(home: Path, folders: set[Path], wanted: Collection[str], before_s: float) -> Iterator[Path]:
    real: dict[Path | None, Path] = {folder.resolve(): folder for folder in folders}
    for path in (home / "runs").glob("*/ledger.jsonl"):
        folder = real.get(_project_of(path))
        if folder is None:
            continue
        run = RunFolder(path.parent)
        if run.id in wanted or _used_s(path) >= before_s or not _is_over(run):
            yield folder


def _project_of(ledger: Path) -> Path | None:
    """What the run is about, by the first line alone: there may be thousands of runs."""
    try:
        with ledger.open("rb") as file:
            return Path(json.loads(file.readline(MOST_LINE_BYTES))["data"]["project"]).resolve()
    except (OSError, RuntimeError, ValueError, KeyError, TypeError):
        return None


def _is_over(run: RunFolder) -> bool:
    """Whether it has come to an end of its own; what cannot be read may go on, for all that is known."""
    try:
        end = last_end(read_ledger(run.ledger_path).events)
    except StorageError:
        return False
    return end is not None and not has_passed(end)
