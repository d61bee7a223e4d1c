"""Locate the project of a heal job: a folder on this machine, an uploaded archive, or a git repository."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from suture.core.settings import Settings
from suture.errors import UsageError
from suture.interfaces.jobs.project_archives import ArchiveLimits, ProjectArchives
from suture.project.workspace.cloning import CloneLimits, clone

GIT_URL = re.compile(
    r"(?:(?:https|http)://[a-z0-9][a-z0-9.-]*(?::[0-9]{1,5})?|file://)(?:/[\w.~+-]+)+/?", re.ASCII
)
"""A repository's URL without user, password, escapes, query or fragment."""
GIT_REF = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]{0,199}", re.ASCII)
"""A branch or a tag; it cannot be taken for an option, because it does not begin with a hyphen."""


def require_sandbox(settings: Settings) -> None:
    """Reject settings that would run other people's code without a sandbox."""
    if settings.sandbox.backend == "unsafe-subprocess" or settings.sandbox.minimum_level == "none":
        raise UsageError(
            "code from other people is never run without a sandbox",
            remedy="use the default values of sandbox.backend and sandbox.minimum_level",
        )


def archive_limits(settings: Settings) -> ArchiveLimits:
    """Return the limits on archives from the settings."""
    serve = settings.serve
    return ArchiveLimits(files=serve.archive_files, unpacked_bytes=serve.unpacked_mb * 2**20)


def find_allowed_folder(path: str, roots: Iterable[str | Path]) -> Path | None:
    """Return a folder below an allowed root, with symbolic links resolved, or `None` if it is not allowed.

    A folder that does not exist gives `None` too, so that callers cannot find out which folders exist.
    """
    try:
        folder = Path(path).resolve(strict=True)
        is_allowed = any(folder.is_relative_to(Path(root).expanduser().resolve()) for root in roots)
        return folder if is_allowed and Path(path).is_absolute() and folder.is_dir() else None
    except (OSError, ValueError, RuntimeError):
        return None


def is_missing_folder(path: str, roots: Iterable[str | Path]) -> bool:
    """Return whether a path below an allowed root is not a folder."""
    try:
        folder = Path(path).resolve()
        is_allowed = any(folder.is_relative_to(Path(root).expanduser().resolve()) for root in roots)
        return is_allowed and not (Path(path).is_absolute() and folder.is_dir())
    except (OSError, ValueError, RuntimeError):
        return False


def require_allowed_git_url(url: str, ref: str, allowed_prefixes: Collection[str]) -> None:
    """Reject a repository that the settings do not allow.

    Raises:
        UsageError: No prefix matches, or the URL has a forbidden part. The message does not repeat the URL,
            because people paste passwords.
    """
    is_plain_url = GIT_URL.fullmatch(url) is not None and not {".", ".."} & set(urlsplit(url).path.split("/"))
    prefixes = (prefix.rstrip("/") for prefix in allowed_prefixes)
    is_allowed = any(url.rstrip("/") == prefix or url.startswith(f"{prefix}/") for prefix in prefixes)
    if not is_plain_url or not is_allowed:
        raise UsageError(
            "this git URL is not allowed",
            remedy="use a URL without user, password, ? and #, that starts with one in serve.git",
        )
    if ref and (not GIT_REF.fullmatch(ref) or ".." in ref):
        raise UsageError(f"{ref!r:.80} is not a valid branch or tag")


def locate_project(request: Mapping[str, Any], settings: Settings, run: str) -> Path:
    """Return the folder of the project that a request names."""
    if "git" in request:
        return _clone_once(str(request["git"]), str(request.get("ref") or ""), settings, run)
    if "archive" not in request:
        return Path(request["path"])
    with ExitStack() as stack:
        shared_jobs = None
        if settings.store.runs == "database":
            # Imported on demand: it imports SQLAlchemy, which only shared archives need.
            from suture.storage.postgresql.shared_jobs import open_shared_jobs

            shared_jobs = open_shared_jobs(settings)
            stack.callback(shared_jobs.close)
        archives = ProjectArchives(settings.paths.home, archive_limits(settings), shared_jobs)
        return archives.find_folder(request["archive"])


def _clone_once(url: str, ref: str, settings: Settings, run: str) -> Path:
    target = settings.paths.home / "clones" / run
    if not target.is_dir():
        require_allowed_git_url(url, ref, settings.serve.git)
        limits = archive_limits(settings)
        clone(
            url,
            target,
            CloneLimits(files=limits.files, total_bytes=limits.unpacked_bytes),
            ref=ref,
            private=settings.serve.git_private,
        )
    return target
