"""Generate inputs near those of the tests: mutated values that keep what all values of the tests share."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import PurePath
from typing import Any

from suture.judge.trials.inside.argument_source import READ_FAULTS, EnumMember, read_source
from suture.judge.tuning import (
    MAX_LIST_ITEMS,
    MAX_LITERAL_CHARS,
    MAX_LITERAL_NUMBER,
    NEAR_CONSTANT_INPUTS,
    NEAR_EXAMPLE_INPUTS,
    TRIES_PER_INPUT,
)

Arguments = tuple[Any, ...]
"""The positional arguments of one call."""
DAY_STEPS = (1, 7, 30, 366, 1461)
"""Days by which a date is shifted: places in a week, a month and a year, and in the four years of leap days."""
MAX_STEPPED_SEEDS = 4
"""Examples whose dates and amounts are shifted by each step. Chosen by judgement; not measured."""
MAX_DIGITS = 12
"""Digits before and after the point of an amount that is changed: arithmetic with it stays exact and quick."""


def read_arguments(texts: Sequence[str]) -> list[Arguments]:
    """Return the arguments that `read_source` accepts, such as literals and dates; others are skipped."""
    arguments: list[Arguments] = []
    for text in texts:
        try:
            value = read_source(text)
        except READ_FAULTS:
            continue
        if isinstance(value, tuple):
            arguments.append(value)
    return arguments


def is_literal(text: str) -> bool:
    """Return whether some source is a literal, which needs no import."""
    try:
        ast.literal_eval(text)
    except READ_FAULTS:
        return False
    return True


def mutate_inputs(
    seeds: Sequence[Arguments], count: int, draw: random.Random, *, reach: int = 0
) -> list[Arguments]:
    """Return new arguments of the same shape as those of the tests.

    A property of all values that the tests pass for one parameter (sorted, distinct, not empty, not negative,
    of limited size) also holds for the new values. This guesses unwritten preconditions.

    Args:
        seeds: Arguments that the tests use.
        count: Number of results; fewer may be found.
        reach: Numbers up to this one may be used even if the tests use only small ones.
    """
    if not seeds:
        return []
    # Calls of one function may have different numbers of arguments; only those that all have are described.
    traits = [[trait for trait in TRAITS if all(map(trait, column))] for column in zip(*seeds, strict=False)]
    relations = [relation for relation in RELATIONS if all(_are_related(seed, relation) for seed in seeds)]
    pool = [item for seed in seeds for item in _items(seed)]
    # Half of `reach`, because `_mutate` draws numbers up to twice the largest one.
    largest = max([1, reach // 2, *(abs(item) for item in pool if type(item) is int)])
    known_keys = {_key(seed) for seed in seeds}
    inputs: list[Arguments] = []
    for _ in range(TRIES_PER_INPUT * count):
        if len(inputs) >= count:
            break
        values = list(draw.choice(seeds))
        for _ in range(draw.randint(1, 3)):  # how many values change is by judgement
            if values:
                index = draw.randrange(len(values))
                values[index] = _mutate(values[index], draw, [*pool, largest] if reach else pool)
        for index, required in enumerate(traits[: len(values)]):
            if is_sorted in required and isinstance(values[index], (list, tuple)):
                values[index] = _sort(values[index])
        arguments = tuple(values)
        has_traits = all(
            trait(value) for value, required in zip(arguments, traits, strict=False) for trait in required
        )
        is_small = all(abs(item) <= 2 * largest + 2 for item in _items(arguments) if type(item) is int)
        fits = has_traits and is_small and all(_are_related(arguments, relation) for relation in relations)
        if fits and _key(arguments) not in known_keys:
            known_keys.add(_key(arguments))
            inputs.append(arguments)
    return inputs


def edge_inputs(seeds: Sequence[Arguments], count: int) -> list[Arguments]:
    """Return arguments of which one is at the edge of its type: empty, one item, a pair, zero, negative.

    They may break a precondition that all arguments of the tests fulfil.
    """
    known_keys = {repr(seed) for seed in seeds}
    inputs: dict[str, Arguments] = {}
    for seed in seeds:
        for index, value in enumerate(seed):
            for edge in _edge_values(value):
                arguments = (*seed[:index], edge, *seed[index + 1 :])
                if repr(arguments) not in known_keys:
                    inputs.setdefault(repr(arguments), arguments)
    return list(inputs.values())[:count]


def inputs_with_constants(seeds: Sequence[Arguments], literals: Sequence[Any], count: int) -> list[Arguments]:
    """Return arguments of which one value or length equals a literal of the code, or is next to it.

    Random values rarely distinguish two conditions that differ at a single value.
    """
    known_keys = {_key(seed) for seed in seeds}
    inputs: dict[str, Arguments] = {}
    usable = [
        literal for literal in literals if type(literal) in (int, float, str) and not _is_too_large(literal)
    ]
    for step in (0, 1, -1):
        for literal in usable:
            target = literal if isinstance(literal, str) else literal + step
            for seed in seeds:
                for index, value in enumerate(seed):
                    for new_value in _replace_by(value, target):
                        arguments = (*seed[:index], new_value, *seed[index + 1 :])
                        if _key(arguments) not in known_keys:
                            inputs.setdefault(_key(arguments), arguments)
            if len(inputs) >= count:
                return list(inputs.values())[:count]
    return list(inputs.values())


def inputs_near_examples(
    seeds: Sequence[Arguments], known: Sequence[Arguments], literals: Sequence[Any], draw: random.Random
) -> list[Arguments]:
    """Return arguments near those of some examples, none of which is an example.

    Args:
        seeds: The examples to stay near.
        known: All examples, which show what the arguments have in common.
        literals: Literals of the code that is called.
    """
    inputs = [
        *mutate_inputs(seeds, NEAR_EXAMPLE_INPUTS // 2, draw),
        *mutate_inputs(known, NEAR_EXAMPLE_INPUTS // 2, draw),
        *_stepped_inputs(seeds[:MAX_STEPPED_SEEDS]),
        *_shifted_inputs(seeds, literals)[:NEAR_CONSTANT_INPUTS],
        *inputs_with_constants(seeds, literals, NEAR_CONSTANT_INPUTS),
        *edge_inputs(seeds, NEAR_CONSTANT_INPUTS // 2),
    ]
    known_keys = {_key(arguments) for arguments in known}
    by_key = {_key(arguments): arguments for arguments in inputs}
    return [arguments for key, arguments in by_key.items() if key not in known_keys]


def _stepped_inputs(seeds: Sequence[Arguments]) -> Iterator[Arguments]:
    """Yield arguments of which one date or amount is the one before or after it, or some days away."""
    for seed in seeds:
        for index, value in enumerate(seed):
            changed = [*get_values_beside(value)] if type(value) is not int else []
            if isinstance(value, date):
                for days in DAY_STEPS:
                    with suppress(OverflowError):
                        changed += [value + timedelta(days), value - timedelta(days)]
            yield from ((*seed[:index], new_value, *seed[index + 1 :]) for new_value in changed)


def get_values_beside(value: Any) -> tuple[Any, ...]:
    """Return the values just below and above a whole number, a date, a duration or an amount; empty for others."""
    kind = type(value)
    if kind in (date, datetime, timedelta):
        with suppress(OverflowError):
            return value - kind.resolution, value + kind.resolution
    if kind is Decimal and _is_plain(value):
        unit = Decimal(1).scaleb(value.as_tuple().exponent)
        return value - unit, value + unit
    return (value - 1, value + 1) if kind is int else ()


def _is_plain(value: Decimal) -> bool:
    """Return whether a decimal number is finite and has few digits, so that adding to it is exact."""
    exponent = value.as_tuple().exponent
    return isinstance(exponent, int) and abs(exponent) <= MAX_DIGITS and value.adjusted() <= MAX_DIGITS


def _shifted_inputs(seeds: Sequence[Arguments], literals: Sequence[Any]) -> list[Arguments]:
    """Return arguments of which one number is larger or smaller by a literal of the code, or a multiple of it.

    A year with the same place in the calendar, for instance, is a multiple of four years away.
    """
    steps = [literal for literal in literals if type(literal) is int and 1 < literal <= MAX_LITERAL_NUMBER]
    return [
        (*seed[:index], changed, *seed[index + 1 :])
        for seed in seeds
        for index, value in enumerate(seed)
        if type(value) is int
        for step in steps
        for changed in (value + step, value - step, value * step)
        if changed >= 0 or value < 0
    ]


def _is_too_large(value: float | str) -> bool:
    return len(value) > MAX_LITERAL_CHARS if isinstance(value, str) else abs(value) > MAX_LITERAL_NUMBER


def _replace_by(value: Any, target: Any) -> list[Any]:
    """Return variants of an argument that equal a target, have it as their length, or have it as first item."""
    if type(value) is type(target) or (type(value) in (float, Decimal, Fraction) and type(target) is int):
        return [type(value)(target)]
    if isinstance(value, date) and type(target) is int:
        return _replace_part(value, target)
    if not isinstance(value, (list, tuple, str)) or not value:
        return []
    variants = []
    if type(target) is int and 0 <= target <= MAX_LIST_ITEMS:
        variants.append((value * (target // len(value) + 1))[:target])
    if not isinstance(value, str) and type(value[0]) is type(target):
        variants.append(type(value)([target, *value[1:]]))
    return variants


def _replace_part(day: date, number: int) -> list[date]:
    """Return the dates that have a number as their year, month or day."""
    dates = []
    for part in ("year", "month", "day"):
        with suppress(ValueError, OverflowError):
            dates.append(day.replace(**{part: number}))
    return dates


def _edge_values(value: Any) -> list[Any]:
    if isinstance(value, bool) or value is None:
        return []
    if isinstance(value, int | float | Decimal | Fraction | timedelta):
        return [type(value)(edge) for edge in (0, 1, -1)]
    if isinstance(value, str | list | tuple):
        return [value[:0], value[:1], value[:1] * 2]
    return [type(value)()] if isinstance(value, set | frozenset | dict) else []


def _mutate(value: Any, draw: random.Random, pool: Sequence[Any]) -> Any:
    """Return a changed value of the same type. `pool` has the values of the tests, for strings and items.

    The steps and ranges of numbers are chosen by judgement; not measured.
    """
    if value is None:
        return None
    if isinstance(value, bool):
        return draw.choice([value, not value])
    if isinstance(value, int):
        largest = max((abs(item) for item in pool if type(item) is int), default=9)
        near = [value + 1, value - 1, value + draw.randint(2, 9), value // 2, draw.randint(0, 20)]
        return draw.choice([*near, draw.randint(0, 2 * largest), draw.randint(-largest, largest)])
    if isinstance(value, float):
        return draw.choice([value + 1, value / 2, value * 2, value + draw.random()])
    if isinstance(value, str):
        texts = [item for item in _items(pool) if isinstance(item, str)]
        return "".join(_mutate_items(list(value), draw, texts))
    if isinstance(value, (list, tuple)):
        return type(value)(_mutate_items(list(value), draw, pool))
    if isinstance(value, (set, frozenset)):
        return type(value)(_mutate_items(sorted(value, key=repr), draw, pool))
    if isinstance(value, dict) and value:
        key = draw.choice(list(value))
        return {**value, key: _mutate(value[key], draw, pool)}
    return _mutate_object(value, draw)


def _mutate_object(value: Any, draw: random.Random) -> Any:
    """Return a changed object of a standard type, or another member of an enumeration."""
    if isinstance(value, EnumMember):
        return EnumMember(value.module, value.name, draw.randrange(value.count), value.count)
    if isinstance(value, Fraction):
        return value + Fraction(draw.randint(-9, 9), value.denominator)
    if isinstance(value, Decimal) and _is_plain(value):
        unit = Decimal(1).scaleb(min(0, int(value.as_tuple().exponent)))
        return draw.choice([value + unit * draw.randint(-99, 99), value + draw.randint(1, 9), value * 2])
    with suppress(ValueError, OverflowError):  # a day that the month does not have, or an invalid file name
        if isinstance(value, PurePath):
            name = "".join(_mutate_items(list(value.stem), draw, value.parts))
            return value.with_name(name + value.suffix)
        if isinstance(value, date):
            changes: tuple[Callable[[], date], ...] = (
                lambda: value + timedelta(draw.randint(-40, 40)),
                lambda: value.replace(month=draw.randint(1, 12)),
                lambda: value.replace(year=value.year + draw.randint(-9, 9)),
            )
            changed = draw.choice(changes)()
            is_moment = isinstance(changed, datetime)
            return changed + timedelta(seconds=draw.randint(-86_400, 86_400)) if is_moment else changed
        if isinstance(value, timedelta):
            return draw.choice([value * 2, value / 2, value + timedelta(draw.randint(-3, 3))])
    return value


def _mutate_items(items: list[Any], draw: random.Random, pool: Sequence[Any]) -> list[Any]:
    index = draw.randrange(len(items)) if items else 0
    item: Any = items[index] if items else None
    same_type = [value for value in pool if items and type(value) is type(item)]
    is_character = isinstance(item, str) and len(item) == 1
    change = draw.choice(("drop", "twice", "change", "insert", "swap", "short"))
    if change == "drop" and items:
        del items[index]
    elif change == "twice" and items:
        items.insert(index, items[draw.randrange(len(items))])
    elif change == "insert" and same_type:
        value = draw.choice(same_type)
        items.insert(index, value[:1] if is_character else value)
    elif change == "swap" and len(items) > 1:
        other_index = draw.randrange(len(items))
        items[index], items[other_index] = items[other_index], items[index]
    elif change == "short" and items:
        items = items[: draw.randint(0, len(items))]
    elif items:
        items[index] = draw.choice(same_type)[:1] if is_character and same_type else _mutate(item, draw, pool)
    return items


def _items(value: Any) -> list[Any]:
    """Return the parts of a value, including strings and single characters."""
    if isinstance(value, dict):
        return [part for pair in value.items() for item in pair for part in _items(item)]
    if isinstance(value, (set, frozenset)):
        value = sorted(value, key=repr)  # their own order differs between processes
    if isinstance(value, (list, tuple)):
        return [part for item in value for part in _items(item)]
    return [value]


def _key(value: Any) -> str:
    """Return a string that is the same for equal values; the `repr` of a set is not."""
    if isinstance(value, (set, frozenset)):
        return f"{type(value).__name__}{sorted(map(_key, value))}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}{[_key(item) for item in value]}"
    if isinstance(value, dict):
        return f"dict{[(_key(key), _key(item)) for key, item in value.items()]}"
    return repr(value)


def _sort(value: Any) -> Any:
    try:
        return type(value)(sorted(value))
    except TypeError:
        return value


def is_sorted(value: Any) -> bool:
    """Return whether a list is sorted; a list that is too short to tell counts as sorted."""
    if not isinstance(value, (list, tuple)):
        return False
    try:
        return all(left <= right for left, right in pairwise(value))
    except TypeError:
        return False


def _is_distinct(value: Any) -> bool:
    items = value if isinstance(value, (list, tuple)) else None
    return items is not None and len({repr(item) for item in items}) == len(items)


def _is_not_empty(value: Any) -> bool:
    return hasattr(value, "__len__") and len(value) > 0


def _has_no_negative(value: Any) -> bool:
    return all(item >= 0 for item in _items(value) if isinstance(item, (int, float)))


def _has_no_zero(value: Any) -> bool:
    return all(item != 0 for item in _items(value) if isinstance(item, (int, float)))


def _has_one_type(value: Any) -> bool:
    return len({type(item) for item in _items(value)}) <= 1


def _is_permutation(value: Any) -> bool:
    if not isinstance(value, (list, tuple)) or not all(type(item) is int for item in value):
        return False
    smallest = min(value, default=0)
    return sorted(value) == list(range(smallest, smallest + len(value)))


def _has_equal_rows(value: Any) -> bool:
    has_rows = isinstance(value, (list, tuple)) and all(isinstance(row, (list, tuple)) for row in value)
    return has_rows and len({len(row) for row in value}) <= 1


def _is_digits(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(
        0 <= item <= 9 for item in _items(value) if type(item) is int
    )


TRAITS: tuple[Callable[[Any], bool], ...] = (
    is_sorted,
    _is_distinct,
    _is_not_empty,
    _has_no_negative,
    _has_no_zero,
    _has_one_type,
    _is_permutation,
    _has_equal_rows,
    _is_digits,
)
"""Properties of one value that new values keep."""
RELATIONS: tuple[Callable[[Any, Any], bool], ...] = (
    lambda first, second: 0 <= second < len(first) if hasattr(first, "__len__") else second <= first,
    lambda first, second: 0 <= first <= len(second) if hasattr(second, "__len__") else first <= second,
    lambda first, second: all(0 <= item < second for item in first),
)
"""Relations of two arguments that new arguments keep: one is an index of the other, or a limit."""


def _are_related(arguments: Arguments, relation: Callable[[Any, Any], bool]) -> bool:
    try:
        return len(arguments) == 2 and relation(*arguments)
    except TypeError:
        return False
