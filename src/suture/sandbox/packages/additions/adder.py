"""What adding packages to a project is, whatever its package manager."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from suture.project.languages import Interpreter
from suture.sandbox.packages.installer import PackagesRefused, Place

Files = Mapping[str, bytes]
"""A project, path -> content."""


@dataclass(frozen=True, kw_only=True)
class AddedSet:
    """What was fetched for a project that is there.

    Attributes:
        files: Path -> text of what changes in the project: its manifest, and its lock where it has one.
        names: The packages that are new, each with its version.
        beside: Name -> version of what the environment has already, and these rely on.
    """

    files: Mapping[str, str]
    names: tuple[str, ...]
    beside: Mapping[str, str] = field(default_factory=dict)


class PackageAdder(Protocol):
    """One package manager's projects. Nothing that is fetched is run."""

    folder: str
    """What `fetch` leaves in the second place."""

    def manifest(self, base: Files) -> str:
        """The path of the manifest to which is added."""
        ...

    def wishes(self, base: Files) -> tuple[str, ...]:
        """Paths in which a candidate may ask for packages, whether or not they are the manifest."""
        return (self.manifest(base),)

    def asked(self, base: Files, written: Mapping[str, str]) -> tuple[str, ...]:
        """What is asked for that the manifest does not have, in order; each safe to hand to the client.

        Args:
            base: The project as it is.
            written: What a candidate has written, path -> text. Not trusted.

        Raises:
            PackagesRefused: It asks for what is not installed, such as an address.
        """
        ...

    def written_down(self, base: Files, new: Sequence[str]) -> str:
        """The manifest with what is asked for, and otherwise as it is.

        Raises:
            PackagesRefused: The project keeps its packages in a way that is not written to.
        """
        ...

    async def fetch(
        self, base: Files, new: Sequence[str], places: tuple[Place, Place], interpreter: Interpreter
    ) -> AddedSet:
        """Find out what else is needed, and lay it all into `places[1].folder / folder`.

        Args:
            base: The project as it is.
            new: As `asked` reads it.
            places: Two empty folders: what a client leaves in the first is not where the second is written.
            interpreter: What the project runs on, with the packages that are there.

        Raises:
            PackagesRefused: It cannot be had, or not beside what is there.
            PrerequisiteError: The client is not there, there is no wall, or the index cannot be reached.
        """
        ...

    def holds(self, beside: Mapping[str, str], interpreter: Interpreter) -> bool:
        """Whether the environment still has what was relied on: nothing, where all is laid anew."""
        return not beside

    def untouched(self, base: Files) -> tuple[str, ...]:
        """Locks of the project that are not brought up to date: another program's."""
        return ()


def text_in(files: Files, path: str) -> str:
    """A file's text; empty where there is none.

    Raises:
        PackagesRefused: It is no UTF-8, so that it could not be written back as it is.
    """
    try:
        return files.get(path, b"").decode("utf-8")
    except UnicodeDecodeError as fault:
        raise PackagesRefused(f"{path} is no UTF-8, and is not written to") from fault


def newline_of(text: str) -> str:
    """How the lines of a text end."""
    return "\r\n" if "\r\n" in text else "\n"
