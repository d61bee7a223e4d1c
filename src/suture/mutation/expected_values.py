"""What a failing test says about a literal: where the actual value differs from the expected one.

If the test expects `a, b` and gets `a,b`, a text with `,` followed by a value lacks a space there, whatever it formats.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from suture.mutation.tuning import MAX_COMPARED_CHARS, MAX_DIFFERENCES, MIN_VALUE_SIMILARITY

CONTEXTS = ((3, 3, 2.5), (3, 0, 2.3), (0, 3, 2.3), (1, 1, 1.5), (1, 0, 1.0), (0, 1, 1.0), (0, 0, 0.5))
"""`(characters before, characters after, weight)` that a literal must share with the actual text. A format has other
text in place of values, so that few may be enough. Chosen by judgement; not measured."""


@dataclass(frozen=True, kw_only=True)
class ValueDifference:
    """One difference between an actual and an expected value.

    Attributes:
        actual: A part of the actual text, or the actual number.
        expected: What the test expects in its place.
        before: The actual text before the part.
        after: The actual text after it.
    """

    actual: str | float
    expected: str | float
    before: str = ""
    after: str = ""


def compare_values(expected: str, actual: str) -> tuple[ValueDifference, ...]:
    """Return the first differences of two values; none if they have little in common, or are no plain data.

    Args:
        expected: The value that a test expects, as source.
        actual: The value that it got, as source.
    """
    if max(len(expected), len(actual)) > MAX_COMPARED_CHARS:
        return ()
    try:
        pair = ast.literal_eval(expected), ast.literal_eval(actual)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return ()
    return tuple(_compare(*pair))[:MAX_DIFFERENCES]


def _compare(expected: object, actual: object) -> Iterator[ValueDifference]:
    match expected, actual:
        case str(), str():
            yield from _compare_texts(expected, actual)
        case (bool(), _) | (_, bool()):
            return
        case (int() | float(), int() | float()) if expected != actual:
            yield ValueDifference(actual=actual, expected=expected)
        case (list() | tuple(), list() | tuple()) if len(expected) == len(actual):
            for left, right in zip(expected, actual, strict=True):
                yield from _compare(left, right)
        case dict(), dict():
            for key in expected.keys() & actual.keys():
                yield from _compare(expected[key], actual[key])
        case _:
            return


def _compare_texts(expected: str, actual: str) -> Iterator[ValueDifference]:
    matcher = SequenceMatcher(None, actual, expected, autojunk=False)
    if matcher.ratio() < MIN_VALUE_SIMILARITY:
        return
    for tag, start, end, left, right in matcher.get_opcodes():
        if tag != "equal":
            before, after = actual[:start], actual[end:]
            yield ValueDifference(
                actual=actual[start:end], expected=expected[left:right], before=before, after=after
            )


def rewrite_text(
    literal: str, differences: Sequence[ValueDifference]
) -> Iterator[tuple[int, int, str, float]]:
    """Yield `(start, end, new text, weight)` for places of a literal, as written, to which a difference may go back."""
    for difference in differences:
        parts = (difference.before, difference.actual, difference.after, difference.expected)
        if not all(isinstance(part, str) for part in parts):
            continue
        before, actual, after, expected = (_escape(str(part)) for part in parts)
        for before_count, after_count, weight in CONTEXTS:
            left, right = before[len(before) - before_count :], after[:after_count]
            is_short = len(left) < min(before_count, len(before)) or not (left + actual + right)
            start = -1 if is_short else literal.find(left + actual + right)
            if start >= 0:
                start += len(left)
                yield start, start + len(actual), expected, weight


def _escape(text: str) -> str:
    """Return a text as a literal has it in all languages: with escapes for line ends and backslashes."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")


def rewrite_number(value: float, differences: Sequence[ValueDifference]) -> Iterator[tuple[float, float]]:
    """Yield `(number, weight)` for numbers that may be meant in place of one."""
    for difference in differences:
        actual, expected = difference.actual, difference.expected
        if isinstance(actual, str) or isinstance(expected, str):
            continue
        if actual == value:
            yield expected, 1.5
        yield value + expected - actual, 0.6
        if actual and not value * expected % actual:
            yield value * expected // actual, 0.5
