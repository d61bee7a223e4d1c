"""A change that a mutation operator proposes for one node of a syntax tree, in any language.

An operator is a function that yields changes of a node, each with a *weight*. A weight compares a change with
the other changes of the same operator: the likeliest repair has weight 1, and a change with 0.5 is held to be
half as likely. `OPERATOR_PRIORS` compares the operators with each other. The product of both is the *prior*
of a mutant, by which the search orders its candidates.

Almost all weights in the operators are chosen by judgement and not measured. Comments give the reasons for the others.

What a failing test says about a literal: where the actual value differs from the expected one.

If the test expects `a, b` and gets `a,b`, a string with `,` before a value probably lacks a space there, whatever it
formats.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from operator import attrgetter

from suture.mutation import tuning
from suture.mutation.edits import Edit, Mutant, OperatorName, trim_edit
from suture.mutation.tuning import (
    MAX_COMPARED_CHARS,
    MAX_DIFFERENCES,
    MAX_VALUE_CHARS,
    MIN_VALUE_SIMILARITY,
)

REPEATABLE: frozenset[OperatorName] = frozenset((
    "comparison", "arithmetic_operator", "variable", "attribute", "called_name", "constant",
    "subscript_key", "wrap_in_call", "truth_test", "missing_argument", "regular_expression", "conversion",
))  # fmt: skip
"""Operators whose change is also offered at all places of one function at once, and at all of the file."""
FaultReporter = Callable[[OperatorName, int, Exception], None]
"""Takes the operator that raised an exception, the line of the node, and the exception."""
_POSITION = attrgetter("start", "end")


@dataclass(frozen=True, kw_only=True)
class Change:
    """One way to change a node of a syntax tree.

    Attributes:
        note: The change in a few words, such as `< becomes <= in a < b`.
        weight: How likely the change is a repair, relative to the operator's other changes. The likeliest
            have 1. Single changes that are far likelier than the rest have more.
    """

    edits: tuple[Edit, ...]
    note: str
    weight: float = 1.0

    def trimmed_edits(self, source: bytes) -> tuple[Edit, ...]:
        """Return the edits sorted by offset, each reduced to the part that differs (see `trim_edit`)."""
        return tuple(trim_edit(edit, source) for edit in sorted(self.edits, key=_POSITION))


def replace_span(start: int, end: int, text: str, note: str, weight: float = 1.0) -> Change:
    """Return the change that replaces the bytes between two offsets of the source."""
    return Change(edits=(Edit(start=start, end=end, text=text),), note=note, weight=weight)


def insert_text(offset: int, text: str, note: str, weight: float = 1.0) -> Change:
    """Return the change that inserts a string at a byte offset of the source."""
    return replace_span(offset, offset, text, note, weight)


def build_mutant(
    change: Change,
    edits: tuple[Edit, ...],
    operator: OperatorName,
    line: int,
    factor: float,
    *,
    in_function_body: bool,
) -> Mutant:
    """Return the mutant of a change, with the prior of its operator.

    Args:
        line: The first line that it changes, counted from 1.
        factor: Further factor on its prior.
        in_function_body: Whether all of the change is in the body of a function.
    """
    return Mutant(
        edits=edits,
        operator=operator,
        line=line,
        prior=min(1.0, tuning.PRIOR_SCALE * tuning.OPERATOR_PRIORS[operator] * change.weight * factor),
        label=f"line {line}: {change.note}",
        in_function_body=in_function_body,
    )


def repeat_change(group: list[tuple[Edit, Mutant]], *, in_one_function: bool) -> Mutant:
    """Return the mutant that makes the same change at several places: people repeat mistakes.

    Args:
        group: `(edit, mutant)` for each place: the edit there, and the mutant that makes only this edit.
    """
    likeliest = max((mutant for _, mutant in group), key=lambda mutant: mutant.prior)
    return Mutant(
        edits=tuple(sorted((edit for edit, _ in group), key=lambda edit: edit.start)),
        operator=likeliest.operator,
        line=likeliest.line,
        prior=tuning.REPEATED_FACTOR * likeliest.prior,
        label=f"{likeliest.label}, and at {len(group) - 1} more place{'s' if len(group) > 2 else ''}",
        in_function_body=in_one_function and all(mutant.in_function_body for _, mutant in group),
    )


def last_part(text: str) -> str:
    """Return the last name of a dotted path: `c` of `a.b.c`."""
    return text.rpartition(".")[2]


def shorten(text: str) -> str:
    """Return a string on one line, cut where it is too long for a note."""
    line = " ".join(text.split())
    return line if len(line) <= tuning.MAX_NOTE_CHARS else f"{line[: tuning.MAX_NOTE_CHARS]}..."


def find_similar_names(name: str, others: Iterable[str]) -> list[tuple[str, float]]:
    """Return the names most similar to one that may be misspelt, each with its similarity: 1 for nearly the same."""
    matcher, similar = SequenceMatcher(b=name.lower()), []
    # The two quick bounds are much cheaper than the ratio itself.
    ratios = (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio)
    for other in dict.fromkeys(sorted(others)):
        matcher.set_seq1(other.lower())
        if other != name and all(ratio() >= tuning.MIN_NAME_SIMILARITY for ratio in ratios):
            similar.append((matcher.ratio(), other))
    similar.sort(key=lambda pair: (-pair[0], pair[1]))
    return [(other, similarity) for similarity, other in similar[: tuning.MAX_SIMILAR_NAMES]]


CONTEXTS = ((3, 3, 2.5), (3, 0, 2.3), (0, 3, 2.3), (1, 1, 1.5), (1, 0, 1.0), (0, 1, 1.0), (0, 0, 0.5))
"""`(characters before, characters after, weight)` that a literal must share with the actual output. A format string has
placeholders where the output has values, so a few may be enough. Chosen by judgement; not measured."""
OPENING = re.compile(r"""(\w*)(\"{3}|'{3}|["'`])""")
"""Matches the prefix and the quotes at the start of a literal."""
MAX_NUMBER = 1e100
"""Larger numbers are not constants that somebody mistook, and their products overflow."""


@dataclass(frozen=True, kw_only=True)
class ValueDifference:
    """One difference between an actual and an expected value.

    Attributes:
        actual: A part of the actual string, or the actual number.
        expected: What the test expects in its place.
        before: The actual string before the part.
        after: The actual string after the part.
    """

    actual: str | float
    expected: str | float
    before: str = ""
    after: str = ""


def compare_values(expected: str, actual: str) -> tuple[ValueDifference, ...]:
    """Return the first differences of two values; none if they have little in common, or are not plain data.

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
    """Return how many characters at the start of two strings are equal."""
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
    """Return a string escaped for a literal with this prefix and these quotes, as all languages spell it."""
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
