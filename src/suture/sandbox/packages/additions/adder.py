"""The contract for adding packages to a project, for any package manager."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from suture.project.languages import Interpreter
from suture.sandbox.packages.installer import PackagesRefused, WorkFolder

Files = Mapping[str, bytes]
"""The files of a project, path -> content."""
WorkFolders = tuple[WorkFolder, WorkFolder]
"""Two empty folders: (one to resolve in, one to install in)."""


@dataclass(frozen=True, kw_only=True)
class AddedSet:
    """What was fetched for an existing project.

    Attributes:
        files: Path -> text of the project's files that change: its manifest and its locks.
        names: The new packages, each with its version.
        beside: Name -> version of the environment's packages that the new ones require.
        lock_parts: Resolved package with its version -> parts of a lock, of which one must be in an updated lock.
    """

    files: Mapping[str, str]
    names: tuple[str, ...]
    beside: Mapping[str, str] = field(default_factory=dict)
    lock_parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class LockUpdates:
    """What became of the locks that belong to other package managers than pip, npm and Go.

    Attributes:
        files: Path -> text of each lock that was updated.
        failures: Path of each other lock -> the command that updates it, and why Suture did not, as a phrase.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)


class PackageAdder(Protocol):
    """The projects of one package manager. Nothing that is fetched is executed."""

    folder: str
    """The folder that `fetch` leaves in the work folder to install in."""
    updated_locks: Collection[str] = ()
    """Locks that a project may have, and that `update_locks` updates with the program that owns them."""
    other_locks: tuple[str, ...] = ()
    """Locks that a project may have and that are never updated."""

    def manifest_path(self, base: Files) -> str:
        """Return the path of the manifest to which packages are added."""
        ...

    def request_files(self, base: Files) -> tuple[str, ...]:
        """Return the paths of the files in which a candidate may request packages."""
        return (self.manifest_path(base),)

    def find_requested(self, base: Files, written: Mapping[str, str]) -> tuple[str, ...]:
        """Return the requirements that the manifest lacks, in order. Each is safe to pass to the client.

        Args:
            base: The project without the candidate.
            written: The candidate's files, path -> text. Not trusted.

        Raises:
            PackagesRefused: The candidate requests something that Suture does not install, such as an address.
        """
        ...

    def write_manifest(self, base: Files, requirements: Sequence[str]) -> str:
        """Return the manifest with the requested packages, and otherwise unchanged.

        Raises:
            PackagesRefused: The project declares its packages in a way that is not supported.
        """
        ...

    async def fetch(
        self, base: Files, requirements: Sequence[str], work_folders: WorkFolders, interpreter: Interpreter
    ) -> AddedSet:
        """Resolve the requested packages, and install them all into `folder` below the work folder to install in.

        Args:
            base: The project without the candidate.
            requirements: What `find_requested` returned.
            interpreter: What the project runs on, with its existing packages.

        Raises:
            PackagesRefused: A package cannot be installed, or not together with the existing ones.
            PrerequisiteError: The client is missing, no sandbox can be built, or the index cannot be reached.
        """
        ...

    async def update_locks(self, base: Files, added: AddedSet, work_folder: WorkFolder) -> LockUpdates:
        """Update each lock of `updated_locks` that the project has and that is not among `added.files`.

        It raises no error if a lock cannot be updated: the packages are of use without it.

        Args:
            base: The project without the candidate.
            added: What `fetch` returned.
            work_folder: An empty folder.
        """
        return LockUpdates()

    def is_still_valid(self, beside: Mapping[str, str], interpreter: Interpreter) -> bool:
        """Return whether the environment still has the packages of `AddedSet.beside`."""
        return not beside


def read_file_text(files: Files, path: str) -> str:
    """Return a file's content; empty if it does not exist.

    Raises:
        PackagesRefused: The file is not UTF-8, so that it could not be written back unchanged.
    """
    try:
        return files.get(path, b"").decode("utf-8")
    except UnicodeDecodeError as fault:
        raise PackagesRefused(f"{path} is not UTF-8, so it cannot be changed") from fault


def detect_newline(text: str) -> str:
    """Return the line ending that a file uses."""
    return "\r\n" if "\r\n" in text else "\n"
