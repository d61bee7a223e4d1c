"""Packages that new code asks for: on the list of what is allowed, or for a person to say."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal

from suture.core.safe_files import read_regular_file
from suture.errors import UsageError
from suture.project.languages.safety_rules import SafetyLevel, SafetyRule, UnsafeUse
from suture.project.languages.safety_rules.rule import quoted
from suture.project.safety.manifests import Requested, find_requested_packages, normalise_package_name

WHY = {
    "dependency.unlisted": "a package that is not on the list of what is allowed",
    "dependency.near-name": "a package with nearly the name of one that is allowed",
    "dependency.outside-index": "a package from past the index, which nobody vouches for",
    "dependency.unread": "a list of packages that cannot be read",
    "dependency.install-script": "a script that runs while packages are installed",
}
RULES = tuple(SafetyRule(name=name, why=why, level="ask") for name, why in WHY.items())
Approval = Literal["ask", "allowlist", "never"]
LEVELS: Mapping[Approval, SafetyLevel] = {"ask": "ask", "allowlist": "block", "never": "block"}
MOST_BYTES = 1 << 20
SHORT = 8
"""Shorter names are near where one letter differs, longer ones where two do."""
Allowed = Mapping[str, Mapping[str, str]]
"""Ecosystem -> plain name -> versions, as PEP 440 writes them; empty for any."""


@dataclass(frozen=True, kw_only=True)
class DependencyUse:
    """A package that is not simply allowed: as the scan's uses are, with a reason of its own."""

    use: UnsafeUse
    why: str


def load_allowed(path: Path | None) -> Allowed:
    """The list of what is allowed: ours, or the user's in its place.

    Raises:
        UsageError: The user's cannot be read, or is no such list.
    """
    return _ours() if path is None else _read(path)


@cache
def _ours() -> Allowed:
    text = resources.files("suture.project.safety").joinpath("allowed_deps.toml").read_text("utf-8")
    return _parsed(text, "allowed_deps.toml")


def _read(path: Path) -> Allowed:
    try:
        content = read_regular_file(path.expanduser(), MOST_BYTES, follow=True)
    except OSError as fault:
        raise UsageError(f"safety.allowed_deps: {str(path)!r} cannot be read: {fault.strerror}") from fault
    if content is None or len(content) > MOST_BYTES:
        raise UsageError(f"safety.allowed_deps: {str(path)!r} is no file of at most {MOST_BYTES >> 20} MiB")
    return _parsed(content.decode("utf-8", "replace"), str(path))


def _parsed(text: str, name: str) -> Allowed:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    remedy = 'write tables [python], [javascript] and [go] with lines such as flask = ">=2"'
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as fault:
        raise UsageError(f"{name!r} is no TOML: {fault}", remedy=remedy) from fault
    allowed: dict[str, dict[str, str]] = {}
    for ecosystem, table in tables.items():
        if ecosystem not in ("python", "javascript", "go") or not isinstance(table, dict):
            raise UsageError(f"{name!r} has no table {ecosystem!r}", remedy=remedy)
        for package, versions in table.items():
            try:
                SpecifierSet(versions if isinstance(versions, str) else "?")
            except InvalidSpecifier as fault:
                raise UsageError(
                    f"{name!r}: {package!r} has no versions {versions!r}", remedy=remedy
                ) from fault
        allowed[ecosystem] = {_key(ecosystem, package): str(versions) for package, versions in table.items()}
    return allowed


def _key(ecosystem: str, name: str) -> str:
    return normalise_package_name(name) if ecosystem == "python" else name.lower()


def dependency_uses(path: str, text: str, allowed: Allowed, approval: Approval) -> Iterator[DependencyUse]:
    """What a manifest asks for and is not simply allowed.

    Args:
        path: The file.
        text: Its text. Not trusted.
        allowed: As `load_allowed` reads it.
        approval: With `never` nothing is.
    """
    for one in find_requested_packages(path, text):
        rule, why = _judged(one, allowed, approval)
        if rule:
            use = UnsafeUse(rule=rule, line=one.line, code=quoted(f"{one.ecosystem}: {one.name}"))
            yield DependencyUse(use=use, why=why)


def _judged(one: Requested, allowed: Allowed, approval: Approval) -> tuple[str, str]:
    if one.unread:
        return "dependency.unread", f"{WHY['dependency.unread']}: {one.unread}"
    if one.script:
        return "dependency.install-script", WHY["dependency.install-script"]
    if one.elsewhere:
        return "dependency.outside-index", WHY["dependency.outside-index"]
    known = allowed.get(one.ecosystem, {})
    name = _key(one.ecosystem, one.name)
    if name in known:
        if approval == "never":
            return "dependency.unlisted", "no package may be asked for (safety.approve_deps = never)"
        if is_version_allowed(one.version, known[name]):
            return "", ""
        return "dependency.unlisted", f"version {quoted(one.version)}, where {known[name]} is allowed"
    near = find_similar_name(name, known)
    if near:
        return "dependency.near-name", f"no package that is allowed, but nearly the name of {near!r}"
    return "dependency.unlisted", WHY["dependency.unlisted"]


def find_version_bounds(path: str, text: str, allowed: Allowed) -> Mapping[str, str]:
    """The versions that what a manifest asks for is resolved to: the list's.

    Where a manifest names a version past the list's a person had to allow it, and that package has no bound.

    Args:
        path: The manifest.
        text: Its text. Not trusted.
        allowed: As `load_allowed` reads it.

    Returns:
        Plain name -> versions, never empty. Python has one version of a package in all, so what is required
        in turn is bounded too; elsewhere only what the manifest names.
    """
    asked = {_key(one.ecosystem, one.name): one for one in find_requested_packages(path, text)}
    ecosystems = {one.ecosystem for one in asked.values()}
    bounds: dict[str, str] = {}
    for ecosystem in ecosystems:
        for name, versions in allowed.get(ecosystem, {}).items():
            own = asked.get(name)
            named = own is not None and is_version_allowed(own.version, versions)
            if versions and (named or (own is None and ecosystem == "python")):
                bounds[name] = versions
    return bounds


def is_version_allowed(version: str, versions: str) -> bool:
    """Whether a version is one of those that a list allows; an empty word is any."""
    from packaging.specifiers import SpecifierSet
    from packaging.version import InvalidVersion

    if not version or not versions:
        return True
    try:
        return SpecifierSet(versions).contains(version, prereleases=True)
    except InvalidVersion:
        return False


def find_similar_name(name: str, known: Mapping[str, str]) -> str:
    """The known name that somebody may have meant, or wants to be taken for; empty where none is near."""
    squeezed = re.sub(r"[^a-z0-9]", "", name)
    for other in known:
        most = 1 if len(other) < SHORT else 2
        alike = squeezed == re.sub(r"[^a-z0-9]", "", other)
        if alike or (
            len(other) > 3 and abs(len(name) - len(other)) <= most and _distance(name, other) <= most
        ):
            return other
    return ""


def _distance(first: str, second: str) -> int:
    """How many letters are lost, added, changed or swapped with a neighbour (Damerau and Levenshtein)."""
    before: list[int] = []
    row = list(range(len(second) + 1))
    for i, letter in enumerate(first, 1):
        rows, before, row = before, row, [i]
        for j, other in enumerate(second, 1):
            cost = min(before[j] + 1, row[-1] + 1, before[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == second[j - 2] and first[i - 2] == other:
                cost = min(cost, rows[j - 2] + 1)
            row.append(cost)
    return row[-1]
