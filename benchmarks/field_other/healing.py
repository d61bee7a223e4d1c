"""One bug of another language healed as a user would, and its files looked at afterwards."""

from __future__ import annotations

import difflib
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from field_set.bugs import Bug, read_text
from field_set.healing import MOST_SHOWN, SUITE_S, first_events, run_heal
from field_set.rows import Row

from field_other.cases import case_folder, run_suite, suite_environ
from field_other.fetching import Store
from field_other.mutants import broken_files
from field_other.packages import OtherPackage
from suture.repair.other_languages.grammars import parsed_tree

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["heal_bug"]


def heal_bug(bug: Bug, package: OtherPackage, store: Store, seconds: float, *, keep: bool = False) -> Row:
    """Heal one bug and compare what came of it with the package as it was published.

    Args:
        bug: What is wrong.
        package: With what.
        store: Where its code is.
        seconds: The most for the run.
        keep: Whether the case and the run stay in a folder; its place is told on stderr.
    """
    files = broken_files(bug, package, store)
    with case_folder(package, store, files) as root:
        state = root.parent / "state"
        ended = run_heal(root, state, package.test, suite_environ(root), seconds)
        told = first_events(state)
        changed = _changed(package, store.tree(package), root, files)
        moved = any(read_text(root / path) != text for path, text in files.items())
        claimed = ended.answer.get("outcome") == "healed" and (moved or bool(ended.answer.get("applied")))
        suite = claimed and run_suite(package, root, SUITE_S).failing == 0
        if keep:
            kept = store.cache.folder / "kept" / bug.id
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(root.parent, kept, symlinks=True)
            print(f"kept at {kept}", file=sys.stderr)
    search = told.get("search.finished", {})
    checked = told.get("candidate.checked", {})
    return Row(
        bug=bug.id,
        package=bug.package,
        half=package.half,
        kind=bug.kind,
        operator=", ".join(mutation.operator for mutation in bug.mutations),
        cap_seconds=seconds,
        exit_code=ended.code,
        outcome=str(ended.answer.get("outcome") or ended.complaint),
        seconds=round(ended.seconds, 1),
        failing=bug.failing,
        interrupted=False,
        baseline=checked.get("failed"),
        baseline_passed=checked.get("passed", 0),
        cause=str(told.get("triage.finished", {}).get("cause") or ""),
        search_ended=str(search.get("ended", "")),
        tried=search.get("tried", 0),
        search_seconds=search.get("seconds", 0.0),
        claimed=claimed,
        suite=suite,
        same=not changed,
        confidence=ended.answer.get("confidence"),
        changed=changed[:MOST_SHOWN] if claimed else "",
    )


def _changed(package: OtherPackage, published: Path, root: Path, files: Mapping[str, str]) -> str:
    """Lines that are not as published; empty where the code means the same by its syntax tree."""
    lines: list[str] = []
    for path in sorted({*files, *package.code}):
        before, after = read_text(published / path), read_text(root / path)
        if _meaning(before, path, package) != _meaning(after, path, package):
            lines += difflib.unified_diff(before.splitlines(), after.splitlines(), path, path, "", "", 0, "")
    return "\n".join(lines)


def _meaning(text: str, path: str, package: OtherPackage) -> Any:
    """The tree of a file without comments, needless brackets, and what may end a statement or not."""
    return _shape(parsed_tree(text, path, package.language))


def _shape(node: Node) -> Any:
    if not node.children:
        return node.text
    inner = [child for child in node.children if child.type not in ("comment", ";", "\n")]
    if node.type == "parenthesized_expression" and len(inner) == 3:
        return _shape(inner[1])
    return (node.type, *map(_shape, inner))
