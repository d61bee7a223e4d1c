"""Checks out of Python source: plain asserts, each with what it needs."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from suture.core.records import Check, Provenance, content_hash
from suture.errors import UsageError
from suture.project.python_source.parsing import PARSE_FAULTS

LONGEST_ID = 100


def asserts_in(text: str, provenance: Provenance = "user", trust: float = 1.0) -> tuple[Check, ...]:
    """The asserts of a text, one check for each assert statement at its top level.

    What else stands at the top level before an assert (imports, names, functions, loops) becomes part of its
    program. What follows the last assert and may test something becomes one more check, of the whole text.

    Args:
        text: Python source.
        provenance: Who wrote the asserts.
        trust: How far the checks are believed, in [0, 1].

    Raises:
        UsageError: It is not Python.
    """
    try:
        tree = ast.parse(text)
    except PARSE_FAULTS as fault:
        said = f" at line {fault.lineno}: {fault.msg}" if isinstance(fault, SyntaxError) else f": {fault}"
        raise UsageError(f"the tests are not Python{said}", remedy="mend the tests") from fault
    setup: list[str] = []
    checks: list[Check] = []
    rest: list[ast.stmt] = []
    for node in tree.body:
        if isinstance(node, ast.Assert):
            setup += [_source_of(text, other) for other in rest]
            checks.append(check_of(_source_of(text, node), provenance, trust=trust, setup=setup))
            rest = []
            if _shares_state(node, tree):
                # What it did to `cart` is where the next assert begins; whether it held is its own affair.
                setup.append(ast.unparse(node.test))
        else:
            rest.append(node)
    if any(_may_fail(node) for node in rest):
        # Without this, what no assert follows would never run: a loop of asserts, a call of a test function.
        whole = "\n".join(_source_of(text, node) for node in tree.body)
        name = "; ".join(_source_of(text, node) for node in rest if _may_fail(node))
        checks.append(check_of(whole, provenance, trust=trust, name=name))
    return distinct(checks)


def _source_of(text: str, node: ast.stmt) -> str:
    if getattr(node, "decorator_list", None):
        return ast.unparse(node)  # a segment begins at the `def`
    return ast.get_source_segment(text, node) or ast.unparse(node)


def _shares_state(node: ast.Assert, tree: ast.Module) -> bool:
    """Whether an assert may change what a later one sees: a variable that holds more than a constant."""
    changeable: set[str] = set()
    for other in tree.body:
        if isinstance(other, (ast.Assign, ast.AnnAssign)) and not isinstance(other.value, ast.Constant):
            targets = other.targets if isinstance(other, ast.Assign) else [other.target]
            changeable |= {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}
    parts = list(ast.walk(node.test))
    used = {part.id for part in parts if isinstance(part, ast.Name)}
    return bool(used & changeable) or any(isinstance(part, ast.NamedExpr) for part in parts)


def _may_fail(node: ast.stmt) -> bool:
    """Whether a statement may test something: a call or a block does, a definition or a name does not."""
    if isinstance(node, ast.Expr):
        return not isinstance(node.value, (ast.Constant, ast.Name))
    passive = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Pass)
    defining = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return not isinstance(node, (*passive, *defining))


def check_of(
    source: str, provenance: Provenance, *, trust: float = 1.0, setup: Iterable[str] = (), name: str = ""
) -> Check:
    """A check of one assert; its id is the assert as one line, so it is stable and can be read."""
    program = "\n".join((*setup, source)) + "\n"
    shown = " ".join((name or source).split())
    if len(shown) > LONGEST_ID:
        shown = f"{shown[:LONGEST_ID]}... #{content_hash(program)[:8]}"
    return Check(id=shown, provenance=provenance, source=program, trust=trust)


def distinct(checks: Iterable[Check]) -> tuple[Check, ...]:
    """The checks without repetitions; equal ids of different programs are told apart by a hash."""
    by_id: dict[str, Check] = {}
    for check in checks:
        known = by_id.get(check.id)
        if known is not None and known.source != check.source:
            other = f"{check.id} #{content_hash(check.source)[:8]}"
            by_id.setdefault(
                other,
                Check(id=other, provenance=check.provenance, source=check.source, trust=check.trust),
            )
        else:
            by_id.setdefault(check.id, check)
    return tuple(by_id.values())
