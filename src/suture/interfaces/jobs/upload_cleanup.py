"""Projects that callers sent or named: removed when nobody has used them long and no run can want them."""

from __future__ import annotations

import json
import logging
import re
import shutil
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from suture.core.ledger import RunFolder, find_final_event, read_ledger
from suture.core.ledger.reading import MOST_LINE_BYTES
from suture.errors import StorageError
from suture.interfaces.jobs.job import Job
from suture.interfaces.jobs.project_archives import ARCHIVE_ID
from suture.loop.resume.recorded_run import has_passed

log = logging.getLogger("suture.interfaces.jobs")
DAY_S = 86_400.0
BEGUN, GONE = ".new-", ".new-gone-"
"""How a folder's name begins that is being written, and one that is being removed."""
BUILT_IN_LANGUAGES = {
    "archives": ARCHIVE_ID,
    "clones": re.compile(r"[0-9]{8}-[0-9]{9}-[0-9a-f]{6}", re.ASCII),
}
"""The places, and what folders there are called: a person may keep something else beside them."""
LEAST_S = 3600.0
"""For so long none is removed, whatever the setting says: it may be being written, or asked for next."""


def names_in_use(jobs: Iterable[Job]) -> set[str]:
    """The names of archives, and of runs, that jobs which have not ended may ask for."""
    asked = ((job.run, job.request.get("archive"), job.request.get("of")) for job in jobs)
    return {str(name) for names in asked for name in names if name}


def remove_unused_uploads(home: Path, days: float, wanted: Collection[str] = ()) -> list[Path]:
    """Remove the archives and clones that nobody has used for some days.

    A folder stays where a run that was begun in it may go on: one that waits for a person, was stopped or
    cancelled, or met a fault. A run that has ended needs it no more: its files lie in the run's own folder.

    Args:
        home: The folder of state.
        days: How long one is kept after it was used last.
        wanted: Archives, and runs, that are asked for and have not begun.

    Returns:
        The folders that are gone; none where a run cannot be looked at.
    """
    before_s = time.time() - max(days * DAY_S, LEAST_S)
    old = {folder for folder in _kept(home) if folder.name not in wanted and _used_s(folder) < before_s}
    try:
        old -= set(_in_use(home, old, wanted, before_s)) if old else set()
    except OSError as fault:  # too many open files, say: that run may want any of them
        log.warning("nothing that callers have sent is removed: a run cannot be looked at: %s", fault)
        return []
    return [folder for folder in sorted(old) if _removed(folder, before_s)]


def _removed(folder: Path, before_s: float) -> bool:
    """Whether it is gone; who asks for one meanwhile touches it, and only then sees that it is there."""
    try:
        if _used_s(folder) >= before_s:
            return False
        away = folder
        if not folder.name.startswith(BEGUN):
            away = folder.rename(folder.with_name(f"{GONE}{folder.name}"))
            if _used_s(away) >= before_s:
                away.rename(folder)
                return False
        shutil.rmtree(away)
    except OSError:
        return False
    return True


def _kept(home: Path) -> Iterator[Path]:
    """The folders of ours, also what a process that was killed had only begun, or only begun to remove."""
    for place, ours in BUILT_IN_LANGUAGES.items():
        with suppress(OSError):
            for one in (home / place).iterdir():
                known = ours.fullmatch(one.name) or one.name.startswith(BEGUN)
                if known and one.is_dir() and not one.is_symlink():
                    yield one


def _used_s(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:
        return time.time()  # not to be looked at, not to be removed


def _in_use(home: Path, folders: set[Path], wanted: Collection[str], before_s: float) -> Iterator[Path]:
    real = {folder.resolve(): folder for folder in folders}
    for path in (home / "runs").glob("*/ledger.jsonl"):
        project = _project_of(path)
        within = [real[one] for one in (project, *project.parents) if one in real] if project else []
        run = RunFolder(path.parent)
        if within and (run.id in wanted or _used_s(path) >= before_s or not _is_over(run)):
            yield from within


def _project_of(ledger: Path) -> Path | None:
    """What the run is about, by the first line alone: there may be thousands of runs.

    Raises:
        OSError: It cannot be read.
    """
    try:
        with ledger.open("rb") as file:
            return Path(json.loads(file.readline(MOST_LINE_BYTES))["data"]["project"]).resolve()
    except (FileNotFoundError, RuntimeError, ValueError, KeyError, TypeError):
        return None  # gone meanwhile, or it says nothing by which anybody could go on with it


def _is_over(run: RunFolder) -> bool:
    """Whether it has come to an end of its own; what cannot be read may go on, for all that is known."""
    try:
        end = find_final_event(read_ledger(run.ledger_path).events)
    except StorageError:
        return False
    return end is not None and not has_passed(end)
