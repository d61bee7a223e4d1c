"""Where a project's virtual environments lie, beside it and in the folders of the tools that make them.

A folder outside of the project is looked at only where its tool has put the project's own path into the
name, or where the user's conda lists it: no file of a project chooses any other. Nothing here is started.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from suture.plain_files import parse_toml
from suture.sandbox.mounts.places import read_little, where

BESIDE = ("venv", "env", ".env", ".conda", ".hatch/*", "envs/*", ".tox/*", ".nox/*")
"""As people and tools call them; tox and nox make one for each of their sessions."""
MOST_OF_ONE = 24
MOST_LISTED = 2000
NAME = re.compile(r"[A-Za-z0-9](?:[\w.-]{0,200}[A-Za-z0-9])?")
CONDA_NAME = re.compile(r"^name:[ \t]*[\"']?([\w.-]{1,200})", re.MULTILINE)
TEST_GROUPS = re.compile(r"tests?|testing|dev|develop(?:ment)?|ci", re.IGNORECASE)
PAPERS = ("requirements.txt", "requirements-test.txt", "requirements-dev.txt", "requirements/test.txt")


def environments_of(root: Path, environ: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    """Folders that look like an environment of a project, and how each was found, the likeliest first.

    Args:
        root: The project's root folder, absolute.
        environ: The user's environment variables.
    """
    for pattern in BESIDE:
        # Also the folder above it may be a link out of the project, such as `envs`: it is not even listed.
        inside = where((root / pattern).parent).is_relative_to(where(root))
        for path in _some(root, pattern) if inside else ():
            if not path.is_symlink() and _is_environment(path):
                yield path, f"the project's {path.relative_to(root).as_posix()}"
    home = environ.get("HOME")
    if home and Path(home).is_absolute():
        for tool, path in _central(root, Path(home), environ):
            if _is_environment(path):
                yield path, f"{tool}'s environment of the project"


def _is_environment(path: Path) -> bool:
    # os.path's answers, because Path's raise where a folder is closed to us.
    marked = any(os.path.exists(path / mark) for mark in ("pyvenv.cfg", "conda-meta"))  # noqa: PTH110
    return marked and os.path.isfile(path / "bin" / "python")  # noqa: PTH113


def _central(root: Path, home: Path, environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """Folders of tools that keep their environments in one place; each knows a project by its path."""
    real = Path(os.path.realpath(root))
    data = Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    cache = Path(environ.get("XDG_CACHE_HOME") or home / ".cache")
    by_sha = base64.urlsafe_b64encode(hashlib.sha256(os.fsencode(real)).digest()).decode()[:8]
    by_md5 = base64.urlsafe_b64encode(
        hashlib.new("md5", os.fsencode(real), usedforsecurity=False).digest()
    ).decode()[:8]
    poetry = Path(environ.get("POETRY_VIRTUALENVS_PATH") or cache / "pypoetry" / "virtualenvs")
    yield from (("poetry", path) for path in _some(poetry, f"*-{by_sha}-py3*"))
    yield from (("hatch", path) for path in _some(data / "hatch" / "env" / "virtual", f"*/{by_sha}/*"))
    yield from (("pdm", path) for path in _some(data / "pdm" / "venvs", f"*-{by_md5}-*"))
    wanted = CONDA_NAME.search(read_little(root / "environment.yml"))
    for line in read_little(home / ".conda" / "environments.txt").splitlines() if wanted else ():
        path = Path(line.strip())
        if wanted and path.is_absolute() and path.name == wanted[1]:
            yield "conda", path


def _some(folder: Path, pattern: str) -> Iterator[Path]:
    if folder.is_absolute():
        yield from sorted(islice(folder.glob(pattern), MOST_LISTED))[:MOST_OF_ONE]


def required_packages(root: Path) -> frozenset[str]:
    """Packages that a project's papers ask for whatever the machine is, its test groups among them."""
    try:
        table: dict[str, Any] = parse_toml(read_little(root / "pyproject.toml"))
    except ValueError:
        table = {}
    lines: list[object] = []
    project = _table(table, "project")
    lines += _list(project.get("dependencies"))
    for groups in (_table(project, "optional-dependencies"), _table(table, "dependency-groups")):
        lines += [
            line for name, group in groups.items() if TEST_GROUPS.fullmatch(name) for line in _list(group)
        ]
    poetry = _table(_table(table, "tool"), "poetry")
    lines += [name for name in _table(poetry, "dependencies") if name != "python"]
    for name, group in _table(poetry, "group").items():
        if TEST_GROUPS.fullmatch(name) and isinstance(group, dict):
            lines += _table(group, "dependencies")
    for paper in PAPERS:
        lines += read_little(root / paper).splitlines()
    return frozenset(_names(line for line in lines if isinstance(line, str)))


def _names(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        match = NAME.match(line.strip())
        # Behind a `;` stands on which machines; behind an `@`, or where a slash is, it comes from elsewhere.
        if match and ";" not in line and "/" not in line.partition("#")[0]:
            yield _plain(match[0])


def lacking(required: Iterable[str], site_packages: Iterable[str]) -> tuple[str, ...]:
    """The required packages that no folder of installed ones holds."""
    there: set[str] = set()
    for folder in site_packages:
        try:
            names = [path.name for path in Path(folder).iterdir()]
        except OSError:
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info", ".egg-link")):
                there.add(_plain(name.rpartition(".")[0].partition("-")[0]))
    return tuple(sorted(set(required) - there))


def _plain(name: str) -> str:
    """A package's name as it is compared: `A_b.c` and `a-b-c` are one (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _table(table: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = table.get(name)
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
