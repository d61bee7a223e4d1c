"""The contract for a package manager."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from suture.core.safe_files import read_regular_file
from suture.sandbox.tuning import MAX_CACHED_PACKAGES_BYTES, MAX_LOCK_BYTES, PACKAGE_SET_IN_USE_S

FETCHED = "fetched"
"""The folder that `resolve` leaves for `install`, if it leaves anything."""
MAX_QUOTED_CHARS = 200
"""Characters of a manifest or of a parser's message that a refusal quotes. Chosen by judgement; not measured."""


class PackagesRefused(Exception):
    """The requested packages cannot be installed; the requester can request something else.

    Args:
        reason: A line or two, for the model or the user.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, kw_only=True)
class InstalledPackages:
    """Packages that are ready to use.

    Attributes:
        folder: The folder on the host that contains them. It is mounted in the sandbox.
        path: Where their lock belongs in the project.
        lock: The content of the lock: each package with its version and hash.
        files: Path -> text of the files that the project gets: the lock, and a manifest that was completed.
        names: The packages with their versions, in order.
    """

    folder: Path
    path: str
    lock: str
    files: Mapping[str, str]
    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class WorkFolder:
    """A folder in which a client runs, and what it may fetch there.

    Attributes:
        folder: One of Suture's folders. What a client has left there is not trusted.
        python: The version `X.Y` of the Python that will import the packages.
        sandboxed: Whether the client runs in a sandbox, from which only the index can be reached.
        hosts: Servers besides the index that the user lets the client reach.
        bounds: Name -> version specifier (PEP 440) that resolved versions must satisfy.
    """

    folder: Path
    python: str
    sandboxed: bool = True
    hosts: tuple[str, ...] = ()
    bounds: Mapping[str, str] = field(default_factory=dict)

    def read_text(self, name: str) -> str:
        """Return the content of a file that a client has left there; no link is followed.

        Raises:
            PackagesRefused: There is no such file, or it is too large.
        """
        content = read_regular_file(self.folder / name, MAX_LOCK_BYTES)
        if content is None or len(content) > MAX_LOCK_BYTES:
            raise PackagesRefused(f"the client left no {name} of at most {MAX_LOCK_BYTES >> 20} MiB")
        return content.decode("utf-8", "replace")


class Installer(Protocol):
    """One package manager. Nothing that it fetches is executed."""

    manifest: str
    """The file of a project that requests packages."""
    lock: str
    """The file that pins them."""
    folder: str
    """The folder that `install` creates."""

    def parse_manifest(self, manifest: str) -> tuple[str, ...]:
        """Return the requirements in a manifest, in order. Each is safe to pass to the client.

        Raises:
            PackagesRefused: A requirement is an address, a path or another manifest.
        """
        ...

    async def resolve(self, requirements: Sequence[str], work_folder: WorkFolder) -> str:
        """Return the content of a lock that pins the requirements and everything that they require.

        Args:
            requirements: What `parse_manifest` returned.
            work_folder: An empty folder. Downloaded packages may be left in `FETCHED` for `install`.

        Raises:
            PackagesRefused: There is no such package, or no such version.
            PrerequisiteError: The client is missing, no sandbox can be built, or the index cannot be reached.
        """
        ...

    async def install(self, requirements: Sequence[str], lock: str, work_folder: WorkFolder) -> None:
        """Install the locked packages into `folder` below the work folder, and check each by its hash.

        Args:
            requirements: What `parse_manifest` returned.
            lock: What `resolve` returned.
            work_folder: A folder with nothing but what `resolve` has left in `FETCHED`.

        Raises:
            PackagesRefused: A package would replace something that decides, such as a module of Python's own.
            PrerequisiteError: As for `resolve`.
        """
        ...

    def versions(self, lock: str) -> Mapping[str, str]:
        """Return name -> version of the packages that the project's code can import."""
        ...

    def project_files(self, manifest: str, lock: str) -> Mapping[str, str]:
        """Return the files, path -> text, that Suture writes into a project with this manifest and lock.

        Raises:
            PackagesRefused: The manifest contradicts the lock.
        """
        return {self.lock: lock}

    def names(self, lock: str, folder: Path) -> tuple[str, ...]:
        """Return the locked packages that are installed below `folder`, each with its version."""
        ...


def mark_used(set_folder: Path) -> None:
    """Mark a set as used. Call this before looking for the set, so that it is not removed in the meantime."""
    with suppress(OSError):
        os.utime(set_folder)


def evict_unused_sets(folder: Path, max_bytes: int = MAX_CACHED_PACKAGES_BYTES) -> None:
    """Remove the least recently used sets until the others take at most `max_bytes`.

    Sets that were used within a day stay, whatever their size. Unfinished sets of killed runs are removed
    too.

    Args:
        folder: The folder that has one folder for each set.
    """
    sets = []
    with suppress(OSError):
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False):
                with suppress(OSError):  # another process is removing it
                    sets.append((entry.stat(follow_symlinks=False).st_mtime, Path(entry.path)))
    remaining_bytes = max_bytes
    for _, set_folder in sorted(sets, reverse=True):
        remaining_bytes -= _size_bytes(set_folder)
        unfinished = set_folder.name.startswith(".")  # `.making-` of a killed run, `.gone-` of a removal
        if (remaining_bytes < 0 or unfinished) and _is_idle(set_folder):
            _remove(set_folder)


def _is_idle(set_folder: Path) -> bool:
    """Return whether no process uses a set. Call this right before removing it: a run may have begun to use it."""
    try:
        return time.time() - set_folder.lstat().st_mtime > PACKAGE_SET_IN_USE_S
    except OSError:
        return False  # another process has removed it


def _size_bytes(folder: Path) -> int:
    size = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                size += os.lstat(f"{parent}/{name}").st_size
    return size


def _remove(set_folder: Path) -> None:
    """Remove a set. It is renamed first, so that no process finds half of it."""
    with suppress(OSError):
        trash = Path(tempfile.mkdtemp(prefix=".gone-", dir=set_folder.parent))
        with suppress(OSError):
            set_folder.rename(trash / "set")
        shutil.rmtree(trash, ignore_errors=True)
