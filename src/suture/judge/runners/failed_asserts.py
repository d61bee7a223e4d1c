"""Reading from a failed assert which call went wrong, what it returned, and what the test expected.

The source of the assert says what was expected. Pytest's explanation and the values that the reporting plugin saw
say what the result was. For a source such as `assert not f()`, the explanation alone would be misread.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from suture.project.python_source.parsing import PARSE_FAULTS

EXPLANATION = re.compile(r"^assert ", re.MULTILINE)
"""Matches the beginning of pytest's explanation; a message of the test may precede it."""
WHERE_LINE = re.compile(r"^\s*\+\s+where (?P<value>.+) = (?P<call>.+\(.*\))$")
"""A line of pytest's explanation, such as `+ where 3 = add(1, 2)`."""
EXPECTING_NAME = re.compile(
    r"_?(?:exp|expect(?:ed|ation)?|want(?:ed)?|gold(?:en)?|desired|should_be)(?:_|$)", re.IGNORECASE
)
"""Matches the name of a variable that holds what a test expects, such as `expected` or `want_rows`."""
TRUE_VALUE, FALSE_VALUE = "a true value", "a false value"
ORDERS: Mapping[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", ">"), ast.LtE: ("<=", ">="), ast.Gt: (">", "<"), ast.GtE: (">=", "<="),
}  # fmt: skip
"""Comparison -> its sign, and the sign that says the same about the other side."""
EQUALITY_METHODS = re.compile(r"assert(?:Equals?|(?:List|Tuple|Set|Dict|Sequence|MultiLine|Count)Equal|Is)")
"""Names of unittest's methods that want two values to be equal."""
OTHER_METHODS = {
    "assertNotEqual": "anything but {}",
    "assertIsNot": "anything but {}",
    "assertAlmostEqual": "about {}",
}
"""Name of another method that compares two values -> what it expects."""


@dataclass(frozen=True, kw_only=True)
class AssertFacts:
    """What a failed assert says. Each string is empty if it is not known.

    Attributes:
        call: The call that went wrong, as source.
        expected: What was expected, as source or in words.
        actual: What the call returned, as source.
    """

    call: str = ""
    expected: str = ""
    actual: str = ""


def read_failed_assert(text: str, statement: str, compared: Sequence[str] | None) -> AssertFacts | None:
    """Return what a failed assert says; `None` if the exception comes neither from a comparison nor from pytest.

    Args:
        text: Message of the exception.
        statement: The statement of the test that failed.
        compared: The two values that were compared, as source, if they are known.
    """
    start = EXPLANATION.search(text)
    if start is not None:
        lines = text[start.end() :].splitlines() or [""]
        return _Explanation(lines, _find_condition(statement), compared).read()
    return _read_unittest_assert(statement, compared) if compared else None


def _find_condition(statement: str) -> ast.expr | None:
    """Return the condition of a statement if that is an `assert`."""
    node = _parse_statement(statement)
    return node.test if isinstance(node, ast.Assert) else None


def _parse_statement(statement: str) -> ast.stmt | None:
    try:
        body = ast.parse(statement.strip()).body
    except PARSE_FAULTS:
        return None
    return body[0] if len(body) == 1 else None


def _parse_expression(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except PARSE_FAULTS:
        return None


class _Explanation:
    """Pytest's explanation of a failed assert, without the condition's own source.

    Args:
        lines: The lines of the explanation; the first one is the condition with values in place of names.
        condition: The condition in the test; `None` if the assert is not in the test's own file.
    """

    def __init__(
        self, lines: Sequence[str], condition: ast.expr | None, compared: Sequence[str] | None
    ) -> None:
        self._summary = lines[0]
        self._values = _parse_expression(lines[0])
        self._condition = condition if condition is not None else self._values
        self._compared = compared
        where_lines = [match for line in lines[1:] if (match := WHERE_LINE.match(line))]
        self._value = where_lines[0]["value"].strip() if where_lines else ""
        # The representation of an object is not source: `<bound method Cart.total of <Cart object>>()`.
        readable = [match["call"] for match in where_lines[:1] if "<" not in match["call"]]
        self._call = readable[0] if readable else ""
        self._has_source = condition is not None

    def read(self) -> AssertFacts:
        """Return what the assert says."""
        condition = self._condition
        if isinstance(condition, ast.Compare) and len(condition.ops) == 1:
            return self._read_comparison(condition)
        if isinstance(condition, ast.UnaryOp) and isinstance(condition.op, ast.Not):
            actual = self._value or self._summary.removeprefix("not ")
            return self._answer(condition.operand, FALSE_VALUE, actual)
        if isinstance(condition, ast.Compare):
            return self._answer(condition, f"`{ast.unparse(condition)}` to hold", self._value)
        if isinstance(condition, ast.BoolOp):
            return AssertFacts(call=self._source(condition), expected=TRUE_VALUE, actual=self._summary)
        return self._answer(condition, TRUE_VALUE, self._value or self._summary)

    def _answer(self, node: ast.expr | None, expected: str, actual: str) -> AssertFacts:
        return AssertFacts(call=self._call or self._source(node), expected=expected, actual=actual)

    def _source(self, node: ast.expr | None) -> str:
        """Return the source of a part of the condition, if it is the test's own source."""
        return ast.unparse(node) if node is not None and self._has_source else ""

    def _read_comparison(self, condition: ast.Compare) -> AssertFacts:
        left, right = self._split_values(condition)
        is_reversed = self._is_reversed(condition, left, right)
        sides = (condition.left, condition.comparators[0])
        subject = sides[1] if is_reversed else sides[0]
        wanted, actual = (left, right) if is_reversed else (right, left)
        expected = _describe_expectation(condition.ops[0], wanted, is_reversed=is_reversed)
        return self._answer(subject if _contains_call(subject) else None, expected, actual or self._value)

    def _split_values(self, condition: ast.Compare) -> tuple[str, str]:
        """Return the two values as source; the source of the condition where a value is not known."""
        if self._compared and isinstance(condition.ops[0], ast.Eq):
            return self._compared[0], self._compared[1]
        values = self._values
        if isinstance(values, ast.Compare) and len(values.ops) == 1:
            return ast.unparse(values.left), ast.unparse(values.comparators[0])
        sign = ast.unparse(condition)[len(ast.unparse(condition.left)) :].split(
            ast.unparse(condition.comparators[0])
        )[0]
        parts = self._summary.split(sign)
        if len(parts) == 2:
            return parts[0], parts[1]
        return self._value, ast.unparse(condition.comparators[0])

    def _is_reversed(self, condition: ast.Compare, left: str, right: str) -> bool:
        """Whether the right side is the actual value, as in `assert 3 == add(1, 1)` and `assert 'a' in names()`."""
        left_calls, right_calls = map(_contains_call, (condition.left, condition.comparators[0]))
        if self._has_source and left_calls != right_calls:
            return right_calls
        if _holds_expectation(condition.left) != _holds_expectation(condition.comparators[0]):
            return _holds_expectation(condition.left)
        if isinstance(condition.ops[0], ast.In | ast.NotIn) and not left_calls:
            return True
        return bool(self._value) and self._value == right != left


def _describe_expectation(operator: ast.cmpop, wanted: str, *, is_reversed: bool) -> str:
    """Return what a comparison expects of one side, in words.

    Args:
        wanted: The other side.
        is_reversed: Whether the other side is left of the operator.
    """
    if isinstance(operator, ast.Eq | ast.Is):
        return wanted
    if isinstance(operator, ast.NotEq | ast.IsNot):
        return f"anything but {wanted}"
    if isinstance(operator, ast.In):
        return f"a value that contains {wanted}" if is_reversed else f"one of {wanted}"
    if isinstance(operator, ast.NotIn):
        return f"a value that does not contain {wanted}" if is_reversed else f"none of {wanted}"
    return f"a value {ORDERS[type(operator)][is_reversed]} {wanted}"


def _holds_expectation(node: ast.expr) -> bool:
    """Whether an expression is a variable that is named as what a test expects."""
    return isinstance(node, ast.Name) and EXPECTING_NAME.match(node.id) is not None


def _contains_call(node: ast.expr) -> bool:
    return any(isinstance(part, ast.Call) for part in ast.walk(node))


def _read_unittest_assert(statement: str, compared: Sequence[str]) -> AssertFacts | None:
    """Return what a failed assert method of unittest says, such as `self.assertEqual(add(1, 1), 2)`."""
    node = _parse_statement(statement)
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or len(call.args) < 2:
        return None
    method = call.func.attr
    if EQUALITY_METHODS.fullmatch(method):
        expectation = "{}"
    elif method in OTHER_METHODS:
        expectation = OTHER_METHODS[method]
    else:
        return None
    is_reversed = _contains_call(call.args[1]) and not _contains_call(call.args[0])
    if _holds_expectation(call.args[0]) and not _holds_expectation(call.args[1]):
        is_reversed = True
    subject = call.args[1] if is_reversed else call.args[0]
    wanted, actual = compared if is_reversed else reversed(compared)
    return AssertFacts(call=ast.unparse(subject), expected=expectation.format(wanted), actual=actual)
