"""What a failing test says about a literal: where the actual value differs from the expected one.

If the test expects `a, b` and gets `a,b`, a text with `,` followed by a value lacks a space there, whatever it formats.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from suture.mutation.tuning import (
    MAX_COMPARED_CHARS,
    MAX_DIFFERENCES,
    MAX_VALUE_CHARS,
    MIN_VALUE_SIMILARITY,
)

CONTEXTS = ((3, 3, 2.5), (3, 0, 2.3), (0, 3, 2.3), (1, 1, 1.5), (1, 0, 1.0), (0, 1, 1.0), (0, 0, 0.5))
"""`(characters before, characters after, weight)` that a literal must share with the actual text. A format has other
text in place of values, so that few may be enough. Chosen by judgement; not measured."""
OPENING = re.compile(r"""(\w*)(\"{3}|'{3}|["'`])""")
"""Matches the prefix and the quotes at the start of a literal."""
MAX_NUMBER = 1e100
"""Larger numbers are no constants that somebody mistook, and their products overflow."""


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
    if max(len(expected), len(actual)) > MAX_VALUE_CHARS:
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
            for key in expected:  # not `keys() & keys()`, whose order differs between processes
                if key in actual:
                    yield from _compare(expected[key], actual[key])
        case _:
            return


def _compare_texts(expected: str, actual: str) -> Iterator[ValueDifference]:
    first = _count_equal(expected, actual)
    last = _count_equal(expected[first:][::-1], actual[first:][::-1])
    left, right = expected[first : len(expected) - last], actual[first : len(actual) - last]
    if max(len(left), len(right)) > MAX_COMPARED_CHARS:
        return
    matcher = SequenceMatcher(None, right, left, autojunk=False)
    length = len(expected) + len(actual)

    def is_similar(ratio: float) -> bool:
        equal_chars = ratio * (len(left) + len(right)) + 2 * (first + last)
        return equal_chars >= MIN_VALUE_SIMILARITY * length

    if not is_similar(matcher.quick_ratio()) or not is_similar(matcher.ratio()):
        return
    for tag, start, end, new_start, new_end in matcher.get_opcodes():
        if tag != "equal":
            yield ValueDifference(
                actual=right[start:end],
                expected=left[new_start:new_end],
                before=actual[: first + start],
                after=actual[first + end :],
            )


def _count_equal(text: str, other: str) -> int:
    """Return how many characters at the start of two texts are equal."""
    pairs = enumerate(zip(text, other, strict=False))
    return next((index for index, (left, right) in pairs if left != right), min(len(text), len(other)))


def rewrite_text(
    literal: str, differences: Sequence[ValueDifference]
) -> Iterator[tuple[int, int, str, float]]:
    """Yield `(start, end, new text, weight)` for places of a literal, as written, that may have caused a difference."""
    opening = OPENING.match(literal)
    if opening is None:
        return
    prefix, quotes = opening.groups()
    for difference in differences:
        parts = (difference.before, difference.actual, difference.after)
        if not all(isinstance(part, str) for part in (*parts, difference.expected)):
            continue
        before, actual, after = (_escape(str(part), prefix, quotes) for part in parts)
        expected = _escape(str(difference.expected), prefix, quotes[0])
        for before_count, after_count, weight in CONTEXTS:
            left, right = before[len(before) - before_count :], after[:after_count]
            is_short = len(left) < min(before_count, len(before)) or not (left + actual + right)
            stop = len(literal) - len(quotes)
            start = -1 if is_short else literal.find(left + actual + right, opening.end(), stop)
            if start >= 0:
                start += len(left)
                yield start, start + len(actual), expected, weight


def _escape(text: str, prefix: str, quotes: str) -> str:
    """Return a text as a literal with this prefix and these quotes has it in all languages."""
    for special in ("\\", quotes):
        text = text.replace(special, f"\\{special}")
    if "f" in prefix.lower():
        text = text.replace("{", "{{").replace("}", "}}")
    return text.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")


def rewrite_number(value: float, differences: Sequence[ValueDifference]) -> Iterator[tuple[float, float]]:
    """Yield `(number, weight)` for numbers that may be meant in place of one."""
    for difference in differences:
        actual, expected = difference.actual, difference.expected
        if isinstance(actual, str) or isinstance(expected, str):
            continue
        if not all(abs(number) < MAX_NUMBER for number in (value, actual, expected)):
            continue
        if actual == value:
            yield expected, 1.5
        yield value + expected - actual, 0.6
        if actual and not value * expected % actual:
            yield value * expected // actual, 0.5
