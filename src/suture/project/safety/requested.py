"""A package that a manifest asks for, and how its version is read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

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


def plain_name(name: str) -> str:
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
