"""The packages: what each is called, which release is meant, where its code is and how its suite is run."""

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
        name: As its index knows it; an npm package's, or a Debian package's.
        version: Of the release.
        sha256: Of its archive.
        language: What its code is written in.
        runner: What runs its tests.
        code: Files in which bugs are put, relative to its root.
        test: The command that a user would give.
        needs: What npm is to install for its tests, each with its version.
        installed_before: A date: what these need is resolved as it was then.
        added: Path -> text of small files that its archive leaves out and its repository has.
        half: The language, under the name that the rows have for it.
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
        """The group that its rows are told in."""
        return self.language

    @property
    def folder_name(self) -> str:
        """Its name, as a folder can have it."""
        return self.name.replace("/", "-").removeprefix("@")


def read_packages() -> dict[str, OtherPackage]:
    """Name -> package, in the order of the file."""
    told = tomllib.loads((FOLDER / "packages.toml").read_text("utf-8"))
    return {name: _package(name, fields) for name, fields in told.items()}


def _package(name: str, fields: dict[str, Any]) -> OtherPackage:
    lists = {key: tuple(fields.get(key, ())) for key in ("code", "needs")}
    return OtherPackage(name=name, **{**fields, **lists})


def code_files(package: OtherPackage, root: Path) -> list[str]:
    """The files of a package in which bugs are put, as POSIX paths relative to its root.

    Raises:
        UsageError: One is not there.
    """
    for name in package.code:
        if not (root / name).is_file():
            raise UsageError(f"{package.name} {package.version} has no code at {name!r}")
    return list(package.code)
