"""What a Python interpreter, and programs of other languages, are to us: where they lie, what they need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from suture.core.records import Language


@dataclass(frozen=True, kw_only=True)
class Toolchain:
    """One installation of a language's programs.

    Attributes:
        language: The language that its programs belong to.
        program: Absolute path of `node` or `go`, as PATH names it.
        folders: Where the language's programs are looked for, before the system's.
        shown: What must be shown behind the wall: path here -> path there.
        variables: Environment variables behind the wall.
    """

    language: Language
    program: str
    folders: tuple[str, ...] = ()
    shown: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)


PACKAGES_MOUNT = "/packages"
"""Where the wall shows what `Interpreter.packages` names."""


@dataclass(frozen=True, kw_only=True)
class Interpreter:
    """One Python installation, or one virtual environment over it.

    Attributes:
        executable: Absolute path of the program; inside a virtual environment its own link, not the
            link's end, because the way in decides which packages are seen.
        prefix: The environment; equal to `base_prefix` where there is none.
        base_prefix: The installation that holds the standard library.
        version: `X.Y` or `X.Y.Z`.
        site_packages: Absolute folders of installed packages, in the order of `sys.path`.
        origin: How it was chosen, in words for people.
        source_roots: Folders of the project (relative, `.` for its root) that an editable install put on
            `sys.path`. Behind the wall the project lies elsewhere, so these must be put there anew.
        toolchain: What the project's test command needs besides, where its code is not Python.
        project: The project whose own files chose it; empty where the user did. Less is shown then.
        packages: A folder of packages that were installed for what runs; empty where none were.
    """

    executable: str
    prefix: str
    base_prefix: str
    version: str
    site_packages: tuple[str, ...]
    origin: str
    source_roots: tuple[str, ...] = ()
    toolchain: Toolchain | None = None
    project: str = ""
    packages: str = ""

    @property
    def is_virtual(self) -> bool:
        """Whether this is a virtual environment."""
        return self.prefix != self.base_prefix
