"""One requirement of a manifest: a package, another index, or what cannot be determined."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from suture.project.tuning import MAX_QUOTED_REQUIREMENT_CHARS, MAX_REQUIREMENT_CHARS

Ecosystem = Literal["python", "javascript", "go"]
NUMBER = re.compile(r"\d+(?:\.\d+)*")
"""Matches a version number."""
LOWEST_VERSION = re.compile(r"(?:(?<![<!=])(?:===?|~=|>=?|\^|~)|(?:^|(?<=[\s,(]))=?)v?(\d+(?:\.\d+)*)")
"""A version number that a requirement accepts, or a lower bound."""
OUTSIDE_INDEX = re.compile(
    r"(?:[a-z+]+:)?//|^git\b|^file:|^\.{0,2}/|^(?:github|gitlab|bitbucket):|@\s*(?:[a-z+]+:)?//"
)
"""Matches what says that a package comes from an address, a repository or a path."""
NAME = re.compile(r"\s*(@?[A-Za-z0-9][\w./-]*)\s*(\[[^\]]*\])?(.*)", re.DOTALL)
"""Matches a requirement: its name, its extras and the rest, such as the versions."""
HARMLESS_OPTIONS = re.compile(r"(?:--(?:hash|no-binary|only-binary)[\s=]\S+\s*)+")
"""Options of pip that require nothing."""
REQUIREMENTS_FILE = re.compile(
    r"(?:.*/)?(?:[^/]*(?:requirements|constraints|dependencies|deps)[^/]*|requirements/[^/]*)\.(?:txt|in)"
)
"""Paths of files in pip's format, which are themselves manifests."""
OUTSIDE_KEYS = frozenset((
    "git", "hg", "svn", "bzr", "url", "path", "file", "index", "source", "workspace", "registry",
))  # fmt: skip
"""Keys of a requirement in a table that choose a source other than the default index."""


@dataclass(frozen=True, kw_only=True)
class PackageRequirement:
    """A package that a manifest requires.

    Attributes:
        ecosystem: Package index that it comes from.
        name: Name as in the index; for a package from another source, what the manifest says.
        version: First version number that the manifest names; empty if none.
        line: Line in the manifest, from 1; 1 if it was not found.
        is_outside_index: Whether it comes from an address, a repository, a path or another index.
        source: Where it comes from then, if the name does not say it.
        is_install_script: Whether it is not a package but a script that runs during an installation.
        unreadable_reason: Why the requirement cannot be determined; empty if it can.
    """

    ecosystem: Ecosystem
    name: str
    version: str = ""
    line: int = 1
    is_outside_index: bool = False
    source: str = ""
    is_install_script: bool = False
    unreadable_reason: str = ""


def unreadable(ecosystem: Ecosystem, name: str, why: str) -> PackageRequirement:
    """Return a manifest, or a line of one, whose requirement cannot be determined."""
    return PackageRequirement(ecosystem=ecosystem, name=name, unreadable_reason=why)


def outside_index(ecosystem: Ecosystem, name: str, source: str = "") -> PackageRequirement:
    """Return a requirement, or a setting of an index, that does not come from the package index.

    Args:
        name: Name of the package, or what the manifest says.
        source: Where it comes from. Different sources must be different strings, so that an edit is noticed.
    """
    if not source:  # what is cut from the name must stay part of the requirement's rendering
        source = name[MAX_QUOTED_REQUIREMENT_CHARS:]
    return PackageRequirement(
        ecosystem=ecosystem,
        name=name[:MAX_QUOTED_REQUIREMENT_CHARS],
        is_outside_index=True,
        source=" ".join(source.split()).removeprefix("@ "),
    )


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
    """Return the numbers of a version, to compare it with others."""
    # Nine digits of each are enough: converting a string of any length could take long.
    return tuple(int(part[:9]) for part in version.split("."))


def _requirement(text: str) -> PackageRequirement | None:
    """Parse one requirement as Python's tools write it; return `None` if the line requires nothing."""
    line = re.sub(r"\s#.*", "", text[:MAX_REQUIREMENT_CHARS]).partition(";")[0].strip()
    if not line or line.startswith("#"):
        return None
    if len(text) > MAX_REQUIREMENT_CHARS:  # there may be an address after the inspected part
        return outside_index("python", text)
    if line.startswith("-"):
        option, _, value = re.sub(r"[\s=]+", " ", line).partition(" ")
        if option in ("-r", "-c", "--requirement", "--constraint"):
            if "//" in value:  # an address, from which pip would fetch the file
                return outside_index("python", line)
            return required_file(value, line)
        return None if HARMLESS_OPTIONS.fullmatch(line) else outside_index("python", line)
    match = NAME.fullmatch(line)
    if match is None or OUTSIDE_INDEX.search(line):
        return outside_index("python", line)
    name = normalise_package_name(match[1])
    return PackageRequirement(ecosystem="python", name=name, version=lowest_version(match[3]))


def required_file(path: str, text: str) -> PackageRequirement | None:
    """Return `None` for a file of requirements that is itself a manifest, and otherwise that it is not read.

    Args:
        text: What the manifest says about the file.
    """
    if REQUIREMENTS_FILE.fullmatch(path) and ".." not in path and not path.startswith("/"):
        return None
    return unreadable("python", text[:MAX_QUOTED_REQUIREMENT_CHARS], "it is in a file that is not read")


def parse_requirements(lines: Iterable[str]) -> Iterator[PackageRequirement]:
    """Yield the requirements among some lines."""
    packages = map(_requirement, lines)
    yield from (package for package in packages if package is not None)


def index_requirements(*indexes: Mapping[str, Any]) -> Iterator[PackageRequirement]:
    """Yield package indexes, each as a table with its address."""
    for index in indexes:
        others = {key: value for key, value in index.items() if key != "url"}
        yield outside_index("python", str(index.get("url") or index.get("name", "")), render_value(others))


def table_requirements(packages: Mapping[str, Any]) -> Iterator[PackageRequirement]:
    """Yield packages from a table of names, each with its versions, a table, or a list of either."""
    for name, value in packages.items():
        for alternative in value if isinstance(value, list) else [value]:
            yield _table_requirement(name, alternative)


def render_value(value: Any) -> str:
    """Return a value of a TOML table in one way, so that equal values are equal strings."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} = {render_value(value[key])}" for key in sorted(value))
    if isinstance(value, list):
        return "[" + ", ".join(map(render_value, value)) + "]"
    return str(value)


def _table_requirement(name: str, value: Any) -> PackageRequirement:
    """Return one package of a table. Its value is its versions, or a table with more about it."""
    if isinstance(value, dict) and OUTSIDE_KEYS & value.keys():
        return outside_index("python", name, render_value(value))
    versions = str(value.get("version", "") if isinstance(value, dict) else value)
    if OUTSIDE_INDEX.search(versions):
        return outside_index("python", name, versions)
    name = normalise_package_name(name)
    return PackageRequirement(ecosystem="python", name=name, version=lowest_version(versions))
