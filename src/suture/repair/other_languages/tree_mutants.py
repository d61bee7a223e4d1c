"""All small changes of a file in another language than Python, in the order of its lines."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from suture.records import Language
from suture.repair.editing.edits import Edit, Mutant, trimmed
from suture.repair.mutants import CROWDED, MOST_OF_ONE, REPEATED, SCALE, everywhere
from suture.repair.operators.change import Change
from suture.repair.other_languages.operators import FAMILIES, PRIORS
from suture.repair.other_languages.tree_view import TreeView, walked

if TYPE_CHECKING:
    from tree_sitter import Node

Alike = dict[tuple[int, str, bytes, str], list[tuple[Edit, Mutant]]]


def tree_mutants(
    text: str, path: str, language: Language, lines: Collection[int] | None = None
) -> Iterator[Mutant]:
    """Every single change of a file, each text of an edit once; no chance is involved.

    Args:
        text: The file.
        path: For its ending.
        language: What it is written in.
        lines: Only changes of what begins on one of these lines, counted from 1; `None` for all. Where each
            has a score, those of the highest come first.
    """
    view = TreeView(text, path, language)
    seen: set[tuple[Edit, ...]] = set()
    alike: Alike = {}
    nodes = [node for node in walked(view.root) if node.is_named and (lines is None or _line(node) in lines)]
    if isinstance(lines, Mapping):
        nodes.sort(key=lambda node: -lines[_line(node)])
    for node in nodes:
        for name, changes in FAMILIES.items():
            yield from _of(node, name, islice(changes(node, view), MOST_OF_ONE), view, seen, alike)
    for group in alike.values():
        if len(group) > 1:
            yield everywhere(group)


def _line(node: Node) -> int:
    return node.start_point.row + 1


def _of(
    node: Node,
    name: str,
    changes: Iterator[Change],
    view: TreeView,
    seen: set[tuple[Edit, ...]],
    alike: Alike,
) -> Iterator[Mutant]:
    """The new ones among an operator's changes of a node: the second likeliest waits behind other places."""
    made = []
    for change in changes:
        edits = tuple(trimmed(e, view.raw) for e in sorted(change.edits, key=lambda e: (e.start, e.end)))
        if edits not in seen and all(e.start < e.end or e.text for e in edits):
            seen.add(edits)
            made.append((change, edits))
    made.sort(key=lambda pair: -pair[0].weight)
    function = view.function_of(node)
    for place, (change, edits) in enumerate(made, 1):
        line = view.raw[: edits[0].start].count(b"\n") + 1
        mutant = Mutant(
            edits=edits,
            operator=name,
            line=line,
            prior=min(1.0, SCALE * PRIORS[name] * change.weight * place**-CROWDED),
            label=f"line {line}: {change.note}",
            in_body=function is not None,
        )
        yield mutant
        whole = change.edits[0]
        if len(edits) == 1 and name in REPEATED and function is not None:
            key = (function.id, name, view.raw[whole.start : whole.end], whole.text)
            alike.setdefault(key, []).append((edits[0], mutant))
