"""Rewriting a test program so that it reports its asserts, its exits and its end to an `AssertRecorder`.

The rewritten program evaluates exactly what the original does, once and in the same order. Runs inside the
sandbox, in the judge and, in nonce mode, together with the candidate.
"""

from __future__ import annotations

import ast
from types import CodeType
from typing import Any, TypeVar

from suture.judge.split.assert_recorder import AssertRecorder

RECORDER_NAME = "__suture_asserts__"
"""The name under which the program sees its `AssertRecorder`."""

ORDER_OPERATORS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
EXITS = frozenset(("exit", "quit", "sys.exit"))
UNITTEST_MAINS = frozenset(("unittest.main", "unittest.TestProgram"))
CATCH_ALL_NAMES = frozenset(("AssertionError", "BaseException", "Exception", "failureException"))
EXPECTED_FAILURE = "expectedFailure"
"""The decorator of unittest for tests that must fail."""
CATCHING_CALLS = frozenset(("raises", "assertRaises", "assertRaisesRegex", "suppress", EXPECTED_FAILURE))
"""Functions of pytest, unittest and contextlib that catch exceptions."""
Node = TypeVar("Node", bound=ast.AST)

PASSIVE_STATEMENTS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.Pass)
"""Statements that only define things."""


def compile_program(source: str, filename: str, recorder: AssertRecorder) -> CodeType:
    """Compile a test program with its asserts and exits rewritten and its end marked.

    Args:
        recorder: The recorder, which the program sees under the name `RECORDER_NAME`.

    Raises:
        SyntaxError: The source is not valid Python.
    """
    tree = ast.parse(source, filename)
    recorder.may_skip = "skip" in source.lower()
    recorder.may_fail, recorder.is_idle = catches_failures(tree), is_idle(tree)
    recorder.may_raise = catches_anything(tree)
    imported_names = _find_imported_names(tree)
    tree = _AssertRewriter().visit(_ExitRewriter(imported_names).visit(tree))
    if "math" in source:
        tree = _MathRewriter(imported_names).visit(tree)
    end = ast.Expr(_call_recorder("record_end", []))
    tree.body.append(ast.fix_missing_locations(end))
    return compile(tree, filename, "exec", dont_inherit=True)


class _AssertRewriter(ast.NodeTransformer):
    """Rewrites statements that can fail a test so that the recorder sees the values.

    `assert left < right, message` evaluates both sides, compares them, and calls the recorder. In conditions
    that fail a test, comparisons with nan are made to fail it too.
    """

    def visit(self, node: ast.AST) -> Any:
        return node if isinstance(node, ast.expr) else super().visit(node)  # expressions hold no statements

    def visit_If(self, node: ast.If) -> ast.stmt:
        end = node.body[-1]
        test = end.test if isinstance(end, ast.Assert) else None
        if isinstance(end, ast.Raise) or (isinstance(test, ast.Constant) and not test.value):
            node.test = _copy_position(_make_nan_fail(node.test), node.test)
        self.generic_visit(node)
        return node

    def visit_Raise(self, node: ast.Raise) -> ast.stmt:
        raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        if node.exc is not None and isinstance(raised, ast.Name) and raised.id == "AssertionError":
            node.exc = _copy_position(_call_recorder("record_failure", [node.exc]), node.exc)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.args:
            if call.func.attr == "assertFalse":
                call.args[0] = _copy_position(_make_nan_fail(call.args[0]), call.args[0])
            elif call.func.attr == "assertTrue":
                call.args[0] = _copy_position(_make_nan_fail(call.args[0], negated=False), call.args[0])
        return node

    def visit_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        test = node.test
        text = ast.Constant(ast.unparse(test))
        left, right = _load("__suture_left__"), _load("__suture_right__")
        condition: ast.expr = left
        factory, setup = "make_failure", [_store(left, _make_nan_fail(test, negated=False))]
        facts: list[ast.expr] = [left, ast.Constant("a true value")]
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            factory = "make_comparison_failure"
            setup = [_store(left, test.left), _store(right, test.comparators[0])]
            condition = ast.Compare(left, test.ops, [right])
            sides = [ast.Constant(ast.unparse(side)) for side in (test.left, test.comparators[0])]
            facts = [ast.Constant(type(test.ops[0]).__name__), left, right, *sides]
        elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            setup = [_store(left, _make_nan_fail(test.operand))]
            condition, facts = ast.UnaryOp(ast.Not(), left), [left, ast.Constant("a false value")]
        fault = _call_recorder(
            "record_failure", [_call_recorder(factory, [text, *facts, node.msg or ast.Constant(None)])]
        )
        failure: ast.stmt = ast.If(ast.UnaryOp(ast.Not(), condition), [ast.Raise(fault)], [])
        statements = [*setup, failure, ast.Expr(_call_recorder("record_pass", []))]
        return [_copy_position(statement, node) for statement in statements]


def _make_nan_fail(condition: ast.expr, *, negated: bool = True) -> ast.expr:
    """Return a condition whose negated order comparisons count as true if a side is nan.

    A comparison with nan is always false, so `not x > limit` would hold and hide that x is nan.
    """
    if isinstance(condition, ast.UnaryOp) and isinstance(condition.op, ast.Not):
        return ast.UnaryOp(ast.Not(), _make_nan_fail(condition.operand, negated=not negated))
    if isinstance(condition, ast.BoolOp):
        return ast.BoolOp(condition.op, [_make_nan_fail(part, negated=negated) for part in condition.values])
    if not negated or not isinstance(condition, ast.Compare) or len(condition.ops) != 1:
        return condition
    if type(condition.ops[0]) not in ORDER_OPERATORS:
        return condition
    op = ast.Constant(type(condition.ops[0]).__name__)
    return _call_recorder("compare_ordered", [op, condition.left, condition.comparators[0]])


def _copy_position(new: Node, old: ast.AST) -> Node:
    """Give a new node the source position of the node that it replaces; existing children keep theirs."""
    if not hasattr(new, "lineno"):
        ast.copy_location(new, old)
        for child in ast.iter_child_nodes(new):
            _copy_position(child, old)
    return new


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _store(name: ast.Name, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name.id, ast.Store())], value)


def _call_recorder(method: str, arguments: list[ast.expr]) -> ast.Call:
    return ast.Call(ast.Attribute(_load(RECORDER_NAME), method, ast.Load()), arguments, [])


def _find_imported_names(tree: ast.Module) -> dict[str, str]:
    """Return local name -> dotted name of the program's own imports, such as `main` -> `unittest.main`."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return names


class _ExitRewriter(ast.NodeTransformer):
    """Rewrites a program's exits and its `unittest.main()` into calls of the recorder's methods.

    A `SystemExit` does not show which code raised it. So exits in the test's own source become calls of the recorder,
    and any other exit is a failure.
    """

    def __init__(self, imported_names: dict[str, str]) -> None:
        self._imported_names = imported_names

    def visit(self, node: ast.AST) -> Any:
        return node if isinstance(node, ast.expr) else super().visit(node)  # expressions hold no statements

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        call = node.value
        if not isinstance(call, ast.Call):
            return node
        function = _get_dotted_name(call.func, self._imported_names)
        if function in UNITTEST_MAINS:
            run_tests = ast.Expr(_call_recorder("run_tests", []))
            return ast.fix_missing_locations(ast.copy_location(run_tests, node))
        if function in EXITS and len(call.args) <= 1 and not call.keywords:
            return self._raise_exit(node, call.args)
        return node

    def visit_Raise(self, node: ast.Raise) -> ast.stmt:
        exception = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        if node.cause is not None or not isinstance(exception, ast.Name) or exception.id != "SystemExit":
            return node
        return self._raise_exit(node, node.exc.args if isinstance(node.exc, ast.Call) else [])

    def _raise_exit(self, node: ast.stmt, arguments: list[ast.expr]) -> ast.stmt:
        raise_exit = ast.Raise(_call_recorder("make_exit", arguments))
        return ast.fix_missing_locations(ast.copy_location(raise_exit, node))


class _MathRewriter(ast.NodeTransformer):
    """Passes the results of `math` to the recorder, because `math` turns each stand-in for nan into a float."""

    def __init__(self, imported_names: dict[str, str]) -> None:
        self._imported_names = imported_names

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if not isinstance(node.func, (ast.Name, ast.Attribute)):
            return node
        if not _get_dotted_name(node.func, self._imported_names).startswith("math."):
            return node
        return ast.fix_missing_locations(ast.copy_location(_call_recorder("guard_number", [node]), node))


def _get_dotted_name(node: ast.expr, imported_names: dict[str, str]) -> str:
    first, dot, rest = ast.unparse(node).partition(".")
    return f"{imported_names.get(first, first)}{dot}{rest}"


def catches_failures(tree: ast.Module) -> bool:
    """Whether a program's source may catch a failed assert, so that a failure may be intended."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and node.type is None:
            return True
        name = _get_name(node)
        if name == EXPECTED_FAILURE or (name in CATCH_ALL_NAMES and not _is_raised(node, tree)):
            return True
    return False


def catches_anything(tree: ast.Module) -> bool:
    """Whether a program's source catches exceptions of any kind."""
    for node in ast.walk(tree):
        name = _get_name(node)
        if isinstance(node, ast.ExceptHandler) or name in CATCHING_CALLS or name in CATCH_ALL_NAMES:
            return True
    return False


def _get_name(node: ast.AST) -> str:
    """Return the name of a variable or attribute, such as `raises` for `pytest.raises`; else empty."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _is_raised(name: ast.AST, tree: ast.Module) -> bool:
    raised = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc is not None]
    return any(name is (exc.func if isinstance(exc, ast.Call) else exc) for exc in raised)


def is_idle(tree: ast.Module) -> bool:
    """Whether a program only defines things and so tests nothing."""
    return all(_is_passive(node) for node in tree.body)


def _is_passive(node: ast.stmt) -> bool:
    if isinstance(node, PASSIVE_STATEMENTS):
        return True
    if isinstance(node, ast.ClassDef):
        return all(map(_is_passive, node.body))
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        return not any(isinstance(part, (ast.Call, ast.Await, ast.Subscript)) for part in ast.walk(node))
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
