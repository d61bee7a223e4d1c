"""Remove archives and clones of callers that nobody has used for long and no run can need any more."""

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
from suture.core.tuning import MAX_EVENT_LINE_BYTES
from suture.errors import StorageError
from suture.interfaces.jobs.job import Job
from suture.interfaces.jobs.project_archives import ARCHIVE_ID
from suture.interfaces.jobs.tuning import MIN_UPLOAD_AGE_S
from suture.loop.resume.recorded_run import is_transient_end

log = logging.getLogger("suture.interfaces.jobs")
DAY_S = 86_400.0
INCOMPLETE_PREFIX, REMOVAL_PREFIX = ".new-", ".new-gone-"
"""Name prefixes of a folder that is being written, and of one that is being removed."""
FOLDER_NAMES = {
    "archives": ARCHIVE_ID,
    "clones": re.compile(r"[0-9]{8}-[0-9]{9}-[0-9a-f]{6}", re.ASCII),
}
"""The parent folders and the names of folders in them; a person may keep other things beside them."""


def names_in_use(jobs: Iterable[Job]) -> set[str]:
    """Return the archives and runs that unfinished jobs can need."""
    names_of_jobs = ((job.run, job.request.get("archive"), job.request.get("of")) for job in jobs)
    return {str(name) for names in names_of_jobs for name in names if name}


def remove_unused_uploads(home: Path, days: float, needed: Collection[str] = ()) -> list[Path]:
    """Remove the archives and clones that nobody has used for some days.

    A folder is kept if a run in it can be resumed: one that waits for a person, was stopped or cancelled, or
    failed. A finished run no longer needs it, because its files are in the run's own folder.

    Args:
        home: The state folder.
        days: How many days a folder is kept after its last use.
        needed: Archives and runs of jobs that have not started.

    Returns:
        The removed folders; empty if a run cannot be checked.
    """
    before_s = time.time() - max(days * DAY_S, MIN_UPLOAD_AGE_S)
    old = {
        folder
        for folder in _uploaded_folders(home)
        if folder.name not in needed and _last_used_s(folder) < before_s
    }
    try:
        old -= set(_folders_in_use(home, old, needed, before_s)) if old else set()
    except OSError as fault:  # such as too many open files: the unreadable run could need any of the folders
        log.warning("no uploads are removed, because a run cannot be checked: %s", fault)
        return []
    return [folder for folder in sorted(old) if _try_remove(folder, before_s)]


def _try_remove(folder: Path, before_s: float) -> bool:
    """Remove a folder unless a caller uses it meanwhile; callers touch a folder before they look it up."""
    try:
        if _last_used_s(folder) >= before_s:
            return False
        renamed = folder
        if not folder.name.startswith(INCOMPLETE_PREFIX):
            renamed = folder.rename(folder.with_name(f"{REMOVAL_PREFIX}{folder.name}"))
            if _last_used_s(renamed) >= before_s:
                renamed.rename(folder)
                return False
        shutil.rmtree(renamed)
    except OSError:
        return False
    return True


def _uploaded_folders(home: Path) -> Iterator[Path]:
    """Yield the folders of uploads, including incomplete ones of killed processes."""
    for place, ours in FOLDER_NAMES.items():
        with suppress(OSError):
            for one in (home / place).iterdir():
                is_ours = ours.fullmatch(one.name) or one.name.startswith(INCOMPLETE_PREFIX)
                if is_ours and one.is_dir() and not one.is_symlink():
                    yield one


def _last_used_s(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:
        return time.time()  # unreadable, so it must not be removed


def _folders_in_use(
    home: Path, folders: set[Path], needed: Collection[str], before_s: float
) -> Iterator[Path]:
    real = {folder.resolve(): folder for folder in folders}
    for path in (home / "runs").glob("*/ledger.jsonl"):
        project = _read_project_folder(path)
        within = [real[one] for one in (project, *project.parents) if one in real] if project else []
        run = RunFolder(path.parent)
        if within and (run.id in needed or _last_used_s(path) >= before_s or not _is_finished(run)):
            yield from within


def _read_project_folder(ledger: Path) -> Path | None:
    """Return a run's project from the first line of its ledger alone, because there can be thousands of runs.

    Raises:
        OSError: The ledger cannot be read.
    """
    try:
        with ledger.open("rb") as file:
            return Path(json.loads(file.readline(MAX_EVENT_LINE_BYTES))["data"]["project"]).resolve()
    except (FileNotFoundError, RuntimeError, ValueError, KeyError, TypeError):
        return None  # the run is gone or does not name its project, so it cannot be resumed


def _is_finished(run: RunFolder) -> bool:
    """Return whether a run has reached its own end; an unreadable run could still be resumed."""
    try:
        end = find_final_event(read_ledger(run.ledger_path).events)
    except StorageError:
        return False
    return end is not None and not is_transient_end(end)
