"""The packages: their names, releases and hashes, where their code is, and how their suites are run."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from suture.errors import UsageError

__all__ = ["TEST", "Package", "code_files", "read_packages"]

FOLDER = Path(__file__).parent
TEST = "python -m pytest -q"
NOT_CODE = ("test", "tests", "sandbox", "docs")
"""Folders in the code of a package that get no bugs."""


@dataclass(frozen=True, kw_only=True)
class Package:
    """One release of a package.

    Attributes:
        name: The name in the package index.
        version: The version of the release.
        sha256: The hash of its source distribution.
        half: `tune` or `report`.
        code: Folders and files that may contain bugs, relative to the root.
        source_root: The folder that an editable install adds to the path; empty for the root.
        test: The command that a user would give.
    """

    name: str
    version: str
    sha256: str
    half: str
    code: tuple[str, ...]
    source_root: str = ""
    test: str = TEST


def read_packages() -> dict[str, Package]:
    """Return name -> package, in the order of the file."""
    told = tomllib.loads((FOLDER / "packages.toml").read_text("utf-8"))
    return {
        name: Package(name=name, **{**fields, "code": tuple(fields["code"])}) for name, fields in told.items()
    }


def code_files(package: Package, root: Path) -> list[str]:
    """Return the files of a package that may contain bugs, as POSIX paths relative to its root.

    Raises:
        UsageError: There are none.
    """
    found = []
    for name in package.code:
        path = root / name
        found += [path] if path.is_file() else sorted(path.rglob("*.py"))
    paths = [path.relative_to(root) for path in found]
    kept = [path.as_posix() for path in paths if not {*path.parts[:-1]} & {*NOT_CODE} and _is_code(path)]
    if not kept:
        raise UsageError(f"{package.name} {package.version} has no code at {package.code!r}")
    return kept


def _is_code(path: Path) -> bool:
    return " " not in path.name and not path.name.startswith("test_")
