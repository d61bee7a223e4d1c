"""What a project's code was at earlier commits, for a search that asks which change broke a test."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from suture.core.records import EarlierVersion
from suture.errors import StorageError, SutureError, UsageError
from suture.project.workspace.repository import Repository, open_repository

MOST_COMMITS = 16
"""A search bisects them: four more runs of the failing tests."""
MOST_BYTES = 4 * 2**20
"""Of all earlier texts together: they are kept with the task."""
PLAIN = ("100644", "100755")
"""Modes of regular files in a tree."""


def find_earlier_versions(
    root: Path, files: Mapping[str, bytes], since: str | None, wanted: Callable[[str], bool]
) -> tuple[EarlierVersion, ...]:
    """The states of a project's files at its last commits, the newest first.

    Args:
        root: The project's folder.
        files: Its files as they are now, path relative to `root` -> content.
        since: The oldest commit to look at, in any form that git knows; where `None`, the last few, and a
            project without a usable history has none.
        wanted: Whether a path is of interest.

    Returns:
        States that differ from each other, each named after the commit that made it; the first has no files
        where all is committed. Of a history of over 16 commits: those nearest to now, and the oldest.

    Raises:
        UsageError: `since` is no commit of the project's history, or the project lies in no repository.
        PrerequisiteError: `since` is given and git is not installed.
    """
    try:
        repository = open_repository(root)
        return _States(repository, files, wanted).read(_commits(repository, since))
    except SutureError:
        if since is not None:
            raise
        return ()


def _commits(repository: Repository, since: str | None) -> list[tuple[str, str]]:
    """Hash and subject of the commits to look at, the newest first."""
    span = ["-n", str(MOST_COMMITS), "HEAD"]
    if since is not None:
        oldest = _resolved(repository, since)
        span = [f"{oldest}..HEAD"]
    # A line `commit HASH` stands before each of ours, which repeats the hash because git leaves out a line
    # that is empty. Not `log`: what it runs is up to the configuration.
    said = os.fsdecode(repository.git("rev-list", "--first-parent", "--format=%H %s", *span, "--"))
    lines = said.removesuffix("\n").split("\n") if said else []
    fields = (line.partition(" ") for line in lines if not line.startswith("commit "))
    found = [(commit, subject) for commit, _, subject in fields]
    if since is not None:
        found = [*found[: MOST_COMMITS - 1], (oldest, "")]
    return found


def _resolved(repository: Repository, since: str) -> str:
    said = b""
    if since.isprintable() and since and not since.startswith("-"):
        said = repository.git("rev-parse", "--verify", "--quiet", f"{since}^{{commit}}", ok=(0, 1, 128))
    commit = said.decode("ascii", "replace").strip()
    if not commit:
        raise UsageError(
            f"{since!r} is no commit of this repository", remedy="such as HEAD~3, a tag or a branch"
        )
    try:
        repository.git("merge-base", "--is-ancestor", commit, "HEAD")
    except StorageError as fault:
        raise UsageError(
            f"{since!r} is not in the history of what is checked out", remedy="name an earlier commit of it"
        ) from fault
    return commit


class _States:
    """Reads states of files by the hashes of their contents, so that what is the same is read once."""

    def __init__(
        self, repository: Repository, files: Mapping[str, bytes], wanted: Callable[[str], bool]
    ) -> None:
        self._repository = repository
        self._now = {path: content for path, content in files.items() if wanted(path)}
        self._texts: dict[str, str | None] = {}
        self._bytes = 0

    def read(self, commits: list[tuple[str, str]]) -> tuple[EarlierVersion, ...]:
        """The states that differ from the one before."""
        found: list[EarlierVersion] = []
        for commit, subject in commits:
            texts = self._changed(self._blobs_at(commit))
            if texts is None:
                break  # larger than is worth keeping: what is nearer to now has been read
            if found and dict(found[-1].files) == texts:
                found.pop()  # the older of two commits with the same files is the one that made them so
            found.append(EarlierVersion(commit=commit[:12], subject=subject[:200], files=texts))
        return tuple(found)

    def _blobs_at(self, commit: str) -> dict[str, str]:
        """Path -> hash of the content, of the files of interest."""
        prefix = self._repository.prefix
        listed = self._repository.git(
            "ls-tree", "-r", "-z", "--full-tree", commit, "--", *([prefix] if prefix else [])
        )
        blobs = {}
        for entry in listed.split(b"\0")[:-1]:
            fields, _, name = entry.partition(b"\t")
            mode, _, blob = fields.decode().split()
            path = os.fsdecode(name).removeprefix(prefix)
            if mode in PLAIN and path in self._now:
                blobs[path] = blob
        return blobs

    def _changed(self, blobs: Mapping[str, str]) -> dict[str, str] | None:
        """The texts of files that were otherwise; `None` where they are too many."""
        differ = {path: blob for path, blob in blobs.items() if _blob_hash(self._now[path]) != blob}
        missing = [blob for blob in dict.fromkeys(differ.values()) if blob not in self._texts]
        for blob, content in zip(missing, self._repository.read_blobs(missing), strict=True):
            self._bytes += len(content)
            self._texts[blob] = _text(content)
        if self._bytes > MOST_BYTES:
            return None
        texts = {path: self._texts[blob] for path, blob in differ.items()}
        return {
            path: text for path, text in texts.items() if text is not None and text != _text(self._now[path])
        }


def _blob_hash(content: bytes) -> str:
    """Git's own name of a content, in repositories that use SHA-1; elsewhere the texts are compared."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _text(content: bytes) -> str | None:
    try:
        return content.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return None
