"""Heal one bug as a user would, in a separate process with a limit, and inspect its files afterwards."""

from __future__ import annotations

import ast
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from field_set.bugs import Bug, broken_files
from field_set.cache import Cache
from field_set.cases import case_folder, failing_tests, fill_folder, run_suite, suite_environ
from field_set.packages import Package
from field_set.rows import Row
from field_set.running import SUITE_S, create_row, diff_changed_files, first_events, run_heal

__all__ = ["heal_bug"]


def heal_bug(bug: Bug, package: Package, cache: Cache, seconds: float, *, keep: bool = False) -> Row:
    """Heal one bug and compare the result with the published package.

    Args:
        bug: The bug.
        package: Its package.
        cache: The cache with its code.
        seconds: The time limit of the run.
        keep: Whether to keep a copy of the case; its path is printed on stderr.
    """
    files = broken_files(bug, package, cache)
    with case_folder(package, cache, files) as root:
        if keep:
            kept = cache.folder / "kept" / bug.id
            shutil.rmtree(kept, ignore_errors=True)
            kept.mkdir(parents=True)
            fill_folder(kept / package.name, package, cache, files)
            print(f"kept at {kept / package.name}", file=sys.stderr)
        state = root.parent / "state"
        ended = run_heal(root, state, package.test, suite_environ(root), seconds)
        told = first_events(state)
        published = cache.tree(package)
        changed = diff_changed_files(published, root, {*files, *_touched(published, root)}, _meaning)
        claimed = ended.claims(root, files)
        suite = claimed and run_suite(package, root, SUITE_S).passes
    baseline = told.get("candidate.checked", {}).get("failed")
    failing = _failing(bug, package, cache, files, baseline)
    return create_row(
        *(bug, package.half, seconds, ended, told),
        failing=failing,
        claimed=claimed,
        suite=suite,
        changed=changed,
    )


def _failing(bug: Bug, package: Package, cache: Cache, files: Mapping[str, str], baseline: int | None) -> int:
    """Return the number of tests that fail outside any sandbox, where it may differ from the run's own."""
    if bug.interrupted or baseline in (None, bug.failing):
        return bug.failing
    with case_folder(package, cache, files) as root:
        return failing_tests(package, root, SUITE_S)


def _touched(published: Path, root: Path) -> list[str]:
    paths = [path.relative_to(published) for path in published.rglob("*.py")]
    return [
        path.as_posix()
        for path in paths
        if (root / path).is_file() and (root / path).read_bytes() != (published / path).read_bytes()
    ]


def _meaning(text: str, _: str) -> str:
    """Return the syntax tree, which contains no comments and no layout."""
    try:
        return ast.dump(ast.parse(text))
    except (SyntaxError, ValueError):
        return text
