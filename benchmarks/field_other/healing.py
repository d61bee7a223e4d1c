"""Heal one bug of another language as a user would, and inspect its files afterwards."""

from __future__ import annotations

import shutil
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from field_set.bugs import Bug
from field_set.rows import Row
from field_set.running import SUITE_S, create_row, diff_changed_files, first_events, run_heal

from field_other.cases import case_folder, run_suite, suite_environ
from field_other.fetching import Store
from field_other.mutants import broken_files
from field_other.packages import OtherPackage
from suture.mutation.tree_sitter.value_kinds import parse_source_tree

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["heal_bug"]


def heal_bug(bug: Bug, package: OtherPackage, store: Store, seconds: float, *, keep: bool = False) -> Row:
    """Heal one bug and compare the result with the published package.

    Args:
        bug: The bug.
        package: Its package.
        store: The store with its code.
        seconds: The time limit of the run.
        keep: Whether to keep the case and the run; their path is printed on stderr.
    """
    files = broken_files(bug, package, store)
    with case_folder(package, store, files) as root:
        state = root.parent / "state"
        ended = run_heal(root, state, package.test, suite_environ(root), seconds)
        told = first_events(state)
        meaning = partial(_meaning, package)
        changed = diff_changed_files(store.tree(package), root, {*files, *package.code}, meaning)
        claimed = ended.claims(root, files)
        suite = claimed and run_suite(package, root, SUITE_S).failing == 0
        if keep:
            kept = store.cache.folder / "kept" / bug.id
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(root.parent, kept, symlinks=True)
            print(f"kept at {kept}", file=sys.stderr)
    return create_row(
        *(bug, package.half, seconds, ended, told),
        failing=bug.failing,
        claimed=claimed,
        suite=suite,
        changed=changed,
    )


def _meaning(package: OtherPackage, text: str, path: str) -> Any:
    """Return the tree of a file without comments, needless brackets and optional statement ends."""
    return _shape(parse_source_tree(text, path, package.language))


def _shape(node: Node) -> Any:
    if not node.children:
        return node.text
    inner = [child for child in node.children if child.type not in ("comment", ";", "\n")]
    if node.type == "parenthesized_expression" and len(inner) == 3:
        return _shape(inner[1])
    return (node.type, *map(_shape, inner))
