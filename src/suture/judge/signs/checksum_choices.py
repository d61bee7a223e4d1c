"""Find code that recognises values by comparing a checksum of them with constants.

Memorised examples can hide behind such a comparison. Honest code compares checksums with stored ones, and small
remainders with small numbers: shards, buckets and check digits. Tables that a remainder indexes are not searched
for, because they are common for shards, colours and check digits.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from suture.judge.signs.test_values import SMALL_NUMBERS, is_specific
from suture.project.python_source.scopes import FUNCTIONS

CHECKSUMS = frozenset(("crc32", "adler32", "crc_hqx", "hash", "hexdigest", "digest", "intdigest"))
"""Functions and methods that return a checksum."""


def find_checksum_choices(tree: ast.Module) -> dict[str, int]:
    """Return the source of each checksum that is compared with constants -> its line."""
    choices: dict[str, int] = {}
    for scope in (tree, *(node for node in ast.walk(tree) if isinstance(node, FUNCTIONS))):
        nodes = list(_iter_scope(scope))
        assigned = {
            target.id: node.value
            for node in nodes
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for part in (part for node in nodes for part in _iter_compared(node)):
            if _is_checksum(part, assigned):
                choices[ast.unparse(part)] = part.lineno
    return choices


def _iter_scope(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below a module or function, without those of the functions in it."""
    pending = [scope]
    while pending:
        for node in ast.iter_child_nodes(pending.pop()):
            if not isinstance(node, FUNCTIONS):
                yield node
                pending.append(node)


def _iter_compared(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions that a node compares with constants."""
    match node:
        case ast.Compare(left=left, ops=[ast.Eq() | ast.In()], comparators=[right]):
            for side, other in ((left, right), (right, left)):
                if _is_constant(other):
                    yield side
        case ast.Match(subject=subject, cases=cases):
            patterns = [part for case in cases for part in ast.walk(case.pattern)]
            if any(isinstance(part, ast.MatchValue) and _is_constant(part.value) for part in patterns):
                yield subject


def _is_constant(node: ast.expr) -> bool:
    """Return whether an expression is a rare number or string, or a collection of these."""
    parts = [node, *getattr(node, "elts", ()), *getattr(node, "keys", ())]
    values = [part.value for part in parts if isinstance(part, ast.Constant)]
    is_rare = any(is_specific(value) and repr(value) not in SMALL_NUMBERS for value in values)
    return is_rare and len(values) == max(1, len(parts) - 1)


def _is_checksum(node: ast.expr, assigned: Mapping[str, ast.expr]) -> bool:
    """Return whether an expression is a checksum, a part of one, or a variable of the function that holds one."""
    variables = dict(assigned)
    pending = [node]
    while pending:
        match pending.pop():
            case ast.Name(id=name) if name in variables:
                pending.append(variables.pop(name))
            case ast.BinOp(left=left, right=right):
                pending += (left, right)
            case ast.Subscript(value=value):
                pending.append(value)
            case ast.Call(func=ast.Name(id="abs" | "int"), args=[value, *_]):
                pending.append(value)
            case ast.Call(func=ast.Name(id="sum")) as call:
                if any(isinstance(part, ast.Name) and part.id == "ord" for part in ast.walk(call)):
                    return True
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in CHECKSUMS:
                return True
    return False
