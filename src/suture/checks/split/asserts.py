"""Asserts that can say what they saw: a program rewritten so that a failing assert leaves a fact.

Runs behind the wall, in the judge (and, in nonce mode, beside the candidate). The rewritten program evaluates
exactly what the original does, in the same order, once.
"""

from __future__ import annotations

import ast
import contextlib
import operator
import reprlib
import sys
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import CodeType, TracebackType
from typing import Any

from suture.checks.split.kept_arguments import keeping_lines
from suture.checks.split.own_ends import OwnEnd, own_ends, run_tests
from suture.checks.split.own_failures import catches_anything, catches_failures, is_idle

HOOK = "__suture_asserts__"
"""The name under which the program sees its `Asserts`."""
LONGEST = 400
Fact = dict[str, str]
WORDS = {
    "Eq": "{}",
    "NotEq": "anything but {}",
    "Lt": "less than {}",
    "LtE": "at most {}",
    "Gt": "more than {}",
    "GtE": "at least {}",
    "In": "one of {}",
    "NotIn": "none of {}",
    "Is": "{} itself",
    "IsNot": "not {}",
}
ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
ORDER_OF = {"Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge}
HARMLESS = (
    ast.Constant, ast.Name, ast.expr_context, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Subscript,
    ast.Slice, ast.UnaryOp, ast.unaryop, ast.BinOp, ast.operator,
)  # fmt: skip
"""Syntax that can be evaluated a second time without calling anything but operators."""

_SHORT = reprlib.Repr()
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = _SHORT.maxset = _SHORT.maxfrozenset = _SHORT.maxdeque = 40
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 200


class FailedAssert(AssertionError):
    """An assert of the program failed; `fact` says what was expected and what came."""

    fact: Fact


@dataclass
class Call:
    """One call of the candidate: how to show it, and what it answered."""

    show: Callable[[], str]
    result: Any


def shorten(value: Any) -> str:
    """The `repr` of a value, cut where it would be long."""
    try:
        text = repr(value)
        if len(text) > LONGEST:
            text = _SHORT.repr(value)
    except Exception as fault:
        return f"<{type(value).__name__} whose repr raised {type(fault).__name__}>"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 20]} ... {text[-15:]}"


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


class Asserts:
    """What the rewritten program reports to."""

    def __init__(self) -> None:
        self.calls: deque[Call] = deque(maxlen=20)
        self.keeping: frozenset[int] = frozenset()
        self.may_skip = self.may_fail = self.may_raise = self.idle = False
        self.unseen: BaseException | type[BaseException] | None = None
        self._at_end = False
        self._end: OwnEnd | None = None

    def reached_the_end(self) -> None:
        """The last statement of the program has run."""
        self._at_end = True

    def own_end(self, code: Any = None) -> OwnEnd:
        """What a program raises that ends itself, by its own text."""
        self._end = OwnEnd(code)
        return self._end

    def run_tests(self) -> None:
        """What stands in the place of `unittest.main()`."""
        run_tests(sys.modules["__main__"], self.may_skip)

    def came_to_an_end(self, fault: BaseException | None) -> bool:
        """Whether a program got to where its text ends it, and well: nothing else is a pass.

        Args:
            fault: What ended it; `None` where nothing did.
        """
        if self.idle or (self.unseen is not None and not self.may_fail):
            return False
        if fault is None:
            return self._at_end
        if self._end is None or fault is not self._end:
            return False
        code = self._end.code
        return code is None or (type(code) in (bool, int) and not code)

    def seen(self, fault: AssertionError | type[AssertionError]) -> AssertionError | type[AssertionError]:
        """An assert failed, whatever becomes of its exception: a thread or a `finally` may lose it."""
        self.unseen = self.unseen or fault
        return fault

    def crossed(self, fault: BaseException) -> None:
        """The candidate raised it; a test that catches nothing ends by it, or has lost it."""
        if not self.may_raise:
            self.unseen = self.unseen or fault

    def lost(self, fault: BaseException | None) -> BaseException | None:
        """What ended a program that is no pass: what was raised, or the assert that failed unseen."""
        if fault is not None or self.unseen is None or self.may_fail:
            return fault
        return self.unseen if isinstance(self.unseen, BaseException) else self.unseen()

    @staticmethod
    def ordered(op: str, left: Any, right: Any) -> Any:
        """A comparison that an assert negates; with nan it would fail in both directions, and so holds."""
        if any(_is_nan(side) for side in (left, right)):
            return True
        return ORDER_OF[op](left, right)

    def passed(self) -> None:
        """An assert held; the calls before it explain nothing that comes later."""
        self.calls.clear()

    def failed(self, text: str, value: Any, expected: str, message: Any) -> FailedAssert:
        """The exception of an assert that is no comparison."""
        call = self._call_that_gave(value)
        if call is not None:
            return _fault(message, call=call.show(), expected=expected, got=shorten(value))
        fact = {"call": text, "expected": expected, "got": self._where(shorten(value))}
        if self.calls:
            last = self.calls[-1]
            fact = {"call": last.show(), "expected": f"`{text}` to hold", "got": shorten(last.result)}
        return _fault(message, **fact)

    def comparison_failed(
        self, text: str, op: str, left: Any, right: Any, left_text: str, right_text: str, message: Any
    ) -> FailedAssert:
        """The exception of a comparison."""
        call = self._call_that_gave(left)
        if call is not None:
            expected = WORDS.get(op, f"`{text}` to hold where that is {{}}")
            return _fault(
                message,
                call=call.show(),
                expected=expected.format(_show(right, right_text)),
                got=shorten(left),
            )
        call = self._call_that_gave(right)
        if call is not None and not (self.calls and "(" in left_text):
            expected = _show(left, left_text) if op == "Eq" else f"`{text}` to hold"
            return _fault(message, call=call.show(), expected=expected, got=shorten(right))
        if "(" not in left_text and "(" in right_text and op == "Eq":
            left, right, left_text, right_text = right, left, right_text, left_text
        expected = WORDS[op].format(_show(right, right_text))
        return _fault(message, call=left_text, expected=expected, got=self._where(_show(left, left_text)))

    def _call_that_gave(self, value: Any) -> Call | None:
        for call in reversed(self.calls):
            if call.result is value:
                return call
        return None

    def _where(self, got: str) -> str:
        if not self.calls:
            return got
        last = self.calls[-1]
        return f"{got} (where {last.show()} answered {shorten(last.result)})"


def _is_nan(value: Any) -> bool:
    if isinstance(value, float):
        return value != value
    decimal = sys.modules.get("decimal")  # there, if any value is of it
    return decimal is not None and isinstance(value, decimal.Decimal) and value.is_nan()


def _fault(message: Any, **fact: str) -> FailedAssert:
    fault = FailedAssert() if message is None else FailedAssert(message)
    fault.fact = fact
    return fault


def _show(value: Any, text: str) -> str:
    shown = shorten(value)
    return text if " object at 0x" in shown else shown


def explain(fault: BaseException, asserts: Asserts, source: str, filename: str) -> Fact:
    """The fact behind whatever ended a program."""
    if isinstance(fault, FailedAssert):
        return fault.fact
    fact = {"exception": _one_line(fault)}
    call = getattr(fault, "suture_call", None)
    if call is not None:
        fact["call"] = call()
        fact["expected"] = _expected_at(fault.__traceback__, source, filename)
    elif asserts.calls:
        last = asserts.calls[-1]
        fact.update(call=last.show(), got=shorten(last.result))
    return fact


def _one_line(fault: BaseException) -> str:
    name = type(fault).__name__
    text = str(fault)
    return (f"{name}: {text}" if text else name)[:LONGEST]


def _expected_at(trace: TracebackType | None, source: str, filename: str) -> str:
    """What the assert expected in which the candidate raised; empty where that cannot be told safely."""
    frames = []
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == filename:
            frames.append((trace.tb_frame, trace.tb_lineno))
        trace = trace.tb_next
    if not frames:
        return ""
    frame, line = frames[-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assert) and node.lineno <= line <= (node.end_lineno or node.lineno):
            return _expectation(node.test, frame.f_globals, frame.f_locals)
    return ""


def _expectation(test: ast.expr, names: dict[str, Any], local_names: Mapping[str, Any]) -> str:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return "a false value"
    if not isinstance(test, ast.Compare):
        return "a true value" if isinstance(test, ast.Call) else f"`{ast.unparse(test)}` to hold"
    if len(test.ops) != 1:
        return f"`{ast.unparse(test)}` to hold"
    other = test.comparators[0]
    if isinstance(test.left, ast.Constant):
        test.left, other = other, test.left
    shown = ast.unparse(other)
    if all(isinstance(part, HARMLESS) for part in ast.walk(other)):
        code = compile(ast.Expression(other), "<expected>", "eval")
        with contextlib.suppress(Exception):
            shown = _show(eval(code, names, dict(local_names)), shown)
    return WORDS.get(type(test.ops[0]).__name__, "{}").format(shown)
