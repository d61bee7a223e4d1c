"""Bugs that people made: an older release's file among the newer ones, where the changelog tells of a fix."""

from __future__ import annotations

import ast
import hashlib
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from field_set.bugs import Bug, Older, broken_files
from field_set.cache import Cache
from field_set.cases import case_folder, run_suite
from field_set.packages import Package, code_files
from suture.errors import PrerequisiteError, SutureError

__all__ = ["draw_historical"]

SUITE_S = 120
MOST_RELEASES = 12
MOST_FAILING = 30
"""With more than these the older file lacks a feature rather than a fix."""
CHANGELOGS = (
    "CHANGE*",
    "HISTORY*",
    "NEWS*",
    "docs/CHANGE*",
    "docs/change*",
    "docs/history*",
    "docs/versions*",
)
HEADING = re.compile(r"[\W_]*(version|release|v)?[\W_]*", re.IGNORECASE)
NUMBER = re.compile(r"\d+(?:\.\d+)+(?:\.post\d+)?")
FIXED = re.compile(r"\b(fix(e[sd])?|bug|regression|correct(ly|s|ed)?)\b", re.IGNORECASE)
LEAST_WORDS = 4
"""A line with fewer is a heading, such as `Bug fixes:`."""
MOST_TOLD_CHARS = 160


def draw_historical(package: Package, cache: Cache, wanted: int) -> list[Bug]:
    """Up to so many bugs: older files that the suite of this release fails, where a fix is told of."""
    tree = cache.tree(package)
    drawn: list[Bug] = []
    seen: set[str] = set()
    for version, told in _fixes(tree, package):
        older = _older(package, cache, version)
        if older is None:
            continue
        for path, text in _differing(package, cache, older):
            # Two releases with the same file are one bug.
            if text in seen:
                continue
            seen.add(text)
            bug = _killed(package, cache, older, path, told, len(drawn) + 1)
            drawn += [bug] if bug is not None else []
            if len(drawn) >= wanted:
                return drawn
    return drawn


def _fixes(tree: Path, package: Package) -> Iterator[tuple[str, str]]:
    """An older release, and the fix that the changelog tells of for the one behind it; newest first."""
    sections = _sections(tree)
    versions = [version for version, _ in sections]
    for (version, text), older in zip(sections[:MOST_RELEASES], versions[1:], strict=False):
        told = next((line.strip(" -*•\t") for line in text if _tells_of_a_fix(line)), "")
        if told and older != package.version:
            yield older, f"{version}: {told}"[:MOST_TOLD_CHARS]


def _tells_of_a_fix(line: str) -> bool:
    return FIXED.search(line) is not None and len(line.split()) >= LEAST_WORDS


def _sections(tree: Path) -> list[tuple[str, list[str]]]:
    """Version -> the lines below its heading, in the order of the changelog."""
    found = [path for name in CHANGELOGS for path in sorted(tree.glob(name)) if path.is_file()]
    sections: list[tuple[str, list[str]]] = []
    for line in found[0].read_text("utf-8", "replace").splitlines() if found else []:
        number = NUMBER.search(line[:40])
        # A heading begins with its number, perhaps behind marks, a `v` or the word itself.
        if number and re.fullmatch(
            r"[\W_]*(version|release|v)?[\W_]*", line[: number.start()], re.IGNORECASE
        ):
            if all(number[0] != version for version, _ in sections):
                sections.append((number[0], []))
        elif sections:
            sections[-1][1].append(line)
    return sections


def _older(package: Package, cache: Cache, version: str) -> Package | None:
    """That release, with the hash of what the index has; nothing where it has no source distribution."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            archive = cache.download(f"{package.name}=={version}", Path(folder))
        except PrerequisiteError as fault:
            print(f"{package.name} {version}: {fault}", file=sys.stderr)
            return None
        return replace(package, version=version, sha256=hashlib.sha256(archive.read_bytes()).hexdigest())


def _differing(package: Package, cache: Cache, older: Package) -> Iterator[tuple[str, str]]:
    """The files of code that both releases have and that differ, with the older text."""
    try:
        new, old = cache.tree(package), cache.tree(older)
    except SutureError as fault:
        print(f"{older.name} {older.version}: {fault}", file=sys.stderr)
        return
    for path in code_files(package, new):
        if (old / path).is_file():
            text = (old / path).read_text("utf-8")
            if _without_strings(text) != _without_strings((new / path).read_text("utf-8")):
                yield path, text


def _without_strings(text: str) -> str:
    """The code alone: a version's number or a docstring is no bug, and neither is a comment."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(tree)


def _killed(package: Package, cache: Cache, older: Package, path: str, fix: str, number: int) -> Bug | None:
    bug = Bug(
        id=f"{package.name}-historical-{number}",
        package=package.name,
        version=package.version,
        kind="historical",
        failing=0,
        older=Older(version=older.version, sha256=older.sha256),
        files=(path,),
        fixed=fix,
    )
    files = broken_files(bug, package, cache)
    with case_folder(package, cache, files) as root:
        suite = run_suite(package, root, SUITE_S)
    print(
        f"{bug.id} {older.version} {path}: {suite.failing if suite.ran else 'does not run'}", file=sys.stderr
    )
    # A file that cannot be imported lacks a name that the others want: that is no bug, but a mixture.
    if not suite.ran or suite.interrupted or not 0 < suite.failing <= MOST_FAILING:
        return None
    return replace(bug, failing=suite.failing)
