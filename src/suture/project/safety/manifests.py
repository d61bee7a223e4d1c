"""What a manifest asks for: packages of others, and scripts that run while they are installed."""

from __future__ import annotations

import configparser
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

from suture.project.safety.python_manifests import (
    REQUIREMENTS,
    in_client_settings,
    in_pipfile,
    in_pyproject,
    in_requirements,
    in_setup_cfg,
    in_setup_py,
)
from suture.project.safety.requested import (
    ELSEWHERE,
    LONGEST,
    NUMBER,
    Ecosystem,
    Requested,
    from_elsewhere,
    least_version,
    unread,
)

HOOKS = ("preinstall", "install", "postinstall", "prepare", "prepublish")
OF_NPM = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
MOST = 500
"""Packages of one manifest that are looked at."""
MOST_CHARS = 200_000

Reader = Callable[[str], Iterable[Requested]]


def requested_in(path: str, text: str) -> tuple[Requested, ...]:
    """What a file asks for; nothing where it is no manifest. What cannot be read is told as such.

    Args:
        path: For its name.
        text: The file. Not trusted.
    """
    name = PurePosixPath(path).name
    reader = _READERS.get(name) or (in_requirements if REQUIREMENTS.fullmatch(name) else None)
    if reader is None:
        return ()
    ecosystem = OF_FILE.get(name, "python")
    if len(text) > MOST_CHARS:
        return (unread(ecosystem, name, f"more than {MOST_CHARS:,} characters"),)
    try:
        found = list(islice(reader(text), MOST + 1))
    except (ValueError, RecursionError, TypeError, AttributeError, KeyError, configparser.Error):
        return (unread(ecosystem, name, "it is not written as such a file is"),)
    if len(found) > MOST:
        found[MOST - 1 :] = [unread(ecosystem, name, f"more than {MOST} packages")]
    lines = text.splitlines()
    return tuple(_placed(one, lines) for one in found)


def _placed(one: Requested, lines: list[str]) -> Requested:
    at = next((number for number, line in enumerate(lines, 1) if one.name in line), 1)
    return Requested(**{**vars(one), "line": at})


def _npm_settings(text: str) -> Iterator[Requested]:
    for one in in_client_settings(text):
        yield from_elsewhere("javascript", one.name)


def _package_json(text: str) -> Iterator[Requested]:
    package: Mapping[str, Any] = json.loads(text)
    tables = [package.get(kind, {}) for kind in (*OF_NPM, "overrides", "resolutions")]
    for table in (*tables, package.get("pnpm", {}).get("overrides", {})):
        for name, value in _flat(table):
            yield _of_npm(name, str(value)[:LONGEST])
    for hook in HOOKS:
        if package.get("scripts", {}).get(hook):
            yield Requested(ecosystem="javascript", name=hook, script=True)


def _flat(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Names and versions; an override may hold others for what a package requires."""
    for name, value in table.items():
        own = above if name == "." else re.sub(r"(?<=.)@[^/]*$", "", name.rpartition("/**/")[2])
        if isinstance(value, dict):
            yield from _flat(value, own)
        else:
            yield own, value


def _of_npm(name: str, wanted: str) -> Requested:
    if ELSEWHERE.search(wanted) or re.fullmatch(r"[\w.-]+/[\w.-]+(?:#.*)?", wanted):
        return from_elsewhere("javascript", name)
    if wanted.startswith("npm:"):
        return Requested(ecosystem="javascript", name=wanted[4:].rpartition("@")[0] or wanted[4:])
    # `$` in an override is the version that the project asks for anyway.
    version = "" if wanted.startswith("$") else least_version(wanted)
    return Requested(ecosystem="javascript", name=name, version=version)


def _go_mod(text: str) -> Iterator[Requested]:
    inside = ""
    for line in text.splitlines():
        words = line.partition("//")[0].split()
        if words[-1:] == ["("] and len(words) == 2:
            inside = words[0]
        elif words == [")"]:
            inside = ""
        elif words:
            kind, rest = (inside, words) if inside else (words[0], words[1:])
            if kind == "require" and len(rest) > 1:
                number = NUMBER.search(rest[1])
                yield Requested(ecosystem="go", name=rest[0], version=number[0] if number else "")
            elif kind == "replace" and len(rest) > 1:
                yield from_elsewhere("go", rest[0])


_READERS: Mapping[str, Reader] = {
    "pyproject.toml": in_pyproject,
    "setup.py": in_setup_py,
    "setup.cfg": in_setup_cfg,
    "Pipfile": in_pipfile,
    "package.json": _package_json,
    "go.mod": _go_mod,
    **dict.fromkeys(("pip.conf", "pip.ini", "uv.toml"), in_client_settings),
    **dict.fromkeys((".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmrc", "bunfig.toml"), _npm_settings),
}
OF_FILE: Mapping[str, Ecosystem] = {
    "go.mod": "go",
    **dict.fromkeys((name for name, reader in _READERS.items() if reader is _npm_settings), "javascript"),
    "package.json": "javascript",
}
