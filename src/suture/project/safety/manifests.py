"""What a manifest asks for: packages of others, and scripts that run while they are installed."""

from __future__ import annotations

import ast
import configparser
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath
from typing import Any, Literal

from suture.project.python_source.parsing import parsed

NAME = re.compile(r"\s*(@?[A-Za-z0-9][\w./-]*)\s*(\[[^\]]*\])?(.*)", re.DOTALL)
HARMLESS = re.compile(r"(?:--(?:hash|no-binary|only-binary)[\s=]\S+\s*)+")
"""Options of pip's behind which nothing is asked for."""
REQUIREMENTS = re.compile(r"(?:.*requirements.*|constraints)\.(?:txt|in)")
OF_SETUP = ("install_requires", "setup_requires", "tests_require", "extras_require")


def _requirement(text: str) -> Requested | None:
    """One requirement as Python's tools write it."""
    line = re.sub(r"\s#.*", "", text[:LONGEST]).partition(";")[0].strip()
    if not line or line.startswith("#"):
        return None
    if len(text) > LONGEST:  # an address may stand behind what is looked at
        return from_elsewhere("python", line)
    if line.startswith("-"):
        option, _, value = re.sub(r"[\s=]+", " ", line).partition(" ")
        if option in ("-r", "-c", "--requirement", "--constraint"):
            near = REQUIREMENTS.fullmatch(PurePosixPath(value).name) and ".." not in value
            there = unread("python", line[:100], "it stands in a file that is not looked through")
            return from_elsewhere("python", line) if "//" in value else None if near else there
        return None if HARMLESS.fullmatch(line) else from_elsewhere("python", line)
    match = NAME.fullmatch(line)
    if match is None or ELSEWHERE.search(line):
        return from_elsewhere("python", line)
    return Requested(
        ecosystem="python", name=normalise_package_name(match[1]), version=least_version(match[3])
    )


def in_requirements(text: str) -> Iterator[Requested]:
    """The lines of a file of requirements."""
    for line in text.replace("\\\n", " ").splitlines():
        found = _requirement(line)
        if found is not None:
            yield found


def in_pyproject(text: str) -> Iterator[Requested]:
    """The packages that its tables name, Poetry's too."""
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
        yield from_elsewhere("python", name)
        return
    versions = str(value.get("version", "") if isinstance(value, dict) else value)
    yield Requested(ecosystem="python", name=normalise_package_name(name), version=least_version(versions))


def in_setup_py(text: str) -> Iterator[Requested]:
    """Its lists, where they are written out; code that makes them is not run to see."""
    tree = parsed(text)
    if tree is None:
        raise ValueError("it is no Python")
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        for keyword in node.keywords:
            if keyword.arg in OF_SETUP:
                yield from _written_out(keyword.arg, keyword.value)
            elif keyword.arg is None and _called(node.func) == "setup":
                yield unread("python", "setup.py", "it makes its arguments by code")


def _called(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _written_out(name: str, value: ast.expr) -> Iterator[Requested]:
    try:
        lists = ast.literal_eval(value)
    except ValueError:
        yield unread("python", "setup.py", f"it makes {name} by code")
        return
    for words in lists.values() if isinstance(lists, dict) else [lists]:
        for word in words.splitlines() if isinstance(words, str) else words:
            found = _requirement(str(word))
            if found is not None:
                yield found


def in_setup_cfg(text: str) -> Iterator[Requested]:
    """Setuptools' lists."""
    table = configparser.RawConfigParser(strict=False)
    table.read_string(text)
    lists = [table.get("options", name, fallback="") for name in OF_SETUP]
    if table.has_section("options.extras_require"):
        lists += [value for _, value in table.items("options.extras_require")]
    for line in "\n".join(lists).splitlines():
        found = _requirement(line)
        if found is not None:
            yield found


def in_pipfile(text: str) -> Iterator[Requested]:
    """Its packages, and its sources."""
    for name, value in tomllib.loads(text).items():
        if name == "source":
            for source in value:
                yield from_elsewhere("python", str(source.get("url", "")))
        elif name not in ("requires", "pipenv", "scripts", "pipfile"):
            for package, versions in value.items():
                yield from _of_table(package, versions)


def in_client_settings(text: str) -> Iterator[Requested]:
    """Each setting of a package manager: one may name another index, or let scripts run."""
    for line in text.splitlines():
        if line.strip() and line.strip()[0] not in "#;[":
            yield from_elsewhere("python", line.strip())


Ecosystem = Literal["python", "javascript", "go"]
NUMBER = re.compile(r"\d+(?:\.\d+)*")
LEAST = re.compile(r"(?:(?<![<!=])(?:===?|~=|>=?|\^|~)|(?:^|(?<=[\s,(]))=?)v?(\d+(?:\.\d+)*)")
"""A number that a requirement names as one that it takes, or from which on it takes them."""
ELSEWHERE = re.compile(
    r"(?:[a-z+]+:)?//|^git\b|^file:|^\.{0,2}/|^(?:github|gitlab|bitbucket):|@\s*(?:[a-z+]+:)?//"
)
LONGEST = 1000
"""Characters of one requirement."""


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
        unread: Why it is not known what is asked for; empty where it is.
    """

    ecosystem: Ecosystem
    name: str
    version: str = ""
    line: int = 1
    elsewhere: bool = False
    script: bool = False
    unread: str = ""


def unread(ecosystem: Ecosystem, name: str, why: str) -> Requested:
    """A manifest, or a line of one, of which it is not known what it asks for."""
    return Requested(ecosystem=ecosystem, name=name, unread=why)


def from_elsewhere(ecosystem: Ecosystem, text: str) -> Requested:
    """What comes from past the index."""
    return Requested(ecosystem=ecosystem, name=text[:100], elsewhere=True)


def normalise_package_name(name: str) -> str:
    """A name as indexes compare them."""
    return re.sub(r"[-_.]+", "-", name).lower()


def least_version(versions: str) -> str:
    """The least version that a requirement may bring, as far as it says one.

    Args:
        versions: As pip, Poetry or npm write them, such as `>=2,<4` or `^1.2 || 3`.

    Returns:
        It; `0` where a requirement has a bound above and none below, empty where it names no version.
    """
    if NUMBER.search(versions) is None:
        return ""
    found = [LEAST.findall(re.sub(r"([<>=!~^])\s+", r"\1", part)) for part in versions.split("||")]
    least = [min(part, key=_parts) if part else "0" for part in found]
    return min(least, key=_parts)


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part[:9]) for part in version.split("."))


HOOKS = ("preinstall", "install", "postinstall", "prepare", "prepublish")
OF_NPM = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
MOST = 500
"""Packages of one manifest that are looked at."""
MOST_CHARS = 200_000
Reader = Callable[[str], Iterable[Requested]]


def find_requested_packages(path: str, text: str) -> tuple[Requested, ...]:
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
