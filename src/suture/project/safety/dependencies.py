"""Check the packages that new code requires against the list of allowed packages.

A model may invent the name of a package, and an attacker may have registered that name.
"""

from __future__ import annotations

import hashlib
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
from suture.project.safety.manifests import find_requested_packages
from suture.project.safety.package_requirements import PackageRequirement, normalise_package_name
from suture.project.tuning import (
    MAX_ALLOWED_LIST_BYTES,
    MAX_QUOTED_CODE_CHARS,
    MIN_LONG_PACKAGE_NAME_CHARS,
)

RULE_REASONS = {
    "dependency.unlisted": "a package that is not on the list of allowed packages",
    "dependency.near-name": "a package whose name is similar to that of an allowed package",
    "dependency.outside-index": "a package that does not come from the package index",
    "dependency.unread": "a list of packages that cannot be read",
    "dependency.install-script": "a script that runs while packages are installed",
}
RULES = tuple(SafetyRule(name=name, why=why, level="ask") for name, why in RULE_REASONS.items())
Approval = Literal["ask", "allowlist", "never"]
"""What happens with packages that are not on the list: a person is asked, or they are refused. With `never`, even
packages on the list are refused."""
LEVELS: Mapping[Approval, SafetyLevel] = {"ask": "ask", "allowlist": "block", "never": "block"}
Allowed = Mapping[str, Mapping[str, str]]
"""Ecosystem -> normalised name -> versions as in PEP 440; empty for any version."""


@dataclass(frozen=True, kw_only=True)
class DependencyUse:
    """A required package that the list does not allow, and why."""

    use: UnsafeUse
    why: str


def load_allowed(path: Path | None) -> Allowed:
    """Return the allowed packages: the built-in list, or the user's list in its place.

    Raises:
        UsageError: The user's list cannot be read, or is invalid.
    """
    if path is None:
        return _built_in_list()
    try:
        content = read_regular_file(path.expanduser(), MAX_ALLOWED_LIST_BYTES, follow=True)
    except OSError as fault:
        raise UsageError(f"safety.allowed_deps: {str(path)!r} cannot be read: {fault.strerror}") from fault
    if content is None or len(content) > MAX_ALLOWED_LIST_BYTES:
        max_mib = MAX_ALLOWED_LIST_BYTES >> 20
        raise UsageError(f"safety.allowed_deps: {str(path)!r} is no file of at most {max_mib} MiB")
    return _parse_allowed_list(content.decode("utf-8", "replace"), str(path))


@cache
def _built_in_list() -> Allowed:
    text = resources.files("suture.project.safety").joinpath("allowed_deps.toml").read_text("utf-8")
    return _parse_allowed_list(text, "allowed_deps.toml")


def _parse_allowed_list(text: str, name: str) -> Allowed:
    """Return the tables of a list of allowed packages, with normalised names."""
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
                SpecifierSet(versions if isinstance(versions, str) else "?")  # "?" is refused
            except InvalidSpecifier as fault:
                message = f"{name!r}: {package!r} has no versions {versions!r}"
                raise UsageError(message, remedy=remedy) from fault
        allowed[ecosystem] = {_key(ecosystem, package): str(versions) for package, versions in table.items()}
    return allowed


def _key(ecosystem: str, name: str) -> str:
    """Return a package's name as its index compares it: only Python's ignores the kind of separator."""
    return normalise_package_name(name) if ecosystem == "python" else name.lower()


def dependency_uses(path: str, text: str, allowed: Allowed, approval: Approval) -> Iterator[DependencyUse]:
    """Yield the packages that a manifest requires and that are not allowed, and what else is unsafe in it.

    Args:
        text: Content of the file, not trusted.
        allowed: Allowed packages from `load_allowed`.
        approval: With `never`, no package is allowed.
    """
    for package in find_requested_packages(path, text):
        rule, why = _assess(package, allowed, approval)
        if rule:
            use = UnsafeUse(rule=rule, line=package.line, code=_describe(package))
            yield DependencyUse(use=use, why=why)


def _describe(package: PackageRequirement) -> str:
    """Return a requirement as a single line of bounded length; different requirements differ in it."""
    text = f"{package.ecosystem}: {package.name}" + (f" @ {package.source}" if package.source else "")
    if len(text) <= MAX_QUOTED_CODE_CHARS:
        return quote_code(text)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    end = f"... (SHA-256 {digest})"
    return quote_code(text[: MAX_QUOTED_CODE_CHARS - len(end)]) + end


def _assess(package: PackageRequirement, allowed: Allowed, approval: Approval) -> tuple[str, str]:
    """Return (rule that a requirement violates, reason); both are empty if it is allowed."""
    if package.unreadable_reason:
        return "dependency.unread", f"{RULE_REASONS['dependency.unread']}: {package.unreadable_reason}"
    if package.is_install_script:
        return "dependency.install-script", RULE_REASONS["dependency.install-script"]
    if package.is_outside_index:
        return "dependency.outside-index", RULE_REASONS["dependency.outside-index"]
    allowed_versions = allowed.get(package.ecosystem, {})
    name = _key(package.ecosystem, package.name)
    if name in allowed_versions:
        if approval == "never":
            return "dependency.unlisted", "no package may be required (safety.approve_deps = never)"
        if is_version_allowed(package.version, allowed_versions[name]):
            return "", ""
        why = f"version {quote_code(package.version)}, where {allowed_versions[name]} is allowed"
        return "dependency.unlisted", why
    similar = find_similar_name(name, allowed_versions)
    if similar:
        return "dependency.near-name", f"not an allowed package, but its name is similar to {similar!r}"
    return "dependency.unlisted", RULE_REASONS["dependency.unlisted"]


def find_version_bounds(path: str, text: str, allowed: Allowed) -> Mapping[str, str]:
    """Return the versions that the packages in a manifest may be resolved to.

    If a manifest requires a version that the list excludes, a person has allowed it. Such a package has no
    bound.

    Args:
        path: Path of the manifest.
        text: Content of the manifest, not trusted.
        allowed: Allowed packages from `load_allowed`.

    Returns:
        Normalised name -> versions, never empty. Python installs only one version of each package, so packages that
        other packages require are bounded, too. In other languages, only those that the manifest names are.
    """
    packages = find_requested_packages(path, text)
    requirements = {_key(package.ecosystem, package.name): package for package in packages}
    ecosystems = {package.ecosystem for package in packages}
    bounds: dict[str, str] = {}
    for ecosystem in ecosystems:
        for name, versions in allowed.get(ecosystem, {}).items():
            required = requirements.get(name)
            is_within_list = required is not None and is_version_allowed(required.version, versions)
            may_be_indirect = required is None and ecosystem == "python"
            if versions and (is_within_list or may_be_indirect):
                bounds[name] = versions
    return bounds


def is_version_allowed(version: str, versions: str) -> bool:
    """Return whether a version is one of those that a list allows. An empty string means any version."""
    from packaging.specifiers import SpecifierSet
    from packaging.version import InvalidVersion

    if not version or not versions:
        return True
    try:
        return SpecifierSet(versions).contains(version, prereleases=True)
    except InvalidVersion:
        return False


def find_similar_name(name: str, known_names: Mapping[str, str]) -> str:
    """Return the known name that `name` may imitate or misspell; empty if there is none."""
    letters = re.sub(r"[^a-z0-9]", "", name)
    for known_name in known_names:
        max_distance = 1 if len(known_name) < MIN_LONG_PACKAGE_NAME_CHARS else 2
        if letters == re.sub(r"[^a-z0-9]", "", known_name):
            return known_name
        # Among names of up to three letters, nearly all pairs are similar.
        may_be_similar = len(known_name) > 3 and abs(len(name) - len(known_name)) <= max_distance
        if may_be_similar and _distance(name, known_name) <= max_distance:
            return known_name
    return ""


def _distance(first: str, second: str) -> int:
    """Return the Damerau-Levenshtein distance: the number of letters missing, added, changed or swapped."""
    last_row: list[int] = []
    row = list(range(len(second) + 1))
    for i, first_letter in enumerate(first, 1):
        row_before_last, last_row, row = last_row, row, [i]
        for j, second_letter in enumerate(second, 1):
            cost = min(last_row[j] + 1, row[-1] + 1, last_row[j - 1] + (first_letter != second_letter))
            if i > 1 and j > 1 and first_letter == second[j - 2] and first[i - 2] == second_letter:
                cost = min(cost, row_before_last[j - 2] + 1)
            row.append(cost)
    return row[-1]
