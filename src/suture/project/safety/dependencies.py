"""Check the packages that new code requires against the list of allowed packages."""

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
from suture.project.languages.safety_rules.rule import quote_code
from suture.project.safety.manifests import (
    PackageRequirement,
    find_requested_packages,
    normalise_package_name,
)
from suture.project.tuning import MAX_ALLOWED_LIST_BYTES, MIN_LONG_PACKAGE_NAME_CHARS

WHY = {
    "dependency.unlisted": "a package that is not on the list of allowed packages",
    "dependency.near-name": "a package whose name is similar to that of an allowed package",
    "dependency.outside-index": "a package that does not come from the package index",
    "dependency.unread": "a list of packages that cannot be read",
    "dependency.install-script": "a script that runs while packages are installed",
}
RULES = tuple(SafetyRule(name=name, why=why, level="ask") for name, why in WHY.items())
Approval = Literal["ask", "allowlist", "never"]
LEVELS: Mapping[Approval, SafetyLevel] = {"ask": "ask", "allowlist": "block", "never": "block"}
Allowed = Mapping[str, Mapping[str, str]]
"""Ecosystem -> normalised name -> versions as in PEP 440; empty for any version."""


@dataclass(frozen=True, kw_only=True)
class DependencyUse:
    """A package that is not simply allowed, with the reason."""

    use: UnsafeUse
    why: str


def load_allowed(path: Path | None) -> Allowed:
    """Return the allowed packages: the built-in list, or the user's list in its place.

    Raises:
        UsageError: The user's list cannot be read, or is invalid.
    """
    return _built_in_list() if path is None else _read(path)


@cache
def _built_in_list() -> Allowed:
    text = resources.files("suture.project.safety").joinpath("allowed_deps.toml").read_text("utf-8")
    return _parsed(text, "allowed_deps.toml")


def _read(path: Path) -> Allowed:
    try:
        content = read_regular_file(path.expanduser(), MAX_ALLOWED_LIST_BYTES, follow=True)
    except OSError as fault:
        raise UsageError(f"safety.allowed_deps: {str(path)!r} cannot be read: {fault.strerror}") from fault
    if content is None or len(content) > MAX_ALLOWED_LIST_BYTES:
        raise UsageError(
            f"safety.allowed_deps: {str(path)!r} is no file of at most {MAX_ALLOWED_LIST_BYTES >> 20} MiB"
        )
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
    """Yield what a manifest requires and is not simply allowed.

    Args:
        path: Path of the file.
        text: Text of the file, not trusted.
        allowed: Allowed packages from `load_allowed`.
        approval: With `never`, no package is allowed.
    """
    for one in find_requested_packages(path, text):
        rule, why = _assess(one, allowed, approval)
        if rule:
            use = UnsafeUse(rule=rule, line=one.line, code=quote_code(f"{one.ecosystem}: {one.name}"))
            yield DependencyUse(use=use, why=why)


def _assess(one: PackageRequirement, allowed: Allowed, approval: Approval) -> tuple[str, str]:
    if one.unreadable_reason:
        return "dependency.unread", f"{WHY['dependency.unread']}: {one.unreadable_reason}"
    if one.is_install_script:
        return "dependency.install-script", WHY["dependency.install-script"]
    if one.is_outside_index:
        return "dependency.outside-index", WHY["dependency.outside-index"]
    known = allowed.get(one.ecosystem, {})
    name = _key(one.ecosystem, one.name)
    if name in known:
        if approval == "never":
            return "dependency.unlisted", "no package may be required (safety.approve_deps = never)"
        if is_version_allowed(one.version, known[name]):
            return "", ""
        return "dependency.unlisted", f"version {quote_code(one.version)}, where {known[name]} is allowed"
    near = find_similar_name(name, known)
    if near:
        return "dependency.near-name", f"not an allowed package, but its name is similar to {near!r}"
    return "dependency.unlisted", WHY["dependency.unlisted"]


def find_version_bounds(path: str, text: str, allowed: Allowed) -> Mapping[str, str]:
    """Return the versions that the packages in a manifest may be resolved to.

    If a manifest requires a version that the list excludes, a person had to allow it, and the package has no
    bound.

    Args:
        path: Path of the manifest.
        text: Text of the manifest, not trusted.
        allowed: Allowed packages from `load_allowed`.

    Returns:
        Plain name -> versions, never empty. Python installs only one version of each package, so indirect
        requirements are bounded, too; in other languages, only the packages that the manifest names.
    """
    requirements = {_key(one.ecosystem, one.name): one for one in find_requested_packages(path, text)}
    ecosystems = {one.ecosystem for one in requirements.values()}
    bounds: dict[str, str] = {}
    for ecosystem in ecosystems:
        for name, versions in allowed.get(ecosystem, {}).items():
            own = requirements.get(name)
            named = own is not None and is_version_allowed(own.version, versions)
            if versions and (named or (own is None and ecosystem == "python")):
                bounds[name] = versions
    return bounds


def is_version_allowed(version: str, versions: str) -> bool:
    """Return whether a version is one of those that a list allows. An empty text means any version."""
    from packaging.specifiers import SpecifierSet
    from packaging.version import InvalidVersion

    if not version or not versions:
        return True
    try:
        return SpecifierSet(versions).contains(version, prereleases=True)
    except InvalidVersion:
        return False


def find_similar_name(name: str, known: Mapping[str, str]) -> str:
    """Return the known name that a name may imitate, or that its author may have meant; empty if none is
    similar.
    """
    squeezed = re.sub(r"[^a-z0-9]", "", name)
    for other in known:
        most = 1 if len(other) < MIN_LONG_PACKAGE_NAME_CHARS else 2
        alike = squeezed == re.sub(r"[^a-z0-9]", "", other)
        if alike or (
            len(other) > 3 and abs(len(name) - len(other)) <= most and _distance(name, other) <= most
        ):
            return other
    return ""


def _distance(first: str, second: str) -> int:
    """Return the number of letters that are missing, added, changed or swapped (Damerau-Levenshtein)."""
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
