"""Installed programs that run a project's tests: a Python interpreter, or the toolchain of another language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from suture.core.records import Language


@dataclass(frozen=True, kw_only=True)
class Toolchain:
    """An installation of a language's programs.

    Attributes:
        program: Absolute path of its program, such as `node`, as PATH names it.
        folders: Folders that come first in PATH.
        shown: Path on this machine that the sandbox must mount -> path inside the sandbox.
        variables: Environment variables inside the sandbox.
    """

    language: Language
    program: str
    folders: tuple[str, ...] = ()
    shown: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)


PACKAGES_MOUNT = "/packages"
"""Where the sandbox mounts `Interpreter.packages`."""


LOANED_PYTEST_MOUNT = "/loaned-pytest"
"""Where the sandbox mounts `Interpreter.loaned_pytest`."""


@dataclass(frozen=True, kw_only=True)
class Interpreter:
    """A Python installation, or a virtual environment.

    Attributes:
        executable: Absolute path of the program. In a virtual environment, this is the environment's own
            link, not its target, because Python finds its packages by the path that it is started with.
        prefix: The environment; equal to `base_prefix` outside of a virtual environment.
        base_prefix: The installation that contains the standard library.
        version: `X.Y` or `X.Y.Z`.
        site_packages: Absolute folders of installed packages, in the order of `sys.path`.
        origin: How it was chosen, as a phrase for people.
        source_roots: Folders of the project (relative, `.` for its root) that an editable install added to
            `sys.path`. The project has another path inside the sandbox, so they must be added there again.
        toolchain: Further programs that the test command needs, if the project's code is not Python.
        project: Folder of the project whose own files chose the interpreter; empty if the user chose it. If a
            project chose it, the sandbox mounts less.
        packages: Folder of packages that were installed for this run; empty if there are none.
        loaned_pytest: Suture's own pytest, and what it needs and the interpreter lacks, for a project whose
            tests pytest can run although it does not use pytest: absolute paths.
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
    loaned_pytest: tuple[str, ...] = ()

    @property
    def is_virtual(self) -> bool:
        """Whether it is a virtual environment."""
        return self.prefix != self.base_prefix
