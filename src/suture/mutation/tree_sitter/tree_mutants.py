"""Generates all small changes of a file in a language that tree-sitter parses, in the order of its lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from itertools import groupby, islice
from typing import TYPE_CHECKING

from suture.core.records import Language
from suture.mutation.changes import REPEATABLE, Change, build_mutant, repeat_in_function
from suture.mutation.edits import Edit, Mutant
from suture.mutation.operator_names import OperatorName
from suture.mutation.tree_sitter.operators import TREE_OPERATORS
from suture.mutation.tree_sitter.syntax_tree import SyntaxTree, get_field, is_same_node, walk
from suture.mutation.tuning import CROWDING_EXPONENT, MAX_CHANGES_PER_NODE, MAX_NODES_PER_LINE

if TYPE_CHECKING:
    from tree_sitter import Node

RepeatGroups = dict[tuple[int, str, str, bytes, str], list[tuple[Edit, Mutant]]]
"""Mutants that make the same change at several places of a function.

The key is `(function, operator, assigned variable, text before, text after)`. The function is the id of its
node; the variable is empty where the group holds all places, whatever they assign to. The value has
`(edit, mutant)` for each place.
"""
ASSIGNMENTS = ("variable_declarator", "assignment_expression")
"""Nodes that assign a value to a variable."""


def generate_tree_mutants(
    text: str,
    path: str,
    language: Language,
    lines: Collection[int] | None = None,
    operators: Collection[OperatorName] | None = None,
) -> Iterator[Mutant]:
    """Yield every single change of a file, each set of edits once. The result is deterministic.

    Args:
        text: The file.
        path: Its path, whose extension may select a dialect.
        language: The language of the file.
        lines: Only nodes that begin on one of these lines, counted from 1, are changed; `None` for all nodes.
            If it is a mapping to scores, lines with the highest scores come first.
        operators: The operators to use; `None` for all.
    """
    tree = SyntaxTree(text, path, language)
    seen: set[tuple[Edit, ...]] = set()
    repeatable: RepeatGroups = {}
    names = [name for name in TREE_OPERATORS if operators is None or name in operators]
    nodes = [node for node in walk(tree.root) if node.is_named and (lines is None or _line(node) in lines)]
    if isinstance(lines, Mapping):
        nodes.sort(key=lambda node: -lines[_line(node)])
    nodes_per_line = Counter(map(_line, nodes))
    nodes = [node for node in nodes if nodes_per_line[_line(node)] <= MAX_NODES_PER_LINE]
    for _, nodes_of_line in groupby(nodes, _line):
        best: dict[tuple[Edit, ...], Mutant] = {}
        for node in nodes_of_line:
            for name in names:
                for mutant in _mutants_of(node, name, tree, repeatable):
                    # Several operators may make the same text: it is as likely as the likeliest of them.
                    if mutant.edits not in best or best[mutant.edits].prior < mutant.prior:
                        best[mutant.edits] = mutant
        yield from (mutant for edits, mutant in best.items() if edits not in seen)
        seen |= best.keys()
    for group in repeatable.values():
        if len(group) > 1:
            yield repeat_in_function(group)


def _line(node: Node) -> int:
    return node.start_point.row + 1


def _mutants_of(
    node: Node, name: OperatorName, tree: SyntaxTree, repeatable: RepeatGroups
) -> Iterator[Mutant]:
    """Yield an operator's mutants of a node, and add them to `repeatable`.

    Their priors decrease with their rank: of an operator that offers many changes, each is less likely.
    """
    changes: dict[tuple[Edit, ...], Change] = {}
    for change in islice(TREE_OPERATORS[name](node, tree), MAX_CHANGES_PER_NODE):
        edits = change.trimmed_edits(tree.raw)
        if all(edit.start < edit.end or edit.text for edit in edits):
            changes.setdefault(edits, change)
    ranked = sorted(changes.items(), key=lambda item: -item[1].weight)
    function = tree.enclosing_function(node)
    for rank, (edits, change) in enumerate(ranked, 1):
        line, factor = tree.raw[: edits[0].start].count(b"\n") + 1, rank**-CROWDING_EXPONENT
        in_function_body = function is not None
        mutant = build_mutant(change, edits, name, line, factor, in_function_body=in_function_body)
        yield mutant
        if len(edits) == 1 and name in REPEATABLE and function is not None:
            untrimmed = change.edits[0]
            old_text = tree.raw[untrimmed.start : untrimmed.end]
            for variable in dict.fromkeys(("", _assigned_variable(node, tree))):
                group = repeatable.setdefault((function.id, name, variable, old_text, untrimmed.text), [])
                if all(edit != edits[0] for edit, _ in group):
                    group.append((edits[0], mutant))


def _assigned_variable(node: Node, tree: SyntaxTree) -> str:
    """Return the variable to which a value is assigned; empty if there is none.

    Where the same variable is assigned again, the same mistake may have been made again.
    """
    above = node.parent
    target = get_field(above, "name", "left") if above is not None and above.type in ASSIGNMENTS else None
    return tree.text(target) if target is not None and not is_same_node(target, node) else ""
