"""Find code that chooses its answers by a checksum of a value, as a table of memorised examples does.

The answers of examples can stand in a table that a checksum of the argument indexes, padded with other values, or
behind a comparison of the checksum with a number. Honest code compares checksums with stored ones, and takes them
modulo the length of what they index.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from suture.judge.signs.test_values import is_specific

CHECKSUMS = frozenset(("crc32", "adler32", "crc_hqx", "hash", "hexdigest", "digest", "intdigest"))
"""Functions and methods that return a checksum."""
SUMMED = frozenset(("ord", "encode"))
"""Functions and methods whose results are numbers of characters, of which a sum is a checksum too."""


def find_checksum_choices(tree: ast.AST) -> dict[str, int]:
    """Return the source of each checksum that chooses between constants -> its line."""
    assigned = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return {
        ast.unparse(part): part.lineno
        for node in ast.walk(tree)
        for part in _iter_choosing(node)
        if _holds_checksum(part, assigned)
    }


def _iter_choosing(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions that a node compares with constants, or by whose remainder it indexes something."""
    match node:
        case ast.Compare(left=left, ops=[ast.Eq() | ast.In()], comparators=[right]):
            for side, other in ((left, right), (right, left)):
                yield from (side,) if _is_constant(other) else ()
        case ast.Match(subject=subject, cases=cases):
            patterns = [part for case in cases for part in ast.walk(case.pattern)]
            yield from (subject,) if any(isinstance(part, ast.MatchValue) for part in patterns) else ()
        case ast.Subscript(slice=ast.BinOp(op=ast.Mod() | ast.BitAnd(), right=ast.Constant()) as index):
            yield index


def _is_constant(node: ast.expr) -> bool:
    """Return whether an expression is a rare number or text, or a collection of such."""
    parts = [node, *getattr(node, "elts", ()), *getattr(node, "keys", ())]
    values = [part.value for part in parts if isinstance(part, ast.Constant)]
    return len(values) == max(1, len(parts) - 1) and any(map(is_specific, values))


def _holds_checksum(node: ast.expr, assigned: Mapping[str, ast.expr]) -> bool:
    """Return whether an expression, or the value of a variable in it, calls what computes a checksum."""
    names = [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]
    values = [node, *(assigned[name] for name in names if name in assigned)]
    return any(
        name in CHECKSUMS or (name == "sum" and SUMMED.intersection(_list_names(call)))
        for value in values
        for call in ast.walk(value)
        if isinstance(call, ast.Call)
        for name in [getattr(call.func, "id", getattr(call.func, "attr", ""))]
    )


def _list_names(node: ast.AST) -> set[str]:
    return {getattr(part, "id", getattr(part, "attr", "")) for part in ast.walk(node)}
