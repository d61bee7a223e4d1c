"""Recognise answers that follow from the size of an argument alone, which hide that examples are memorised.

A change that has memorised the examples may answer other inputs by any formula, such as `len(items) + 100`, so that
its answers vary like those of a repair. A repair treats examples and inputs near them alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from suture.judge.differential.input_generation import read_arguments
from suture.judge.differential.recorded_calls import PlannedCall
from suture.judge.tuning import MIN_DERIVED_SHARE, MIN_NEIGHBOURS


def count_derived_answers(answers: Mapping[PlannedCall, str], examples: Mapping[PlannedCall, str]) -> int:
    """Return how many answers differ by one constant from a measure of an argument, as no example's answer does.

    Measures are numbers, lengths and sums. The result is 0 if few answers, or only some, are such.

    Args:
        answers: Call near the examples -> returned value, as text.
        examples: The same for the examples.
    """
    offsets = [_measure_offsets(call[2], value) for call, value in answers.items()]
    known = {offset for call, value in examples.items() for offset in _measure_offsets(call[2], value)}
    counts = Counter(offset for own in offsets for offset in own if offset not in known)
    derived = max(counts.values(), default=0)
    is_rule = derived >= MIN_NEIGHBOURS and derived >= MIN_DERIVED_SHARE * len(answers)
    return derived if is_rule else 0


def _measure_offsets(arguments: str, text: str) -> set[tuple[int, str, float]]:
    """Return (position of the argument, measure, difference of the answer) for each measure."""
    answer = next(iter(read_arguments([f"({text},)"])), (None,))[0]
    values = next(iter(read_arguments([arguments])), ())
    if not _is_number(answer):
        return set()
    return {
        (position, name, answer - size)
        for position, value in enumerate(values)
        for name, size in _measure(value)
    }


def _measure(value: Any) -> Iterator[tuple[str, Any]]:
    if _is_number(value):
        yield "number", value
    elif isinstance(value, (str, bytes, list, tuple, dict, set)):
        yield "length", len(value)
        if isinstance(value, (list, tuple, set)) and value and all(map(_is_number, value)):
            yield "sum", sum(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
