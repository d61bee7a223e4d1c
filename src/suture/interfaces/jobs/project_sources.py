"""Where the project of a repair lies on this machine: a folder that was named, sent, or is to be fetched."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from suture.core.settings import Settings
from suture.errors import UsageError
from suture.interfaces.jobs.project_archives import ArchiveLimits, ProjectArchives
from suture.project.workspace.cloning import CloneLimits, clone

ADDRESS = re.compile(
    r"(?:(?:https|http)://[a-z0-9][a-z0-9.-]*(?::[0-9]{1,5})?|file://)(?:/[\w.~+-]+)+/?", re.ASCII
)
"""Of a repository: no user, no password, no escapes, nothing behind a `?` or `#`."""
REF = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]{0,199}", re.ASCII)


def archive_limits(settings: Settings) -> ArchiveLimits:
    """What may come out of an archive, as the settings have it."""
    serve = settings.serve
    return ArchiveLimits(files=serve.archive_files, unpacked_bytes=serve.unpacked_mb * 2**20)


def require_allowed_git_url(url: str, ref: str, allowed: Collection[str]) -> None:
    """Refuse a repository that the settings do not allow.

    Args:
        url: Its address.
        ref: A branch or tag; empty for its own first branch.
        allowed: Beginnings of addresses, as `serve.git`.

    Raises:
        UsageError: None of them is a beginning of it, or it has parts that none may have. What was said is
            not told again: people paste passwords.
    """
    plain = ADDRESS.fullmatch(url) is not None and not {".", ".."} & set(urlsplit(url).path.split("/"))
    folders = (one.rstrip("/") for one in allowed)
    if not plain or not any(url.rstrip("/") == one or url.startswith(f"{one}/") for one in folders):
        raise UsageError(
            "this git address is none that may be asked for",
            remedy="one without user, password, ? and #, that begins as serve.git says",
        )
    if ref and (not REF.fullmatch(ref) or ".." in ref):
        raise UsageError(f"{ref!r:.80} is no branch or tag")


def locate_project(asked: Mapping[str, Any], settings: Settings, run: str) -> Path:
    """The folder of the project that a request names.

    Raises:
        UsageError: It was not sent, or the repository may not be asked for or cannot be had.
        StorageError: It cannot be kept here.
        PrerequisiteError: Git is not installed.
    """
    if "git" in asked:
        return _cloned(str(asked["git"]), str(asked.get("ref") or ""), settings, run)
    if "archive" not in asked:
        return Path(asked["path"])
    with ExitStack() as open_:
        shared = None
        if settings.store.runs == "database":
            from suture.storage.postgresql.shared_jobs import (
                open_shared_jobs,  # SQLAlchemy, and only where it is shared
            )

            shared = open_shared_jobs(settings)
            open_.callback(shared.close)
        return ProjectArchives(settings.paths.home, archive_limits(settings), shared).folder_of(
            asked["archive"]
        )


def _cloned(url: str, ref: str, settings: Settings, run: str) -> Path:
    target = settings.paths.home / "clones" / run
    if not target.is_dir():
        require_allowed_git_url(url, ref, settings.serve.git)
        most = archive_limits(settings)
        limits = CloneLimits(files=most.files, total_bytes=most.unpacked_bytes)
        clone(url, target, limits, ref=ref, private=settings.serve.git_private)
    return target
