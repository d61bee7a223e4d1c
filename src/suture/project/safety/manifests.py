"""Read manifests: files that say which packages a project requires.

Besides packages, the module finds scripts that run during an installation, and settings of package clients that
choose another index. What cannot be read is reported, because it could require anything.
"""

from __future__ import annotations

import ast
import configparser
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import PurePosixPath
from typing import Any, Literal

from suture.project.python_source.parsing import parse_module
from suture.project.tuning import (
    MAX_MANIFEST_CHARS,
    MAX_MANIFEST_PACKAGES,
    MAX_QUOTED_REQUIREMENT_CHARS,
    MAX_REQUIREMENT_CHARS,
)

Ecosystem = Literal["python", "javascript", "go"]
NUMBER = re.compile(r"\d+(?:\.\d+)*")
LOWEST_VERSION = re.compile(r"(?:(?<![<!=])(?:===?|~=|>=?|\^|~)|(?:^|(?<=[\s,(]))=?)v?(\d+(?:\.\d+)*)")
"""A version number that a requirement accepts, or a lower bound."""
OUTSIDE_INDEX = re.compile(
    r"(?:[a-z+]+:)?//|^git\b|^file:|^\.{0,2}/|^(?:github|gitlab|bitbucket):|@\s*(?:[a-z+]+:)?//"
)
NAME = re.compile(r"\s*(@?[A-Za-z0-9][\w./-]*)\s*(\[[^\]]*\])?(.*)", re.DOTALL)
HARMLESS_OPTIONS = re.compile(r"(?:--(?:hash|no-binary|only-binary)[\s=]\S+\s*)+")
"""Options of pip that require nothing."""
REQUIREMENTS_FILE = re.compile(r"(?:.*requirements.*|constraints)\.(?:txt|in)")
SETUPTOOLS_LISTS = ("install_requires", "setup_requires", "tests_require", "extras_require")


@dataclass(frozen=True, kw_only=True)
class PackageRequirement:
    """A package that a manifest requires.

    Attributes:
        ecosystem: Package index that it comes from.
        name: Name as in the index; for a package from another source, what the manifest says.
        version: First version number that the manifest names; empty if none.
        line: Line in the manifest, from 1; 1 if it was not found.
        is_outside_index: Whether it comes from an address, a repository, a path or another index.
        is_install_script: Whether it is not a package but a script that runs during an installation.
        unreadable_reason: Why the requirement cannot be determined; empty if it can.
    """

    ecosystem: Ecosystem
    name: str
    version: str = ""
    line: int = 1
    is_outside_index: bool = False
    is_install_script: bool = False
    unreadable_reason: str = ""


def unreadable(ecosystem: Ecosystem, name: str, why: str) -> PackageRequirement:
    """Return a manifest, or a line of one, whose requirement cannot be determined."""
    return PackageRequirement(ecosystem=ecosystem, name=name, unreadable_reason=why)


def outside_index(ecosystem: Ecosystem, text: str) -> PackageRequirement:
    """Return a requirement that does not come from the index."""
    name = text[:MAX_QUOTED_REQUIREMENT_CHARS]
    return PackageRequirement(ecosystem=ecosystem, name=name, is_outside_index=True)


def normalise_package_name(name: str) -> str:
    """Return a name in the form in which package indexes compare names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def lowest_version(versions: str) -> str:
    """Return the lowest version that a requirement names; `0` if only an upper bound, empty if none."""
    if NUMBER.search(versions) is None:
        return ""
    bounds = [LOWEST_VERSION.findall(re.sub(r"([<>=!~^])\s+", r"\1", part)) for part in versions.split("||")]
    lowest = [min(part, key=_parts) if part else "0" for part in bounds]
    return min(lowest, key=_parts)


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part[:9]) for part in version.split("."))


def _requirement(text: str) -> PackageRequirement | None:
    """Parse one requirement as Python's tools write it; return `None` if the line requires nothing."""
    line = re.sub(r"\s#.*", "", text[:MAX_REQUIREMENT_CHARS]).partition(";")[0].strip()
    if not line or line.startswith("#"):
        return None
    if len(text) > MAX_REQUIREMENT_CHARS:  # there may be an address after the inspected part
        return outside_index("python", line)
    if line.startswith("-"):
        option, _, value = re.sub(r"[\s=]+", " ", line).partition(" ")
        if option in ("-r", "-c", "--requirement", "--constraint"):
            if "//" in value:
                return outside_index("python", line)
            if REQUIREMENTS_FILE.fullmatch(PurePosixPath(value).name) and ".." not in value:
                return None  # the other file is a manifest, which is read by itself
            reason = "it is in a file that is not read"
            return unreadable("python", line[:MAX_QUOTED_REQUIREMENT_CHARS], reason)
        return None if HARMLESS_OPTIONS.fullmatch(line) else outside_index("python", line)
    match = NAME.fullmatch(line)
    if match is None or OUTSIDE_INDEX.search(line):
        return outside_index("python", line)
    name = normalise_package_name(match[1])
    return PackageRequirement(ecosystem="python", name=name, version=lowest_version(match[3]))


def in_requirements(text: str) -> Iterator[PackageRequirement]:
    """Yield the packages of a requirements file."""
    yield from _requirements(text.replace("\\\n", " ").splitlines())


def _requirements(lines: Iterable[str]) -> Iterator[PackageRequirement]:
    """Yield the requirements among some lines."""
    packages = map(_requirement, lines)
    yield from (package for package in packages if package is not None)


def in_pyproject(text: str) -> Iterator[PackageRequirement]:
    """Yield the packages in the tables of a `pyproject.toml`, including Poetry's."""
    table = tomllib.loads(text)
    project = table.get("project", {})
    groups = {**project.get("optional-dependencies", {}), **table.get("dependency-groups", {})}
    build_requirements = table.get("build-system", {}).get("requires", [])
    for words in (project.get("dependencies", []), build_requirements, *groups.values()):
        yield from _requirements(word for word in words if isinstance(word, str))
    poetry = table.get("tool", {}).get("poetry", {})
    for poetry_table in (poetry, *poetry.get("group", {}).values()):
        for name, value in poetry_table.get("dependencies", {}).items():
            if name != "python":
                yield _table_requirement(name, value)


def _table_requirement(name: str, value: Any) -> PackageRequirement:
    if isinstance(value, dict) and {"git", "url", "path"} & value.keys():
        return outside_index("python", name)
    versions = str(value.get("version", "") if isinstance(value, dict) else value)
    name = normalise_package_name(name)
    return PackageRequirement(ecosystem="python", name=name, version=lowest_version(versions))


def in_setup_py(text: str) -> Iterator[PackageRequirement]:
    """Yield the packages in literal lists of a `setup.py`. Code that computes lists is not run."""
    tree = parse_module(text)
    if tree is None:
        raise ValueError("it is not valid Python")
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        for keyword in node.keywords:
            if keyword.arg in SETUPTOOLS_LISTS:
                yield from _literal_requirements(keyword.arg, keyword.value)
            elif keyword.arg is None and _called(node.func) == "setup":
                yield unreadable("python", "setup.py", "it computes its arguments")


def _called(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _literal_requirements(name: str, value: ast.expr) -> Iterator[PackageRequirement]:
    try:
        lists = ast.literal_eval(value)
    except ValueError:
        yield unreadable("python", "setup.py", f"it computes {name}")
        return
    for words in lists.values() if isinstance(lists, dict) else [lists]:
        yield from _requirements(map(str, words.splitlines() if isinstance(words, str) else words))


def in_setup_cfg(text: str) -> Iterator[PackageRequirement]:
    """Yield the packages in setuptools' lists."""
    table = configparser.RawConfigParser(strict=False)
    table.read_string(text)
    lists = [table.get("options", name, fallback="") for name in SETUPTOOLS_LISTS]
    if table.has_section("options.extras_require"):
        lists += [value for _, value in table.items("options.extras_require")]
    yield from _requirements("\n".join(lists).splitlines())


def in_pipfile(text: str) -> Iterator[PackageRequirement]:
    """Yield the packages and the sources of a `Pipfile`."""
    for name, value in tomllib.loads(text).items():
        if name == "source":
            for source in value:
                yield outside_index("python", str(source.get("url", "")))
        elif name not in ("requires", "pipenv", "scripts", "pipfile"):
            for package, versions in value.items():
                yield _table_requirement(package, versions)


def in_client_settings(text: str) -> Iterator[PackageRequirement]:
    """Yield each setting of a package client, because it may name another index or enable scripts."""
    for line in text.splitlines():
        if line.strip() and line.strip()[0] not in "#;[":
            yield outside_index("python", line.strip())


INSTALL_SCRIPTS = ("preinstall", "install", "postinstall", "prepare", "prepublish")
NPM_TABLES = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
Reader = Callable[[str], Iterable[PackageRequirement]]


def find_requested_packages(path: str, text: str) -> tuple[PackageRequirement, ...]:
    """Return what a file requires; empty if it is not a manifest. Unreadable parts are reported as such.

    Args:
        path: Path of the file, for its name.
        text: Text of the file, not trusted.
    """
    name = PurePosixPath(path).name
    reader = _READERS.get(name) or (in_requirements if REQUIREMENTS_FILE.fullmatch(name) else None)
    if reader is None:
        return ()
    ecosystem = ECOSYSTEM_BY_FILE.get(name, "python")
    if len(text) > MAX_MANIFEST_CHARS:
        return (unreadable(ecosystem, name, f"more than {MAX_MANIFEST_CHARS:,} characters"),)
    try:
        packages = list(islice(reader(text), MAX_MANIFEST_PACKAGES + 1))
    except (ValueError, RecursionError, TypeError, AttributeError, KeyError, configparser.Error):
        return (unreadable(ecosystem, name, "it is not in the format of such a file"),)
    if len(packages) > MAX_MANIFEST_PACKAGES:
        too_many = unreadable(ecosystem, name, f"more than {MAX_MANIFEST_PACKAGES} packages")
        packages[MAX_MANIFEST_PACKAGES - 1 :] = [too_many]
    lines = text.splitlines()
    return tuple(_with_line(package, lines) for package in packages)


def _with_line(package: PackageRequirement, lines: list[str]) -> PackageRequirement:
    """Return a requirement with the number of the first line that contains its name."""
    return replace(package, line=next((n for n, line in enumerate(lines, 1) if package.name in line), 1))


def _npm_settings(text: str) -> Iterator[PackageRequirement]:
    for setting in in_client_settings(text):
        yield outside_index("javascript", setting.name)


def _package_json(text: str) -> Iterator[PackageRequirement]:
    package: Mapping[str, Any] = json.loads(text)
    tables = [package.get(kind, {}) for kind in (*NPM_TABLES, "overrides", "resolutions")]
    for table in (*tables, package.get("pnpm", {}).get("overrides", {})):
        for name, value in _flat(table):
            yield _npm_requirement(name, str(value)[:MAX_REQUIREMENT_CHARS])
    for hook in INSTALL_SCRIPTS:
        if package.get("scripts", {}).get(hook):
            yield PackageRequirement(ecosystem="javascript", name=hook, is_install_script=True)


def _flat(table: Mapping[str, Any], parent: str = "") -> Iterator[tuple[str, Any]]:
    """Yield names and versions. An override may contain overrides for the requirements of a package."""
    for name, value in table.items():
        package = parent if name == "." else re.sub(r"(?<=.)@[^/]*$", "", name.rpartition("/**/")[2])
        if isinstance(value, dict):
            yield from _flat(value, package)
        else:
            yield package, value


def _npm_requirement(name: str, versions: str) -> PackageRequirement:
    if OUTSIDE_INDEX.search(versions) or re.fullmatch(r"[\w.-]+/[\w.-]+(?:#.*)?", versions):
        return outside_index("javascript", name)
    if versions.startswith("npm:"):
        alias_target = versions.removeprefix("npm:")
        return PackageRequirement(
            ecosystem="javascript", name=alias_target.rpartition("@")[0] or alias_target
        )
    # `$` in an override means the version that the project requires anyway.
    version = "" if versions.startswith("$") else lowest_version(versions)
    return PackageRequirement(ecosystem="javascript", name=name, version=version)


def _go_mod(text: str) -> Iterator[PackageRequirement]:
    block = ""
    for line in text.splitlines():
        words = line.partition("//")[0].split()
        if words[-1:] == ["("] and len(words) == 2:
            block = words[0]
        elif words == [")"]:
            block = ""
        elif words:
            directive, arguments = (block, words) if block else (words[0], words[1:])
            if directive == "require" and len(arguments) > 1:
                number = NUMBER.search(arguments[1])
                yield PackageRequirement(
                    ecosystem="go", name=arguments[0], version=number[0] if number else ""
                )
            elif directive == "replace" and len(arguments) > 1:
                yield outside_index("go", arguments[0])


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
ECOSYSTEM_BY_FILE: Mapping[str, Ecosystem] = {
    "go.mod": "go",
    **dict.fromkeys((name for name, reader in _READERS.items() if reader is _npm_settings), "javascript"),
    "package.json": "javascript",
}
