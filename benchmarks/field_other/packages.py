"""The packages: their names, releases and hashes, where their code is, and how their suites are run."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from suture.core.records import Language
from suture.errors import UsageError

__all__ = ["FOLDER", "OtherPackage", "code_files", "read_packages"]

FOLDER = Path(__file__).parent


@dataclass(frozen=True, kw_only=True)
class OtherPackage:
    """One release of a package.

    Attributes:
        name: The name of the npm or Debian package.
        version: The version of the release.
        sha256: The hash of its archive.
        language: The language of its code.
        runner: The program that runs its tests.
        code: Files that may contain bugs, relative to the root.
        test: The command that a user would give.
        needs: What npm must install for its tests, each with its version.
        installed_before: A date: dependencies are resolved as on this date.
        added: Path -> text of small files that its repository has and its archive lacks.
    """

    name: str
    version: str
    sha256: str
    language: Language
    runner: str
    code: tuple[str, ...]
    test: str
    needs: tuple[str, ...] = ()
    installed_before: str = ""
    added: Mapping[str, str] = field(default_factory=dict)

    @property
    def half(self) -> str:
        """Return the group of the package in summaries: its language."""
        return self.language

    @property
    def folder_name(self) -> str:
        """Return the name in a form that a folder may have."""
        return self.name.replace("/", "-").removeprefix("@")


def read_packages() -> dict[str, OtherPackage]:
    """Return name -> package, in the order of the file."""
    told = tomllib.loads((FOLDER / "packages.toml").read_text("utf-8"))
    return {name: _package(name, fields) for name, fields in told.items()}


def _package(name: str, fields: dict[str, Any]) -> OtherPackage:
    lists = {key: tuple(fields.get(key, ())) for key in ("code", "needs")}
    return OtherPackage(name=name, **{**fields, **lists})


def code_files(package: OtherPackage, root: Path) -> list[str]:
    """Return the files of a package that may contain bugs, as POSIX paths relative to its root.

    Raises:
        UsageError: One is missing.
    """
    for name in package.code:
        if not (root / name).is_file():
            raise UsageError(f"{package.name} {package.version} has no code at {name!r}")
    return list(package.code)
