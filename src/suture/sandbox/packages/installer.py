"""What a package manager is to us."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from suture.core.safe_files import read_regular_file
from suture.sandbox.tuning import MAX_LOCK_BYTES

FETCHED = "fetched"
"""What `resolve` leaves for `install`, where it leaves something."""


class PackagesRefused(Exception):
    """What a project asks for cannot be had; whoever wrote it can ask for something else.

    Args:
        why: In a line or two, for the coder.
    """

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.reason = why


@dataclass(frozen=True, kw_only=True)
class InstalledPackages:
    """Packages that lie ready.

    Attributes:
        folder: Holds them, to be shown behind the wall.
        path: Where their lock belongs in the project.
        lock: Its text: each package with its version and hash.
        files: Path -> text of what goes with the project: the lock, and a manifest that had to be completed.
        names: Each with its version, in order.
    """

    folder: Path
    path: str
    lock: str
    files: Mapping[str, str]
    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where packages are fetched, and what bounds that.

    Attributes:
        folder: A folder of ours. What a client has left there is not trusted.
        python: Version `X.Y` of the Python that will import them.
        walled: Whether the client runs behind a wall, from which only the index is in reach.
        hosts: Servers in reach besides, which the user has named.
        bounds: Name -> versions, as PEP 440 writes them, that what is resolved keeps to.
    """

    folder: Path
    python: str
    walled: bool = True
    hosts: tuple[str, ...] = ()
    bounds: Mapping[str, str] = field(default_factory=dict)

    def text_of(self, name: str) -> str:
        """A file that a client has left there; no link is followed.

        Raises:
            PackagesRefused: There is none, or it is too large.
        """
        content = read_regular_file(self.folder / name, MAX_LOCK_BYTES)
        if content is None or len(content) > MAX_LOCK_BYTES:
            raise PackagesRefused(f"the client left no {name} of at most {MAX_LOCK_BYTES >> 20} MiB")
        return content.decode("utf-8", "replace")


class Installer(Protocol):
    """One package manager. Nothing that it fetches is run."""

    manifest: str
    """The file of a project that asks for packages."""
    lock: str
    """The file that says which they are."""
    folder: str
    """What `install` makes in its place."""

    def wanted(self, manifest: str) -> tuple[str, ...]:
        """What a manifest asks for, in order; each safe to hand to the client.

        Raises:
            PackagesRefused: It asks for what is not installed: an address, a path, another manifest.
        """
        ...

    async def resolve(self, wanted: Sequence[str], place: Place) -> str:
        """The lock of all that is needed.

        Args:
            wanted: As `wanted` reads it.
            place: An empty folder, which may be filled.

        Raises:
            PackagesRefused: There is no such package, or no such version.
            PrerequisiteError: The client is not there, there is no wall, or the index cannot be reached.
        """
        ...

    async def install(self, wanted: Sequence[str], lock: str, place: Place) -> None:
        """Lay what `resolve` locked into `place.folder / folder`, each checked by its hash.

        Args:
            wanted: As `wanted` reads it.
            lock: As `resolve` gave it.
            place: A folder with nothing but what `resolve` has left in `FETCHED`.

        Raises:
            PackagesRefused: It takes the place of what decides, such as a module of Python's own.
            PrerequisiteError: As for `resolve`.
        """
        ...

    def versions(self, lock: str) -> Mapping[str, str]:
        """Name -> version, of what code that imports it by that name gets."""
        ...

    def laid(self, manifest: str, lock: str) -> Mapping[str, str]:
        """Path -> text of what goes with a project that these packages were fetched for.

        Raises:
            PackagesRefused: The manifest says what the lock does not.
        """
        return {self.lock: lock}

    def names(self, lock: str, folder: Path) -> tuple[str, ...]:
        """The packages of a lock that lie in a folder, each with its version."""
        ...
