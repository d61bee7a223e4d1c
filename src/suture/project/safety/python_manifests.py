"""What the manifests of Python's tools ask for."""

from __future__ import annotations

import ast
import configparser
import re
import tomllib
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from suture.project.python_source.parsing import parsed
from suture.project.safety.requested import (
    ELSEWHERE,
    LONGEST,
    Requested,
    from_elsewhere,
    least_version,
    plain_name,
    unread,
)

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
    return Requested(ecosystem="python", name=plain_name(match[1]), version=least_version(match[3]))


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
    yield Requested(ecosystem="python", name=plain_name(name), version=least_version(versions))


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
