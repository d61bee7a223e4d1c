"""Remove the archives and clones that have not been used for long and that no run can still need."""

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
from suture.interfaces.jobs.job import RUN_ID, Job
from suture.interfaces.jobs.job_registry import DAY_S
from suture.interfaces.jobs.project_archives import ARCHIVE_ID
from suture.interfaces.jobs.tuning import MIN_UPLOAD_AGE_S

log = logging.getLogger("suture.interfaces.jobs")
INCOMPLETE_PREFIX, REMOVAL_PREFIX = ".new-", ".new-gone-"
"""Name prefixes of a folder that is being written, and of one that is being removed. The second begins with the first,
so that an interrupted removal is completed like an interrupted upload."""
FOLDER_NAMES = {"archives": ARCHIVE_ID, "clones": re.compile(RUN_ID)}
"""Parent folder -> pattern of our folder names in it; a person may keep other things next to them."""


def names_in_use(jobs: Iterable[Job]) -> set[str]:
    """Return the names of archives and runs that unfinished jobs can need; `of` is the run to fork or to replay."""
    names_by_job = ((job.run, job.request.get("archive"), job.request.get("of")) for job in jobs)
    return {str(name) for names in names_by_job for name in names if name}


def remove_unused_uploads(home: Path, days: float, needed: Collection[str] = ()) -> list[Path]:
    """Remove the archives and clones that have not been used for some days; return the removed folders.

    A folder is kept if a run in it can be resumed: one that waits for a person, was stopped or cancelled, or
    failed. A finished run no longer needs it, because its files are in the run's own folder. Nothing is
    removed if a run cannot be checked.

    Args:
        home: The state folder, as the setting `paths.home`.
        days: How many days a folder is kept after its last use.
        needed: Names of archives and runs that unfinished jobs can need.
    """
    cutoff_s = time.time() - max(days * DAY_S, MIN_UPLOAD_AGE_S)
    unused_folders = {
        folder
        for folder in _uploaded_folders(home)
        if folder.name not in needed and _last_used_s(folder) < cutoff_s
    }
    try:
        if unused_folders:
            unused_folders -= set(_folders_in_use(home, unused_folders, needed, cutoff_s))
    except OSError as fault:  # such as too many open files: the unreadable run could need any of the folders
        log.warning("no uploads are removed, because a run cannot be checked: %s", fault)
        return []
    return [folder for folder in sorted(unused_folders) if _try_remove(folder, cutoff_s)]


def _try_remove(folder: Path, cutoff_s: float) -> bool:
    """Remove a folder unless a caller uses it meanwhile; callers touch a folder before they look it up."""
    try:
        if _last_used_s(folder) >= cutoff_s:
            return False
        renamed = folder
        if not folder.name.startswith(INCOMPLETE_PREFIX):
            renamed = folder.rename(folder.with_name(f"{REMOVAL_PREFIX}{folder.name}"))
            if _last_used_s(renamed) >= cutoff_s:
                renamed.rename(folder)
                return False
        shutil.rmtree(renamed)
    except OSError:
        return False
    return True


def _uploaded_folders(home: Path) -> Iterator[Path]:
    """Yield the folders of uploads, including incomplete ones of killed processes."""
    for parent, name_pattern in FOLDER_NAMES.items():
        with suppress(OSError):
            for path in (home / parent).iterdir():
                is_ours = name_pattern.fullmatch(path.name) or path.name.startswith(INCOMPLETE_PREFIX)
                if is_ours and path.is_dir() and not path.is_symlink():
                    yield path


def _last_used_s(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:
        return time.time()  # unreadable, so it must not be removed


def _folders_in_use(
    home: Path, folders: set[Path], needed: Collection[str], cutoff_s: float
) -> Iterator[Path]:
    """Yield those of the folders that contain the project of a run that can still need it."""
    folders_by_real_path = {folder.resolve(): folder for folder in folders}
    for ledger in (home / "runs").glob("*/ledger.jsonl"):
        project = _read_project_folder(ledger)
        if project is None:
            continue
        used = [
            folders_by_real_path[path] for path in (project, *project.parents) if path in folders_by_real_path
        ]
        run = RunFolder(ledger.parent)
        if used and (run.id in needed or _last_used_s(ledger) >= cutoff_s or not _is_finished(run)):
            yield from used


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
    from suture.loop.resume.recorded_run import is_transient_end  # slow to import, and seldom needed

    try:
        end = find_final_event(read_ledger(run.ledger_path).events)
    except StorageError:
        return False
    return end is not None and not is_transient_end(end)
