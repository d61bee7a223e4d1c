"""Rewriting a test program so that a failed assert leaves a fact, and so that exits and its end are recorded.

Runs inside the sandbox, in the judge and, in nonce mode, beside the candidate. The rewritten program
evaluates exactly what the original does, in the same order and once.
"""

from __future__ import annotations

import ast
from types import CodeType
from typing import Any

from suture.judge.split.argument_protection import find_protected_lines
from suture.judge.split.assert_recorder import AssertRecorder

RECORDER_NAME = "__suture_asserts__"
"""The name under which the program sees its `AssertRecorder`."""

ORDER_OPERATORS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
EXITS = frozenset(("exit", "quit", "sys.exit"))
UNITTEST_MAINS = frozenset(("unittest.main", "unittest.TestProgram"))
CATCH_ALL_NAMES = frozenset(("AssertionError", "BaseException", "Exception", "failureException"))
EXPECTED_FAILURE = "expectedFailure"
CATCHING_CALLS = frozenset(("raises", "assertRaises", "assertRaisesRegex", "suppress", EXPECTED_FAILURE))
PASSIVE_STATEMENTS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.Pass)
"""Statements that only define things."""


def compile_program(source: str, filename: str, recorder: AssertRecorder) -> CodeType:
    """Compile a test program with its asserts and exits rewritten and its end marked.

    Args:
        source: The program as Python source.
        filename: The file name that the program's stack frames show.
        recorder: The recorder, which the program sees under the name `RECORDER_NAME`.

    Raises:
        SyntaxError: The source is not valid Python.
    """
    tree = ast.parse(source, filename)
    recorder.protected_lines = find_protected_lines(tree)
    recorder.may_skip = "skip" in source.lower()
    recorder.may_fail, recorder.is_idle = catches_failures(tree), is_idle(tree)
    recorder.may_raise = catches_anything(tree)
    tree = _AssertRewriter().visit(rewrite_exits(tree, RECORDER_NAME))
    end = ast.Expr(_hook("record_end", []))
    tree.body.append(ast.fix_missing_locations(end))
    return compile(tree, filename, "exec", dont_inherit=True)


class _AssertRewriter(ast.NodeTransformer):
    """Rewrites `assert L op R, message` into: evaluate L and R, compare, and call the recorder on failure."""

    def visit(self, node: ast.AST) -> Any:
        return node if isinstance(node, ast.expr) else super().visit(node)  # expressions hold no statements

    def visit_If(self, node: ast.If) -> ast.stmt:
        last = node.body[-1]
        fails = isinstance(last, ast.Raise) or (isinstance(last, ast.Assert) and not _may_hold(last.test))
        if fails:
            node.test = _placed(_order_nan(node.test), node.test)
        self.generic_visit(node)
        return node

    def visit_Raise(self, node: ast.Raise) -> ast.stmt:
        raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        if node.exc is not None and isinstance(raised, ast.Name) and raised.id == "AssertionError":
            node.exc = _placed(_hook("record_failure", [node.exc]), node.exc)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.args:
            if call.func.attr == "assertFalse":
                call.args[0] = _placed(_order_nan(call.args[0]), call.args[0])
            elif call.func.attr == "assertTrue":
                call.args[0] = _placed(_order_nan(call.args[0], negated=False), call.args[0])
        return node

    def visit_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        test = node.test
        text = ast.Constant(ast.unparse(test))
        left, right = _load("__suture_left__"), _load("__suture_right__")
        condition: ast.expr = left
        raising, setup = "make_failure", [_store(left, _order_nan(test, negated=False))]
        facts: list[ast.expr] = [left, ast.Constant("a true value")]
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            raising = "make_comparison_failure"
            setup = [_store(left, test.left), _store(right, test.comparators[0])]
            condition = ast.Compare(left, test.ops, [right])
            sides = [ast.Constant(ast.unparse(side)) for side in (test.left, test.comparators[0])]
            facts = [ast.Constant(type(test.ops[0]).__name__), left, right, *sides]
        elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            setup = [_store(left, _order_nan(test.operand))]
            condition, facts = ast.UnaryOp(ast.Not(), left), [left, ast.Constant("a false value")]
        fault = _hook("record_failure", [_hook(raising, [text, *facts, node.msg or ast.Constant(None)])])
        refuted = ast.If(ast.UnaryOp(ast.Not(), condition), [ast.Raise(fault)], [])
        made: list[ast.stmt] = [*setup, refuted, ast.Expr(_hook("record_pass", []))]
        for statement in made:
            _place(statement, node)
        return made


def _order_nan(condition: ast.expr, *, negated: bool = True) -> ast.expr:
    """Return the condition with negated comparisons rewritten so that nan cannot make them hold.

    A comparison with nan and its negation are both wrong: the comparison is always false.
    """
    if isinstance(condition, ast.UnaryOp) and isinstance(condition.op, ast.Not):
        return ast.UnaryOp(ast.Not(), _order_nan(condition.operand, negated=not negated))
    if isinstance(condition, ast.BoolOp):
        return ast.BoolOp(condition.op, [_order_nan(part, negated=negated) for part in condition.values])
    if not negated or not isinstance(condition, ast.Compare) or len(condition.ops) != 1:
        return condition
    if type(condition.ops[0]) not in ORDER_OPERATORS:
        return condition
    op = ast.Constant(type(condition.ops[0]).__name__)
    return _hook("compare_ordered", [op, condition.left, condition.comparators[0]])


def _may_hold(node: ast.expr) -> bool:
    """Whether a condition may hold, that is, is not written as a false constant."""
    return not isinstance(node, ast.Constant) or bool(node.value)


def _placed(made: ast.expr, at: ast.expr) -> ast.expr:
    _place(made, at)
    return made


def _place(part: ast.AST, at: ast.AST) -> None:
    """Give a new node the source position of the node that it replaces; existing children keep theirs."""
    if not hasattr(part, "lineno"):
        ast.copy_location(part, at)
        for inner in ast.iter_child_nodes(part):
            _place(inner, at)


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _store(name: ast.Name, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name.id, ast.Store())], value)


def _hook(method: str, arguments: list[ast.expr]) -> ast.Call:
    return ast.Call(ast.Attribute(_load(RECORDER_NAME), method, ast.Load()), arguments, [])


def rewrite_exits(tree: ast.Module, hook: str) -> ast.Module:
    """Rewrite a program's exits and its `unittest.main()` into method calls on the recorder named `hook`.

    A `SystemExit` does not tell who raised it. So exits in the test's own text become calls of the recorder,
    and any other exit is a failure.
    """
    changed = _ExitRewriter(_imported_names(tree), hook).visit(tree)
    assert isinstance(changed, ast.Module)
    return changed


def _imported_names(tree: ast.Module) -> dict[str, str]:
    """Return local name -> dotted name of the program's own imports, such as `main` -> `unittest.main`."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return names


class _ExitRewriter(ast.NodeTransformer):
    def __init__(self, names: dict[str, str], hook: str) -> None:
        self.names = names
        self.hook = hook

    def visit(self, node: ast.AST) -> Any:
        return node if isinstance(node, ast.expr) else super().visit(node)  # expressions hold no statements

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        call = node.value
        if not isinstance(call, ast.Call):
            return node
        called = self._dotted(call.func)
        if called in UNITTEST_MAINS:
            return self._made(node, ast.Expr(self._hook("run_tests", [])))
        if called in EXITS and len(call.args) <= 1 and not call.keywords:
            return self._made(node, ast.Raise(self._hook("make_exit", call.args)))
        return node

    def visit_Raise(self, node: ast.Raise) -> ast.stmt:
        raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        if node.cause is not None or not isinstance(raised, ast.Name) or raised.id != "SystemExit":
            return node
        given = node.exc.args if isinstance(node.exc, ast.Call) else []
        return self._made(node, ast.Raise(self._hook("make_exit", given)))

    def _dotted(self, node: ast.expr) -> str:
        text = ast.unparse(node)
        first, dot, rest = text.partition(".")
        return f"{self.names.get(first, first)}{dot}{rest}"

    def _hook(self, method: str, arguments: list[ast.expr]) -> ast.Call:
        return ast.Call(ast.Attribute(ast.Name(self.hook, ast.Load()), method, ast.Load()), arguments, [])

    @staticmethod
    def _made(old: ast.stmt, new: ast.stmt) -> ast.stmt:
        return ast.fix_missing_locations(ast.copy_location(new, old))


def catches_failures(tree: ast.Module) -> bool:
    """Whether a program's text catches failed asserts anywhere, so that a failure may be intended."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and node.type is None:
            return True
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        if name == EXPECTED_FAILURE or (name in CATCH_ALL_NAMES and not _is_raised(node, tree)):
            return True
    return False


def catches_anything(tree: ast.Module) -> bool:
    """Whether a program's text catches exceptions of any kind."""
    for node in ast.walk(tree):
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        if isinstance(node, ast.ExceptHandler) or name in CATCHING_CALLS or name in CATCH_ALL_NAMES:
            return True
    return False


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
