"""Extracting plain asserts from Python source as checks, each with the statements that it needs."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from suture.core.records import Check, Provenance, content_hash
from suture.errors import UsageError
from suture.judge.tuning import MAX_CHECK_ID_CHARS
from suture.project.python_source.parsing import PARSE_FAULTS


def extract_asserts(text: str, provenance: Provenance = "user", trust: float = 1.0) -> tuple[Check, ...]:
    """Return one check for each assert statement at the top level of a text.

    Other top-level statements before an assert (imports, names, functions, loops) become part of its program.
    Statements after the last assert that may test something become one more check, of the whole text.

    Args:
        text: Python source.
        provenance: Who wrote the asserts.
        trust: The trust in the checks, in [0, 1].

    Raises:
        UsageError: The text is not valid Python.
    """
    try:
        tree = ast.parse(text)
    except PARSE_FAULTS as fault:
        reason = f" at line {fault.lineno}: {fault.msg}" if isinstance(fault, SyntaxError) else f": {fault}"
        raise UsageError(f"the tests are not Python{reason}", remedy="fix the syntax of the tests") from fault
    setup: list[str] = []
    checks: list[Check] = []
    rest: list[ast.stmt] = []
    for node in tree.body:
        if isinstance(node, ast.Assert):
            setup += [_source_of(text, other) for other in rest]
            checks.append(make_check(_source_of(text, node), provenance, trust=trust, setup=setup))
            rest = []
            if _shares_state(node, tree):
                # The next assert continues with the state that this one leaves, whether or not it holds.
                setup.append(ast.unparse(node.test))
        else:
            rest.append(node)
    if any(_may_fail(node) for node in rest):
        # Without this check, a final loop of asserts or a final call of a test function would never run.
        whole = "\n".join(_source_of(text, node) for node in tree.body)
        name = "; ".join(_source_of(text, node) for node in rest if _may_fail(node))
        checks.append(make_check(whole, provenance, trust=trust, name=name))
    return deduplicate_checks(checks)


def _source_of(text: str, node: ast.stmt) -> str:
    if getattr(node, "decorator_list", None):
        return ast.unparse(node)  # a source segment starts at the `def` and drops the decorators
    return ast.get_source_segment(text, node) or ast.unparse(node)


def _shares_state(node: ast.Assert, tree: ast.Module) -> bool:
    """Whether an assert may change what a later one sees, through a variable that is no constant."""
    changeable: set[str] = set()
    for other in tree.body:
        if isinstance(other, (ast.Assign, ast.AnnAssign)) and not isinstance(other.value, ast.Constant):
            targets = other.targets if isinstance(other, ast.Assign) else [other.target]
            changeable |= {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}
    parts = list(ast.walk(node.test))
    used = {part.id for part in parts if isinstance(part, ast.Name)}
    return bool(used & changeable) or any(isinstance(part, ast.NamedExpr) for part in parts)


def _may_fail(node: ast.stmt) -> bool:
    """Whether a statement may test something: a call or a block may, a definition or a name does not."""
    if isinstance(node, ast.Expr):
        return not isinstance(node.value, (ast.Constant, ast.Name))
    passive = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Pass)
    defining = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return not isinstance(node, (*passive, *defining))


def make_check(
    source: str, provenance: Provenance, *, trust: float = 1.0, setup: Iterable[str] = (), name: str = ""
) -> Check:
    """Return a check of one assert. Its id is the assert as one line, so it is stable and readable."""
    program = "\n".join((*setup, source)) + "\n"
    shown = " ".join((name or source).split())
    if len(shown) > MAX_CHECK_ID_CHARS:
        shown = f"{shown[:MAX_CHECK_ID_CHARS]}... #{content_hash(program)[:8]}"
    return Check(id=shown, provenance=provenance, source=program, trust=trust)


def deduplicate_checks(checks: Iterable[Check]) -> tuple[Check, ...]:
    """Return the checks without repetitions; equal ids of different programs get a hash appended."""
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
