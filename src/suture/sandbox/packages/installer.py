"""The contract for a package manager."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from suture.core.safe_files import read_regular_file
from suture.sandbox.tuning import MAX_LOCK_BYTES

FETCHED = "fetched"
"""The folder that `resolve` leaves for `install`, if it leaves anything."""


class PackagesRefused(Exception):
    """The requested packages cannot be installed; whoever requested them can request something else.

    Args:
        why: A line or two, for the model or the user.
    """

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.reason = why


@dataclass(frozen=True, kw_only=True)
class InstalledPackages:
    """Packages that are ready to use.

    Attributes:
        folder: Contains them, and is shown inside the sandbox.
        path: Where their lock belongs in the project.
        lock: The text of the lock: each package with its version and hash.
        files: Path -> text of the files that belong to the project: the lock, and a manifest that had to be
            completed.
        names: The packages with their versions, in order.
    """

    folder: Path
    path: str
    lock: str
    files: Mapping[str, str]
    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class WorkFolder:
    """A folder where packages are fetched, and the bounds of that.

    Attributes:
        folder: One of Suture's folders. What a client has left there is not trusted.
        python: The version `X.Y` of the Python that will import the packages.
        sandboxed: Whether the client runs in a sandbox, from which only the index can be reached.
        hosts: Further servers in reach, which the user has named.
        bounds: Name -> version specifier (PEP 440) that resolved versions must satisfy.
    """

    folder: Path
    python: str
    sandboxed: bool = True
    hosts: tuple[str, ...] = ()
    bounds: Mapping[str, str] = field(default_factory=dict)

    def read_text(self, name: str) -> str:
        """Return the text of a file that a client has left there; no link is followed.

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

    def wanted(self, manifest: str) -> tuple[str, ...]:
        """Return what a manifest requests, in order; each item is safe to pass to the client.

        Raises:
            PackagesRefused: It requests something that is not installed: an address, a path, another
                manifest.
        """
        ...

    async def resolve(self, wanted: Sequence[str], work_folder: WorkFolder) -> str:
        """Return the lock of everything that is needed.

        Args:
            wanted: What `wanted` returned.
            work_folder: An empty folder, which may be filled.

        Raises:
            PackagesRefused: There is no such package, or no such version.
            PrerequisiteError: The client is missing, no sandbox can be built, or the index cannot be reached.
        """
        ...

    async def install(self, wanted: Sequence[str], lock: str, work_folder: WorkFolder) -> None:
        """Install what `resolve` locked into `place.folder / folder`, each package checked by its hash.

        Args:
            wanted: What `wanted` returned.
            lock: What `resolve` returned.
            work_folder: A folder with nothing but what `resolve` has left in `FETCHED`.

        Raises:
            PackagesRefused: A package would replace something that decides, such as a module of Python's own.
            PrerequisiteError: As for `resolve`.
        """
        ...

    def versions(self, lock: str) -> Mapping[str, str]:
        """Return name -> version, for what code that imports the name gets."""
        ...

    def project_files(self, manifest: str, lock: str) -> Mapping[str, str]:
        """Return path -> text of the files that belong to a project for which these packages were fetched.

        Raises:
            PackagesRefused: The manifest contradicts the lock.
        """
        return {self.lock: lock}

    def names(self, lock: str, folder: Path) -> tuple[str, ...]:
        """Return the packages of a lock that are in a folder, each with its version."""
        ...
