"""All small changes of a file in another language than Python, in the order of its lines."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import groupby, islice
from typing import TYPE_CHECKING

from suture.core.records import Language
from suture.mutation.edits import Edit, Mutant, trim_edit
from suture.mutation.changes import Change
from suture.mutation.python.python_mutants import CROWDED, MOST_OF_ONE, REPEATED, SCALE, repeat_in_function
from suture.mutation.tree_sitter.operators import FAMILIES, PRIORS
from suture.mutation.tree_sitter.syntax_tree import SyntaxTree, get_field, is_same_node, walk

if TYPE_CHECKING:
    from tree_sitter import Node

Alike = dict[tuple[int, str, str, bytes, str], list[tuple[Edit, Mutant]]]
SETTING = ("variable_declarator", "assignment_expression")


def generate_tree_mutants(
    text: str,
    path: str,
    language: Language,
    lines: Collection[int] | None = None,
    operators: Collection[str] | None = None,
) -> Iterator[Mutant]:
    """Every single change of a file, each text of an edit once; no chance is involved.

    Args:
        text: The file.
        path: For its ending.
        language: What it is written in.
        lines: Only changes of what begins on one of these lines, counted from 1; `None` for all. Where each
            has a score, those of the highest come first.
        operators: Names of the operators to use; `None` for all.
    """
    view = SyntaxTree(text, path, language)
    seen: set[tuple[Edit, ...]] = set()
    alike: Alike = {}
    chosen = {name: made for name, made in FAMILIES.items() if operators is None or name in operators}
    nodes = [node for node in walk(view.root) if node.is_named and (lines is None or _line(node) in lines)]
    if isinstance(lines, Mapping):
        nodes.sort(key=lambda node: -lines[_line(node)])
    for _, of_line in groupby(nodes, _line):
        best: dict[tuple[Edit, ...], Mutant] = {}
        for node in of_line:
            for name, changes in chosen.items():
                for mutant in _of(node, name, islice(changes(node, view), MOST_OF_ONE), view, alike):
                    # Several operators may make one text: it is as likely as the likeliest of them.
                    if mutant.edits not in best or best[mutant.edits].prior < mutant.prior:
                        best[mutant.edits] = mutant
        yield from (mutant for edits, mutant in best.items() if edits not in seen)
        seen |= best.keys()
    for group in alike.values():
        if len(group) > 1:
            yield repeat_in_function(group)


def _line(node: Node) -> int:
    return node.start_point.row + 1


def _of(
    node: Node,
    name: str,
    changes: Iterator[Change],
    view: SyntaxTree,
    alike: Alike,
) -> Iterator[Mutant]:
    """An operator's changes of a node: the second likeliest waits behind other places."""
    found: dict[tuple[Edit, ...], Change] = {}
    for change in changes:
        edits = tuple(trim_edit(e, view.raw) for e in sorted(change.edits, key=lambda e: (e.start, e.end)))
        if all(e.start < e.end or e.text for e in edits):
            found.setdefault(edits, change)
    made = sorted(((change, edits) for edits, change in found.items()), key=lambda pair: -pair[0].weight)
    function = view.enclosing_function(node)
    for place, (change, edits) in enumerate(made, 1):
        line = view.raw[: edits[0].start].count(b"\n") + 1
        mutant = Mutant(
            edits=edits,
            operator=name,
            line=line,
            prior=min(1.0, SCALE * PRIORS[name] * change.weight * place**-CROWDED),
            label=f"line {line}: {change.note}",
            in_function_body=function is not None,
        )
        yield mutant
        whole = change.edits[0]
        if len(edits) == 1 and name in REPEATED and function is not None:
            for target in dict.fromkeys(("", _set_by(node, view))):
                key = (function.id, name, target, view.raw[whole.start : whole.end], whole.text)
                group = alike.setdefault(key, [])
                if all(edit != edits[0] for edit, _ in group):
                    group.append((edits[0], mutant))


def _set_by(node: Node, view: SyntaxTree) -> str:
    """The variable that a value is given to: where it is begun anew, it may begin as wrongly."""
    above = node.parent
    target = get_field(above, "name", "left") if above is not None and above.type in SETTING else None
    return view.text(target) if target is not None and not is_same_node(target, node) else ""
