"""The recorder that a rewritten test program reports its asserts, its exits and its end to.

`program_rewriting.py` rewrites the program. A *fact* is what a failure showed: strings under the keys `call`,
`expected`, `actual` and `exception`, as far as they are known.

Runs inside the sandbox, in the judge and, in nonce mode, together with the candidate.
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
from types import FrameType, TracebackType
from typing import Any

MAX_REPR_CHARS = 400
"""Chosen by judgement; not measured."""
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
"""Comparison operator -> the words for the left side that would have made it hold."""
ORDER_FUNCTIONS = {"Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge}
SIDE_EFFECT_FREE = (
    ast.Constant, ast.Name, ast.expr_context, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Subscript,
    ast.Slice, ast.UnaryOp, ast.unaryop, ast.BinOp, ast.operator,
)  # fmt: skip
"""Syntax that can be evaluated a second time without calling anything but operators."""

# The limits of a shortened `repr` are chosen by judgement; not measured.
SHORT_REPR = reprlib.Repr()
for _kind in ("list", "tuple", "dict", "set", "frozenset", "deque"):
    setattr(SHORT_REPR, f"max{_kind}", 40)
SHORT_REPR.maxstring = SHORT_REPR.maxother = SHORT_REPR.maxlong = 200
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
    """One call of the candidate.

    Attributes:
        render: Returns the call as source. It is only called for a failure, because most calls pass.
        result: The call's result; `None` until it is known.
    """

    render: Callable[[], str]
    result: Any


def shorten_repr(value: Any) -> str:
    """Return the `repr` of a value, shortened if it is long."""
    try:
        text = repr(value)
        if len(text) > MAX_REPR_CHARS:
            text = SHORT_REPR.repr(value)
    except Exception as fault:
        return f"<{type(value).__name__} whose repr raised {type(fault).__name__}>"
    return text if len(text) <= MAX_REPR_CHARS else f"{text[: MAX_REPR_CHARS - 20]} ... {text[-15:]}"


class DeliberateExit(SystemExit):
    """The test program ends itself, because its own source contains an exit."""


class TestsFailed(AssertionError):
    """The unittest tests of a program did not all pass."""


class AssertRecorder:
    """Records how a rewritten test program runs: its calls, its asserts and its end.

    Args:
        guard_number: Turns a result of `math` into what the test gets; see `choose_number_guard`.

    Attributes:
        calls: The calls of the candidate since the last assert that held.
        may_skip: Whether the program's source skips tests.
        may_fail: Whether the program's source catches failed asserts.
        may_raise: Whether the program's source catches exceptions.
        is_idle: Whether the program tests nothing.
    """

    def __init__(self, guard_number: Callable[[Any], Any] = lambda number: number) -> None:
        self.guard_number = guard_number
        # A loop may make millions of calls. The number that is kept is chosen by judgement.
        self.calls: deque[RecordedCall] = deque(maxlen=20)
        self.may_skip = self.may_fail = self.may_raise = self.is_idle = False
        self._first_failure: BaseException | type[BaseException] | None = None
        self._reached_end = False
        self._deliberate_exit: DeliberateExit | None = None

    def record_end(self) -> None:
        """Record that the last statement of the program has run."""
        self._reached_end = True

    def make_exit(self, code: Any = None) -> DeliberateExit:
        """Return the exception for an exit that the program's own source asks for."""
        self._deliberate_exit = DeliberateExit(code)
        return self._deliberate_exit

    def run_tests(self) -> None:
        """Run the program's unittest tests in place of `unittest.main()`."""
        run_unittest(sys.modules["__main__"], self.may_skip)

    def ended_well(self, fault: BaseException | None) -> bool:
        """Whether a program ran to the end of its source without a failure; nothing else counts as a pass.

        Args:
            fault: The exception that ended the program; `None` if there was none.
        """
        if self.is_idle or (self._first_failure is not None and not self.may_fail):
            return False
        if fault is None:
            return self._reached_end
        if self._deliberate_exit is None or fault is not self._deliberate_exit:
            return False
        code = self._deliberate_exit.code
        return code is None or (type(code) in (bool, int) and not code)

    def record_failure(
        self, fault: AssertionError | type[AssertionError]
    ) -> AssertionError | type[AssertionError]:
        """Record a failed assert, even if its exception is lost later in a thread or a `finally`."""
        self._first_failure = self._first_failure or fault
        return fault

    def record_candidate_exception(self, fault: BaseException) -> None:
        """Record an exception of the candidate. A test that catches nothing should end with it."""
        if not self.may_raise:
            self._first_failure = self._first_failure or fault

    def find_cause(self, fault: BaseException | None) -> BaseException | None:
        """Return the exception that explains why a program did not pass.

        That is the exception that ended the program, or the first failure if the program lost it.
        """
        failure = self._first_failure
        if fault is not None or failure is None or self.may_fail:
            return fault
        return (
            failure if isinstance(failure, BaseException) else failure()
        )  # `raise AssertionError` is a class

    @staticmethod
    def compare_ordered(op: str, left: Any, right: Any) -> Any:
        """Evaluate a comparison that an assert negates; with nan it counts as true.

        A comparison with nan is false in both directions, so its negation would always hold.
        """
        if any(_is_nan(side) for side in (left, right)):
            return True
        return ORDER_FUNCTIONS[op](left, right)

    def record_pass(self) -> None:
        """Record that an assert held; earlier calls do not explain later failures."""
        self.calls.clear()

    def make_failure(self, text: str, value: Any, expected: str, message: Any) -> FailedAssert:
        """Return the exception for a failed assert that is not a comparison.

        Args:
            text: The asserted expression as source.
            value: The value of the expression, or of the operand of its `not`.
            expected: What the value should have been, such as "a true value".
        """
        call = self._find_call(value)
        if call is not None:
            return _make_fault(message, call=call.render(), expected=expected, actual=shorten_repr(value))
        if not self.calls:
            return _make_fault(message, call=text, expected=expected, actual=shorten_repr(value))
        last_call = self.calls[-1]
        return _make_fault(
            message,
            call=last_call.render(),
            expected=f"`{text}` to hold",
            actual=shorten_repr(last_call.result),
        )

    def make_comparison_failure(
        self, text: str, op: str, left: Any, right: Any, left_text: str, right_text: str, message: Any
    ) -> FailedAssert:
        """Return the exception for a failed comparison.

        Args:
            op: The name of the operator's class in `ast`, such as `Eq`.
        """
        call = self._find_call(left)
        if call is not None:
            expected = EXPECTATIONS.get(op, f"`{text}` to hold where that is {{}}")
            return _make_fault(
                message,
                call=call.render(),
                expected=expected.format(_render_value(right, right_text)),
                actual=shorten_repr(left),
            )
        call = self._find_call(right)
        if call is not None and not (self.calls and "(" in left_text):
            expected = _render_value(left, left_text) if op == "Eq" else f"`{text}` to hold"
            return _make_fault(message, call=call.render(), expected=expected, actual=shorten_repr(right))
        if "(" not in left_text and "(" in right_text and op == "Eq":  # as `5 == len(x)`: the call goes first
            left, right, left_text, right_text = right, left, right_text, left_text
        expected = EXPECTATIONS[op].format(_render_value(right, right_text))
        actual = self._add_last_call(_render_value(left, left_text))
        return _make_fault(message, call=left_text, expected=expected, actual=actual)

    def _find_call(self, result: Any) -> RecordedCall | None:
        """Return the last call that returned this very object."""
        return next((call for call in reversed(self.calls) if call.result is result), None)

    def _add_last_call(self, actual: str) -> str:
        if not self.calls:
            return actual
        last_call = self.calls[-1]
        return f"{actual} (where {last_call.render()} answered {shorten_repr(last_call.result)})"


def _is_nan(value: Any) -> bool:
    if isinstance(value, float):
        return value != value
    decimal = sys.modules.get("decimal")  # loaded if any value is a Decimal
    return decimal is not None and isinstance(value, decimal.Decimal) and value.is_nan()


def _make_fault(message: Any, **fact: str) -> FailedAssert:
    fault = FailedAssert() if message is None else FailedAssert(message)
    fault.fact = fact
    return fault


def _render_value(value: Any, text: str) -> str:
    """Return the `repr` of a value, or its source if the `repr` would only be an address."""
    value_text = shorten_repr(value)
    return text if " object at 0x" in value_text else value_text


def explain_failure(fault: BaseException, recorder: AssertRecorder, source: str, filename: str) -> Fact:
    """Return the fact that explains the exception that ended a program."""
    if isinstance(fault, FailedAssert):
        return fault.fact
    fact = {"exception": _describe_exception(fault)}
    render_call = getattr(fault, "suture_call", None)
    if render_call is not None:
        fact["call"] = render_call()
        fact["expected"] = _find_expectation(fault.__traceback__, source, filename)
    elif recorder.calls:
        last_call = recorder.calls[-1]
        fact.update(call=last_call.render(), actual=shorten_repr(last_call.result))
    return fact


def _describe_exception(fault: BaseException) -> str:
    name = type(fault).__name__
    text = str(fault)
    return (f"{name}: {text}" if text else name)[:MAX_REPR_CHARS]


def list_program_frames(trace: TracebackType | None, filename: str) -> list[tuple[FrameType, int]]:
    """Return the pairs (frame, line) of a traceback that belong to the test program; the innermost is the last."""
    frames = []
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == filename:
            frames.append((trace.tb_frame, trace.tb_lineno))
        trace = trace.tb_next
    return frames


def _find_expectation(trace: TracebackType | None, source: str, filename: str) -> str:
    """Return what the assert around the candidate's exception expected; empty if there is none."""
    frames = list_program_frames(trace, filename)
    if not frames:
        return ""
    frame, line = frames[-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assert) and node.lineno <= line <= (node.end_lineno or node.lineno):
            return _render_expectation(node.test, frame.f_globals, frame.f_locals)
    return ""


def _render_expectation(test: ast.expr, names: dict[str, Any], local_names: Mapping[str, Any]) -> str:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return "a false value"
    if not isinstance(test, ast.Compare):
        return "a true value" if isinstance(test, ast.Call) else f"`{ast.unparse(test)}` to hold"
    if len(test.ops) != 1:
        return f"`{ast.unparse(test)}` to hold"
    # The call that raised is on one side, so the expected value is on the other one.
    expected = test.left if isinstance(test.left, ast.Constant) else test.comparators[0]
    text = ast.unparse(expected)
    if all(isinstance(part, SIDE_EFFECT_FREE) for part in ast.walk(expected)):
        code = compile(ast.Expression(expected), "<expected>", "eval")
        with contextlib.suppress(Exception):
            text = _render_value(eval(code, names, dict(local_names)), text)
    return EXPECTATIONS.get(type(test.ops[0]).__name__, "{}").format(text)


def run_unittest(module: Any, may_skip: bool) -> None:
    """Run all unittest tests of a program in place of its `unittest.main()`.

    Raises:
        TestsFailed: A test failed, did not run, or was skipped although the program's source skips none.
    """
    import unittest  # slow to import, and most programs are plain asserts

    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    test_count = suite.countTestCases()
    result = unittest.TextTestRunner(stream=sys.stderr, verbosity=0).run(suite)
    for test, traceback_text in (*result.failures, *result.errors):
        raise TestsFailed(f"{test}: {(traceback_text.strip().splitlines() or [''])[-1]}")
    if result.testsRun < test_count or not result.wasSuccessful():
        raise TestsFailed(f"{result.testsRun} of {test_count} tests ran")
    if result.skipped and not may_skip:
        raise TestsFailed(f"{result.skipped[0][0]} was skipped")


class FrameworkFailures:
    """A context manager that records the failures that unittest and doctest see while a test program runs.

    A test that runs unittest or doctest with a runner of its own and never reads the result, or one whose
    assert fails in a thread, reaches its last statement all the same.

    Args:
        source: The program's source; only frameworks that it names are watched.

    Attributes:
        seen: Each failure in one line.
        tracebacks: The tracebacks of the failures that have one.
    """

    def __init__(self, source: str) -> None:
        self.seen: list[str] = []
        self.tracebacks: list[TracebackType] = []
        self._watched = [entry for entry in WATCHED_METHODS if entry[0] in source]
        self._originals: list[tuple[type, str, Any]] = []
        """Triples (class, method name, original method)."""

    def __enter__(self) -> FrameworkFailures:
        for module, class_name, methods in self._watched:
            owner = getattr(__import__(module), class_name)
            for method in methods:
                original = getattr(owner, method)
                self._originals.append((owner, method, original))
                setattr(owner, method, self._wrap(original))
        return self

    def __exit__(self, *_: object) -> None:
        for owner, method, original in self._originals:
            setattr(owner, method, original)

    def _wrap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def record_and_call(this: Any, *arguments: Any) -> Any:
            # unittest calls addSubTest for a subtest that passed too, without an error.
            if original.__name__ != "addSubTest" or arguments[-1] is not None:
                self.seen.append(_summarise_failure(arguments))
                self.tracebacks += [
                    argument[2]
                    for argument in arguments
                    if isinstance(argument, tuple) and len(argument) == 3 and argument[2] is not None
                ]
            return original(this, *arguments)

        return record_and_call


def _summarise_failure(arguments: tuple[Any, ...]) -> str:
    """Return the exception, or the failed test, in one line."""
    for argument in arguments:
        if isinstance(argument, tuple) and len(argument) == 3 and isinstance(argument[1], BaseException):
            return f"{type(argument[1]).__name__}: {argument[1]}".partition("\n")[0]
    for argument in arguments:
        if hasattr(argument, "want"):  # an example of doctest
            return f"the example {argument.source.strip()!r} did not answer {argument.want.strip()!r}"
    return str(arguments[0]) if arguments else "a test failed"
