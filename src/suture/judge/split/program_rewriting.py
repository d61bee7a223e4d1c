"""A test program rewritten so that an assert that fails leaves a fact.

Runs behind the wall, in the judge (and, in nonce mode, beside the candidate). The rewritten program evaluates
exactly what the original does, in the same order, once.
"""

from __future__ import annotations

import ast
from types import CodeType
from typing import Any

from suture.judge.split.argument_protection import keeping_lines
from suture.judge.split.assert_recorder import Asserts
from suture.judge.split.own_ends import own_ends
from suture.judge.split.own_failures import catches_anything, catches_failures, is_idle

HOOK = "__suture_asserts__"
"""The name under which the program sees its `Asserts`."""

ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def compile_program(source: str, filename: str, asserts: Asserts) -> CodeType:
    """Compile a test program with its asserts and its exits rewritten, and its end marked.

    Args:
        source: The program, as Python source.
        filename: What its frames say that they are of.
        asserts: What it will report to, under the name `HOOK`.

    Raises:
        SyntaxError: It is not Python.
    """
    tree = ast.parse(source, filename)
    asserts.keeping = keeping_lines(tree)
    asserts.may_skip = "skip" in source.lower()
    asserts.may_fail, asserts.idle = catches_failures(tree), is_idle(tree)
    asserts.may_raise = catches_anything(tree)
    tree = _Rewriter().visit(own_ends(tree, HOOK))
    end = ast.Expr(_hook("reached_the_end", []))
    tree.body.append(ast.fix_missing_locations(end))
    return compile(tree, filename, "exec", dont_inherit=True)


class _Rewriter(ast.NodeTransformer):
    """`assert L op R, message` becomes: evaluate L, R, compare; where it fails, call the hook."""

    def visit(self, node: ast.AST) -> Any:
        return node if isinstance(node, ast.expr) else super().visit(node)  # there are no statements in it

    def visit_If(self, node: ast.If) -> ast.stmt:
        last = node.body[-1]
        fails = isinstance(last, ast.Raise) or (isinstance(last, ast.Assert) and not _may_hold(last.test))
        if fails:
            node.test = _placed(_with_order(node.test), node.test)
        self.generic_visit(node)
        return node

    def visit_Raise(self, node: ast.Raise) -> ast.stmt:
        raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        if node.exc is not None and isinstance(raised, ast.Name) and raised.id == "AssertionError":
            node.exc = _placed(_hook("seen", [node.exc]), node.exc)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.args:
            if call.func.attr == "assertFalse":
                call.args[0] = _placed(_with_order(call.args[0]), call.args[0])
            elif call.func.attr == "assertTrue":
                call.args[0] = _placed(_with_order(call.args[0], negated=False), call.args[0])
        return node

    def visit_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        test = node.test
        text = ast.Constant(ast.unparse(test))
        left, right = _load("__suture_left__"), _load("__suture_right__")
        condition: ast.expr = left
        raising, setup = "failed", [_store(left, _with_order(test, negated=False))]
        facts: list[ast.expr] = [left, ast.Constant("a true value")]
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            raising = "comparison_failed"
            setup = [_store(left, test.left), _store(right, test.comparators[0])]
            condition = ast.Compare(left, test.ops, [right])
            sides = [ast.Constant(ast.unparse(side)) for side in (test.left, test.comparators[0])]
            facts = [ast.Constant(type(test.ops[0]).__name__), left, right, *sides]
        elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            setup = [_store(left, _with_order(test.operand))]
            condition, facts = ast.UnaryOp(ast.Not(), left), [left, ast.Constant("a false value")]
        fault = _hook("seen", [_hook(raising, [text, *facts, node.msg or ast.Constant(None)])])
        refuted = ast.If(ast.UnaryOp(ast.Not(), condition), [ast.Raise(fault)], [])
        made: list[ast.stmt] = [*setup, refuted, ast.Expr(_hook("passed", []))]
        for statement in made:
            _place(statement, node)
        return made


def _with_order(condition: ast.expr, *, negated: bool = True) -> ast.expr:
    """A condition in which a negated comparison is told apart from one that nan makes fail either way."""
    if isinstance(condition, ast.UnaryOp) and isinstance(condition.op, ast.Not):
        return ast.UnaryOp(ast.Not(), _with_order(condition.operand, negated=not negated))
    if isinstance(condition, ast.BoolOp):
        return ast.BoolOp(condition.op, [_with_order(part, negated=negated) for part in condition.values])
    if not negated or not isinstance(condition, ast.Compare) or len(condition.ops) != 1:
        return condition
    if type(condition.ops[0]) not in ORDERS:
        return condition
    op = ast.Constant(type(condition.ops[0]).__name__)
    return _hook("ordered", [op, condition.left, condition.comparators[0]])


def _may_hold(node: ast.expr) -> bool:
    """Whether a condition may hold: it is not written as a constant that is false."""
    return not isinstance(node, ast.Constant) or bool(node.value)


def _placed(made: ast.expr, at: ast.expr) -> ast.expr:
    _place(made, at)
    return made


def _place(part: ast.AST, at: ast.AST) -> None:
    """Give what was made the place of what it was made for; what was there before has one."""
    if not hasattr(part, "lineno"):
        ast.copy_location(part, at)
        for inner in ast.iter_child_nodes(part):
            _place(inner, at)


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _store(name: ast.Name, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name.id, ast.Store())], value)


def _hook(method: str, arguments: list[ast.expr]) -> ast.Call:
    return ast.Call(ast.Attribute(_load(HOOK), method, ast.Load()), arguments, [])
