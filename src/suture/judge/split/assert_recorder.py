"""What a rewritten test program reports to: which asserts held, and what one that failed saw.

Runs behind the wall, in the judge (and, in nonce mode, beside the candidate). `rewriting.py` makes the
program.
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
from types import TracebackType
from typing import Any

from suture.judge.split.own_ends import OwnEnd, run_tests

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
class AssertedCall:
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


class Asserts:
    """What the rewritten program reports to."""

    def __init__(self) -> None:
        self.calls: deque[AssertedCall] = deque(maxlen=20)
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

    def _call_that_gave(self, value: Any) -> AssertedCall | None:
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
