"""What a manifest asks for: packages of others, and scripts that run while they are installed."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Literal

Ecosystem = Literal["python", "javascript", "go"]
NAME = re.compile(r"\s*(@?[A-Za-z0-9][\w./-]*)\s*(\[[^\]]*\])?(.*)", re.DOTALL)
NUMBER = re.compile(r"\d+(?:\.\d+)*")
HOOKS = ("preinstall", "install", "postinstall", "prepare", "prepublish")
OF_NPM = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
ELSEWHERE = re.compile(
    r"(?:[a-z+]+:)?//|^git\b|^file:|^\.{0,2}/|^(?:github|gitlab|bitbucket):|@\s*(?:[a-z+]+:)?//"
)
LONGEST = 1000
"""Characters of one requirement."""
MOST = 500
"""Packages of one manifest that are looked at."""


@dataclass(frozen=True, kw_only=True)
class Requested:
    """A package that a manifest asks for.

    Attributes:
        ecosystem: Whose index it comes from.
        name: As the index writes it; of a package from elsewhere what the manifest says.
        version: The first version number that the manifest names; empty for none.
        line: Where the manifest names it, from 1; 1 where that is not found.
        elsewhere: Whether it comes from past the index: an address, a repository, a path, another index.
        script: Whether it is no package, but a script that runs at an installation.
    """

    ecosystem: Ecosystem
    name: str
    version: str = ""
    line: int = 1
    elsewhere: bool = False
    script: bool = False


def requested_in(path: str, text: str) -> tuple[Requested, ...]:
    """What a file asks for; nothing where it is no manifest, or cannot be read as one.

    Args:
        path: For its name.
        text: The file. Not trusted.
    """
    name = PurePosixPath(path).name
    reader: Callable[[str], Iterable[Requested]] | None = {
        "pyproject.toml": _pyproject,
        "package.json": _package_json,
        "go.mod": _go_mod,
    }.get(name)
    if reader is None and re.fullmatch(r"(?:.*requirements.*|constraints)\.(?:txt|in)", name):
        reader = _requirements
    if reader is None:
        return ()
    try:
        found = [one for one, _ in zip(reader(text), range(MOST), strict=False)]
    except (ValueError, RecursionError, TypeError, AttributeError):
        return ()  # no package manager reads it either
    lines = text.splitlines()
    return tuple(_placed(one, lines) for one in found)


def _placed(one: Requested, lines: list[str]) -> Requested:
    at = next((number for number, line in enumerate(lines, 1) if one.name in line), 1)
    return Requested(**{**vars(one), "line": at})


def plain_name(name: str) -> str:
    """A name as indexes compare them."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _requirement(text: str) -> Requested | None:
    """One requirement as Python's tools write it."""
    line = re.sub(r"\s#.*", "", text[:LONGEST]).partition(";")[0].strip()
    if not line or line.startswith("#"):
        return None
    if len(text) > LONGEST:  # an address may stand behind what is looked at
        return _elsewhere("python", line)
    if line.startswith("-"):
        harmless = ("-r", "-c", "--requirement", "--constraint", "--hash", "--no-binary", "--only-binary")
        near = line.startswith(harmless) and "//" not in line
        return None if near else _elsewhere("python", line)
    match = NAME.fullmatch(line)
    if match is None or ELSEWHERE.search(line):
        return _elsewhere("python", line)
    number = NUMBER.search(match[3])
    return Requested(ecosystem="python", name=plain_name(match[1]), version=number[0] if number else "")


def _elsewhere(ecosystem: Ecosystem, text: str) -> Requested:
    return Requested(ecosystem=ecosystem, name=text[:100], elsewhere=True)


def _requirements(text: str) -> Iterator[Requested]:
    for line in text.replace("\\\n", " ").splitlines():
        found = _requirement(line)
        if found is not None:
            yield found


def _pyproject(text: str) -> Iterator[Requested]:
    table = tomllib.loads(text)
    project = table.get("project", {})
    groups = {**project.get("optional-dependencies", {}), **table.get("dependency-groups", {})}
    lists = [
        project.get("dependencies", []),
        table.get("build-system", {}).get("requires", []),
        *groups.values(),
    ]
    for words in lists:
        for word in words:
            found = _requirement(word) if isinstance(word, str) else None
            if found is not None:
                yield found
    poetry = table.get("tool", {}).get("poetry", {})
    groups_of_poetry = poetry.get("group", {}).values()
    tables = [poetry.get("dependencies", {}), *(one.get("dependencies", {}) for one in groups_of_poetry)]
    for named in tables:
        for name, value in named.items():
            if name != "python":
                yield from _of_table(name, value)


def _of_table(name: str, value: Any) -> Iterator[Requested]:
    if isinstance(value, dict) and {"git", "url", "path"} & value.keys():
        yield _elsewhere("python", name)
        return
    number = NUMBER.search(str(value.get("version", "") if isinstance(value, dict) else value))
    yield Requested(ecosystem="python", name=plain_name(name), version=number[0] if number else "")


def _package_json(text: str) -> Iterator[Requested]:
    package: Mapping[str, Any] = json.loads(text)
    for kind in OF_NPM:
        for name, value in package.get(kind, {}).items():
            wanted = str(value)[:LONGEST]
            number = NUMBER.search(wanted)
            if ELSEWHERE.search(wanted) or re.fullmatch(r"[\w.-]+/[\w.-]+(?:#.*)?", wanted):
                yield _elsewhere("javascript", name)
            elif wanted.startswith("npm:"):
                yield Requested(ecosystem="javascript", name=wanted[4:].rpartition("@")[0] or wanted[4:])
            else:
                yield Requested(ecosystem="javascript", name=name, version=number[0] if number else "")
    for hook in HOOKS:
        if package.get("scripts", {}).get(hook):
            yield Requested(ecosystem="javascript", name=hook, script=True)


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
                yield _elsewhere("go", rest[0])
