"""What a rewritten test program reports to while it runs: recorder, exits, failures of test frameworks.

Runs inside the sandbox, in the judge and, in nonce mode, beside the candidate. `program_rewriting.py`
rewrites the program.
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

MAX_REPR_CHARS = 400
Fact = dict[str, str]
EXPECTATIONS = {
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
SIDE_EFFECT_FREE = (
    ast.Constant, ast.Name, ast.expr_context, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Subscript,
    ast.Slice, ast.UnaryOp, ast.unaryop, ast.BinOp, ast.operator,
)  # fmt: skip
"""Syntax that can be evaluated a second time without calling anything but operators."""

_SHORT_REPR = reprlib.Repr()
_SHORT_REPR.maxlist = _SHORT_REPR.maxtuple = _SHORT_REPR.maxdict = _SHORT_REPR.maxset = (
    _SHORT_REPR.maxfrozenset
) = _SHORT_REPR.maxdeque = 40
_SHORT_REPR.maxstring = _SHORT_REPR.maxother = _SHORT_REPR.maxlong = 200
WATCHED_METHODS = (
    ("unittest", "TestResult", ("addError", "addFailure", "addSubTest", "addUnexpectedSuccess")),
    ("doctest", "DocTestRunner", ("report_failure", "report_unexpected_exception")),
)
"""Modules, their classes, and the methods of those classes that are called for failures."""


class FailedAssert(AssertionError):
    """An assert of the program failed; `fact` holds the expected and the actual value."""

    fact: Fact


@dataclass
class RecordedCall:
    """One call of the candidate: how to render it, and its result."""

    show: Callable[[], str]
    result: Any


def shorten_repr(value: Any) -> str:
    """Return the `repr` of a value, shortened if it is long."""
    try:
        text = repr(value)
        if len(text) > MAX_REPR_CHARS:
            text = _SHORT_REPR.repr(value)
    except Exception as fault:
        return f"<{type(value).__name__} whose repr raised {type(fault).__name__}>"
    return text if len(text) <= MAX_REPR_CHARS else f"{text[: MAX_REPR_CHARS - 20]} ... {text[-15:]}"


class DeliberateExit(SystemExit):
    """The test program ends itself where its own text says so."""


class TestsFailed(AssertionError):
    """The unittest tests of a program did not all pass."""


class AssertRecorder:
    """Records which recorder of a rewritten program hold, and what a failed one saw."""

    def __init__(self) -> None:
        self.calls: deque[RecordedCall] = deque(maxlen=20)
        self.protected_lines: frozenset[int] = frozenset()
        self.may_skip = self.may_fail = self.may_raise = self.is_idle = False
        self._lost_failure: BaseException | type[BaseException] | None = None
        self._at_end = False
        self._end: DeliberateExit | None = None

    def record_end(self) -> None:
        """Record that the last statement of the program has run."""
        self._at_end = True

    def make_exit(self, code: Any = None) -> DeliberateExit:
        """Return the exception for an exit that the program's own text asks for."""
        self._end = DeliberateExit(code)
        return self._end

    def run_tests(self) -> None:
        """Run the program's unittest tests in place of `unittest.main()`."""
        run_unittest(sys.modules["__main__"], self.may_skip)

    def ended_well(self, fault: BaseException | None) -> bool:
        """Whether a program ended where its text ends and without a failure; nothing else counts as a pass.

        Args:
            fault: The exception that ended the program; `None` if there was none.
        """
        if self.is_idle or (self._lost_failure is not None and not self.may_fail):
            return False
        if fault is None:
            return self._at_end
        if self._end is None or fault is not self._end:
            return False
        code = self._end.code
        return code is None or (type(code) in (bool, int) and not code)

    def record_failure(
        self, fault: AssertionError | type[AssertionError]
    ) -> AssertionError | type[AssertionError]:
        """Record a failed assert, even if its exception is lost later in a thread or a `finally`."""
        self._lost_failure = self._lost_failure or fault
        return fault

    def record_candidate_exception(self, fault: BaseException) -> None:
        """Record an exception of the candidate: a test that catches nothing should end by it."""
        if not self.may_raise:
            self._lost_failure = self._lost_failure or fault

    def find_cause(self, fault: BaseException | None) -> BaseException | None:
        """Return what ended a program that did not pass: an exception, or a failed assert that was lost."""
        if fault is not None or self._lost_failure is None or self.may_fail:
            return fault
        return self._lost_failure if isinstance(self._lost_failure, BaseException) else self._lost_failure()

    @staticmethod
    def compare_ordered(op: str, left: Any, right: Any) -> Any:
        """Evaluate a comparison that an assert negates; with nan it counts as true.

        A comparison with nan is false in both directions, so its negation would always hold.
        """
        if any(_is_nan(side) for side in (left, right)):
            return True
        return ORDER_OF[op](left, right)

    def record_pass(self) -> None:
        """Record that an assert held; earlier calls do not explain later failures."""
        self.calls.clear()

    def make_failure(self, text: str, value: Any, expected: str, message: Any) -> FailedAssert:
        """Return the exception for a failed assert that is no comparison."""
        call = self._call_with_result(value)
        if call is not None:
            return _fault(message, call=call.show(), expected=expected, actual=shorten_repr(value))
        fact = {"call": text, "expected": expected, "actual": self._where(shorten_repr(value))}
        if self.calls:
            last = self.calls[-1]
            fact = {"call": last.show(), "expected": f"`{text}` to hold", "actual": shorten_repr(last.result)}
        return _fault(message, **fact)

    def make_comparison_failure(
        self, text: str, op: str, left: Any, right: Any, left_text: str, right_text: str, message: Any
    ) -> FailedAssert:
        """Return the exception for a failed comparison."""
        call = self._call_with_result(left)
        if call is not None:
            expected = EXPECTATIONS.get(op, f"`{text}` to hold where that is {{}}")
            return _fault(
                message,
                call=call.show(),
                expected=expected.format(_show(right, right_text)),
                actual=shorten_repr(left),
            )
        call = self._call_with_result(right)
        if call is not None and not (self.calls and "(" in left_text):
            expected = _show(left, left_text) if op == "Eq" else f"`{text}` to hold"
            return _fault(message, call=call.show(), expected=expected, actual=shorten_repr(right))
        if "(" not in left_text and "(" in right_text and op == "Eq":
            left, right, left_text, right_text = right, left, right_text, left_text
        expected = EXPECTATIONS[op].format(_show(right, right_text))
        return _fault(message, call=left_text, expected=expected, actual=self._where(_show(left, left_text)))

    def _call_with_result(self, value: Any) -> RecordedCall | None:
        for call in reversed(self.calls):
            if call.result is value:
                return call
        return None

    def _where(self, got: str) -> str:
        if not self.calls:
            return got
        last = self.calls[-1]
        return f"{got} (where {last.show()} answered {shorten_repr(last.result)})"


def _is_nan(value: Any) -> bool:
    if isinstance(value, float):
        return value != value
    decimal = sys.modules.get("decimal")  # loaded if any value is a Decimal
    return decimal is not None and isinstance(value, decimal.Decimal) and value.is_nan()


def _fault(message: Any, **fact: str) -> FailedAssert:
    fault = FailedAssert() if message is None else FailedAssert(message)
    fault.fact = fact
    return fault


def _show(value: Any, text: str) -> str:
    shown = shorten_repr(value)
    return text if " object at 0x" in shown else shown


def explain_failure(fault: BaseException, recorder: AssertRecorder, source: str, filename: str) -> Fact:
    """Return the fact behind the exception that ended a program."""
    if isinstance(fault, FailedAssert):
        return fault.fact
    fact = {"exception": _one_line(fault)}
    call = getattr(fault, "suture_call", None)
    if call is not None:
        fact["call"] = call()
        fact["expected"] = _expected_at(fault.__traceback__, source, filename)
    elif recorder.calls:
        last = recorder.calls[-1]
        fact.update(call=last.show(), actual=shorten_repr(last.result))
    return fact


def _one_line(fault: BaseException) -> str:
    name = type(fault).__name__
    text = str(fault)
    return (f"{name}: {text}" if text else name)[:MAX_REPR_CHARS]


def _expected_at(trace: TracebackType | None, source: str, filename: str) -> str:
    """Return what the assert around the candidate's exception expected; empty if that is not safe to tell."""
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
    if all(isinstance(part, SIDE_EFFECT_FREE) for part in ast.walk(other)):
        code = compile(ast.Expression(other), "<expected>", "eval")
        with contextlib.suppress(Exception):
            shown = _show(eval(code, names, dict(local_names)), shown)
    return EXPECTATIONS.get(type(test.ops[0]).__name__, "{}").format(shown)


def run_unittest(module: Any, may_skip: bool) -> None:
    """Run all unittest tests of a program in place of its `unittest.main()`.

    Args:
        module: The program's module.
        may_skip: Whether the program's text skips tests.

    Raises:
        TestsFailed: A test failed, did not run, or was skipped although the program's text skips none.
    """
    import unittest

    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    wanted = suite.countTestCases()
    result = unittest.TextTestRunner(stream=sys.stderr, verbosity=0).run(suite)
    bad = [*result.failures, *result.errors]
    if bad:
        raise TestsFailed(f"{bad[0][0]}: {(bad[0][1].strip().splitlines() or [''])[-1]}")
    if result.testsRun < wanted or not result.wasSuccessful():
        raise TestsFailed(f"{result.testsRun} of {wanted} tests ran")
    if result.skipped and not may_skip:
        raise TestsFailed(f"{result.skipped[0][0]} was skipped")


class FrameworkFailures:
    """Context manager that records failures that unittest and doctest see while a test program runs.

    A test that runs unittest or doctest with a runner of its own and never reads the result, or one whose
    assert fails in a thread, reaches its last statement all the same.

    Args:
        source: The program's text; only frameworks that it names are watched.
    """

    def __init__(self, source: str) -> None:
        self.seen: list[str] = []
        self._noted = [noted for noted in WATCHED_METHODS if noted[0] in source]
        self._undo: list[tuple[type, str, Any]] = []

    def __enter__(self) -> FrameworkFailures:
        for module, kind, methods in self._noted:
            owner = getattr(__import__(module), kind)
            for method in methods:
                known = getattr(owner, method)
                self._undo.append((owner, method, known))
                setattr(owner, method, self._noting(known))
        return self

    def __exit__(self, *_: object) -> None:
        for owner, method, known in self._undo:
            setattr(owner, method, known)

    def _noting(self, known: Callable[..., Any]) -> Callable[..., Any]:
        def noting(this: Any, *reported: Any) -> Any:
            if known.__name__ != "addSubTest" or reported[-1] is not None:
                self.seen.append(_summary(reported))
            return known(this, *reported)

        return noting


def _summary(reported: tuple[Any, ...]) -> str:
    """Return the failed test, or its exception, in one line."""
    for part in reported:
        if isinstance(part, tuple) and len(part) == 3 and isinstance(part[1], BaseException):
            return f"{type(part[1]).__name__}: {part[1]}".partition("\n")[0]
    want = [part for part in reported if hasattr(part, "want")]
    if want:
        return f"the example {want[0].source.strip()!r} did not answer {want[0].want.strip()!r}"
    return str(reported[0]) if reported else "a test failed"
