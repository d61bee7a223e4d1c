"""What a generated check claims: a call and what it should give, in a form in which two can be compared."""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass
from typing import Any, Literal

from suture.core.records import Check
from suture.project.python_source.parsing import parsed

NOT_LITERAL = (ValueError, TypeError, SyntaxError, MemoryError, RecursionError)
BUILTINS = frozenset(dir(builtins))


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """What a call should give.

    Attributes:
        kind: `equals` a value, or only its `truth`.
        value: The value; for `truth` a bool.
    """

    kind: Literal["equals", "truth"]
    value: Any


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One check, read.

    Attributes:
        program: The whole program in one form: without messages and comments, numbers written one way.
        call: What is done before the assert, and the call in it; empty where the check is no single assert of
            one call, such as a property.
        expected: What the call should give; `None` where `call` is empty.
        names: Every name that the program reads.
        trivial: Whether it compares a thing with itself, or asserts a constant.
    """

    program: str
    call: str = ""
    expected: Expectation | None = None
    names: frozenset[str] = frozenset()
    trivial: bool = False


def parse_claim(check: Check) -> Claim | None:
    """Read a check; `None` where its source is not Python, or nests too deeply."""
    tree = parsed(check.source)
    try:
        return None if tree is None else _read(tree)
    except RecursionError:
        return None


def _read(tree: ast.Module) -> Claim:
    tree = ast.fix_missing_locations(_Plain().visit(tree))
    names = frozenset(
        part.id for part in ast.walk(tree) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)
    )
    asserts = [part for part in ast.walk(tree) if isinstance(part, ast.Assert)]
    trivial = bool(asserts) and all(_is_trivial(part.test) for part in asserts)
    program = ast.unparse(tree)
    last = tree.body[-1] if tree.body else None
    if len(asserts) == 1 and isinstance(last, ast.Assert):
        found = _expectation(last.test)
        if found is not None:
            before = [ast.unparse(node) for node in tree.body[:-1]]
            call = "\n".join((*before, ast.unparse(found[0])))
            return Claim(program=program, call=call, expected=found[1], names=names, trivial=trivial)
    return Claim(program=program, names=names, trivial=trivial)


def contradict(one: Expectation, other: Expectation) -> bool:
    """Whether the same call cannot fulfil both."""
    if one.kind == other.kind == "equals":
        values = (one.value, other.value)
        return bool(values[0] != values[1]) and not any(value != value for value in values)
    return bool(one.value) != bool(other.value)


class _Plain(ast.NodeTransformer):
    """Without messages of asserts and lone constants."""

    def visit_Assert(self, node: ast.Assert) -> ast.Assert:
        return ast.Assert(test=self.visit(node.test), msg=None)

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)


def _literal(node: ast.expr) -> tuple[Any] | None:
    """The value of a literal in a tuple of one. Nothing is computed: the text is a model's."""
    try:
        return (ast.literal_eval(node),)
    except NOT_LITERAL:
        return None


def _expectation(test: ast.expr) -> tuple[ast.expr, Expectation] | None:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and _tests_a_call(test.operand):
        return test.operand, Expectation(kind="truth", value=False)
    if isinstance(test, ast.Call) and _tests_a_call(test):
        return test, Expectation(kind="truth", value=True)
    if (
        not isinstance(test, ast.Compare)
        or len(test.ops) != 1
        or not isinstance(test.ops[0], ast.Eq | ast.Is)
    ):
        return None
    left, right = test.left, test.comparators[0]
    for call, shown in ((left, right), (right, left)):
        value = _literal(shown)
        if value is not None and _tests_a_call(call):
            return call, Expectation(kind="equals", value=value[0])
    return None


def _tests_a_call(node: ast.expr) -> bool:
    """Whether an expression calls something that is not built in, such as `sorted(f(x))`."""
    calls = [part for part in ast.walk(node) if isinstance(part, ast.Call)]
    return any(not (isinstance(call.func, ast.Name) and call.func.id in BUILTINS) for call in calls)


def _is_trivial(test: ast.expr) -> bool:
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return ast.dump(test.left) == ast.dump(test.comparators[0])
    return _literal(test) is not None
