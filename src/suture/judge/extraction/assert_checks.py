"""Extracting plain asserts from Python source as checks, each with the statements that it needs."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace

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
    pending: list[ast.stmt] = []  # statements since the last assert
    for node in tree.body:
        if isinstance(node, ast.Assert):
            setup += [_get_source(text, pending_node) for pending_node in pending]
            checks.append(make_check(_get_source(text, node), provenance, trust=trust, setup=setup))
            pending = []
            if _shares_state(node, tree):
                # The next assert continues with the state that this one leaves, whether or not it holds.
                setup.append(ast.unparse(node.test))
        else:
            pending.append(node)
    if any(_may_fail(node) for node in pending):
        # Without this check, a final loop of asserts or a final call of a test function would never run.
        whole_text = "\n".join(_get_source(text, node) for node in tree.body)
        name = "; ".join(_get_source(text, node) for node in pending if _may_fail(node))
        checks.append(make_check(whole_text, provenance, trust=trust, name=name))
    return deduplicate_checks(checks)


def _get_source(text: str, node: ast.stmt) -> str:
    if getattr(node, "decorator_list", None):
        return ast.unparse(node)  # a source segment starts at the `def` and drops the decorators
    return ast.get_source_segment(text, node) or ast.unparse(node)


def _shares_state(node: ast.Assert, tree: ast.Module) -> bool:
    """Whether an assert may change what a later one sees: it uses a variable that holds no constant."""
    mutable_names: set[str] = set()
    for statement in tree.body:
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
            continue
        if not isinstance(statement.value, ast.Constant):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            parts = (part for target in targets for part in ast.walk(target))
            mutable_names |= {part.id for part in parts if isinstance(part, ast.Name)}
    nodes = list(ast.walk(node.test))
    used_names = {part.id for part in nodes if isinstance(part, ast.Name)}
    return bool(used_names & mutable_names) or any(isinstance(part, ast.NamedExpr) for part in nodes)


def _may_fail(node: ast.stmt) -> bool:
    """Whether a statement may fail a test: a call or a block may, a definition or a name may not."""
    if isinstance(node, ast.Expr):
        return not isinstance(node.value, (ast.Constant, ast.Name))
    imports_and_assignments = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Pass)
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return not isinstance(node, (*imports_and_assignments, *definitions))


def make_check(
    source: str, provenance: Provenance, *, trust: float = 1.0, setup: Iterable[str] = (), name: str = ""
) -> Check:
    """Return a check whose id is its source as one line, so that the id is stable and readable.

    Args:
        setup: Source of the statements that must run before it.
        name: What the id is made from; `source` by default.
    """
    program = "\n".join((*setup, source)) + "\n"
    check_id = " ".join((name or source).split())
    if len(check_id) > MAX_CHECK_ID_CHARS:
        check_id = f"{check_id[:MAX_CHECK_ID_CHARS]}... #{content_hash(program)[:8]}"
    return Check(id=check_id, provenance=provenance, source=program, trust=trust)


def deduplicate_checks(checks: Iterable[Check]) -> tuple[Check, ...]:
    """Return the checks without repetitions; equal ids of different programs get a hash appended."""
    by_id: dict[str, Check] = {}
    for check in checks:
        earlier = by_id.setdefault(check.id, check)
        if earlier.source != check.source:
            new_id = f"{check.id} #{content_hash(check.source)[:8]}"
            by_id.setdefault(new_id, replace(check, id=new_id))
    return tuple(by_id.values())
