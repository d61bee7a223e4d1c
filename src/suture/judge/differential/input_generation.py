"""Generate inputs near those of the tests: mutated values that keep what all given values have in common."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from suture.judge.tuning import (
    MAX_LIST_ITEMS,
    MAX_LITERAL_CHARS,
    MAX_LITERAL_NUMBER,
    TRIES_PER_INPUT,
)

Arguments = tuple[Any, ...]
Trait = Callable[[Any], bool]


def read_arguments(texts: Sequence[str]) -> list[Arguments]:
    """Return the arguments that are literals, parsed from their source; others are skipped."""
    found: list[Arguments] = []
    for text in texts:
        try:
            value = ast.literal_eval(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        if isinstance(value, tuple):
            found.append(value)
    return found


def mutate_inputs(
    seeds: Sequence[Arguments], count: int, draw: random.Random, *, reach: int = 0
) -> list[Arguments]:
    """Return new arguments of the same shape as the given ones.

    A property of all given values at a place (sorted, distinct, not empty, not negative, of limited size)
    also holds for the new ones. In this way unwritten preconditions are guessed.

    Args:
        seeds: Arguments that the tests use.
        count: Number of results; fewer may be found.
        reach: Numbers up to this one may be used even if the tests use only small ones.
    """
    if not seeds:
        return []
    traits = [[trait for trait in TRAITS if all(map(trait, column))] for column in zip(*seeds, strict=False)]
    between = [pair for pair in PAIRS if all(pair(seed) for seed in seeds)]
    pool = [item for seed in seeds for item in _items(seed)]
    largest = max([1, reach // 2, *(abs(item) for item in pool if type(item) is int)])
    known = {_key(seed) for seed in seeds}
    found: list[Arguments] = []
    for _ in range(TRIES_PER_INPUT * count):
        if len(found) >= count:
            break
        new = list(draw.choice(seeds))
        for _ in range(draw.randint(1, 3)):
            place = draw.randrange(len(new)) if new else 0
            if new:
                new[place] = _mutate(new[place], draw, [*pool, largest] if reach else pool)
        for place, wanted in enumerate(traits[: len(new)]):
            if is_sorted in wanted and isinstance(new[place], (list, tuple)):
                new[place] = _in_order(new[place])
        candidate = tuple(new)
        fits = all(trait(value) for value, wanted in zip(candidate, traits, strict=False) for trait in wanted)
        small = all(abs(i) <= 2 * largest + 2 for i in _items(candidate) if type(i) is int)
        if fits and small and all(pair(candidate) for pair in between) and _key(candidate) not in known:
            known.add(_key(candidate))
            found.append(candidate)
    return found


def edge_inputs(seeds: Sequence[Arguments], count: int) -> list[Arguments]:
    """Return arguments of which one is at the edge of its type: empty, one item, a pair, zero, negative.

    They may break a precondition that all given arguments fulfil.
    """
    known = {repr(seed) for seed in seeds}
    found: dict[str, Arguments] = {}
    for seed in seeds:
        for place, value in enumerate(seed):
            for edge in _edge_values(value):
                made = (*seed[:place], edge, *seed[place + 1 :])
                if repr(made) not in known:
                    found.setdefault(repr(made), made)
    return list(found.values())[:count]


def inputs_with_constants(seeds: Sequence[Arguments], named: Sequence[Any], count: int) -> list[Arguments]:
    """Return arguments of which one value or length equals a literal of the code, or is next to it.

    Random values rarely distinguish two conditions that differ at a single value.

    Args:
        named: Literals of the code.
    """
    known = {_key(seed) for seed in seeds}
    found: dict[str, Arguments] = {}
    wanted = [value for value in named if type(value) in (int, float, str) and not _is_too_large(value)]
    for step in (0, 1, -1):
        for value in wanted:
            beside = value if isinstance(value, str) else value + step
            for seed in seeds:
                for place, given in enumerate(seed):
                    for new in _with_value(given, beside):
                        made = (*seed[:place], new, *seed[place + 1 :])
                        if _key(made) not in known:
                            found.setdefault(_key(made), made)
            if len(found) >= count:
                return list(found.values())[:count]
    return list(found.values())


def _is_too_large(value: float | str) -> bool:
    return len(value) > MAX_LITERAL_CHARS if isinstance(value, str) else abs(value) > MAX_LITERAL_NUMBER


def _with_value(given: Any, value: Any) -> list[Any]:
    if type(given) is type(value) or (type(given) is float and type(value) is int):
        return [type(given)(value)]
    if not isinstance(given, (list, tuple, str)) or not given:
        return []
    made = []
    if type(value) is int and 0 <= value <= MAX_LIST_ITEMS:
        made.append((given * (value // len(given) + 1))[:value])
    if not isinstance(given, str) and type(given[0]) is type(value):
        made.append(type(given)([value, *given[1:]]))
    return made


def _edge_values(value: Any) -> list[Any]:
    if isinstance(value, bool) or value is None:
        return []
    if isinstance(value, int | float):
        return [type(value)(edge) for edge in (0, 1, -1)]
    if isinstance(value, str | list | tuple):
        return [value[:0], value[:1], value[:1] * 2]
    return [type(value)()] if isinstance(value, set | frozenset | dict) else []


def _mutate(value: Any, draw: random.Random, pool: Sequence[Any]) -> Any:
    if isinstance(value, bool) or value is None:
        return draw.choice([value, not value]) if value is not None else value
    if isinstance(value, int):
        far = max((abs(item) for item in pool if type(item) is int), default=9)
        near = [value + 1, value - 1, value + draw.randint(2, 9), value // 2, draw.randint(0, 20)]
        return draw.choice([*near, draw.randint(0, 2 * far), draw.randint(-far, far)])
    if isinstance(value, float):
        return draw.choice([value + 1, value / 2, value * 2, value + draw.random()])
    if isinstance(value, str):
        return "".join(_mutate_items(list(value), draw, [c for c in _items(pool) if isinstance(c, str)]))
    if isinstance(value, (list, tuple)):
        return type(value)(_mutate_items(list(value), draw, pool))
    if isinstance(value, (set, frozenset)):
        return type(value)(_mutate_items(sorted(value, key=repr), draw, pool))
    if isinstance(value, dict) and value:
        key = draw.choice(list(value))
        return {**value, key: _mutate(value[key], draw, pool)}
    return value


def _mutate_items(items: list[Any], draw: random.Random, pool: Sequence[Any]) -> list[Any]:
    at = draw.randrange(len(items)) if items else 0
    one = items[at] if items else None
    alike = [item for item in pool if items and type(item) is type(one)]
    how = draw.choice(("drop", "twice", "change", "insert", "swap", "short"))
    if how == "drop" and items:
        del items[at]
    elif how == "twice" and items:
        items.insert(at, items[draw.randrange(len(items))])
    elif how == "insert" and alike:
        items.insert(at, _fit_item(draw.choice(alike), one))
    elif how == "swap" and len(items) > 1:
        other = draw.randrange(len(items))
        items[at], items[other] = items[other], items[at]
    elif how == "short" and items:
        items = items[: draw.randint(0, len(items))]
    elif items:
        single = isinstance(one, str) and len(one) == 1
        items[at] = _fit_item(draw.choice(alike), one) if single and alike else _mutate(one, draw, pool)
    return items


def _fit_item(item: Any, one: Any) -> Any:
    """Return an item to replace another: one character of a text if the other is a single character."""
    return item[:1] if isinstance(one, str) and len(one) == 1 else item


def _items(value: Any) -> list[Any]:
    """Return the parts of a value, including texts and single characters."""
    if isinstance(value, dict):
        return [part for pair in value.items() for item in pair for part in _items(item)]
    if isinstance(value, (set, frozenset)):
        value = sorted(value, key=repr)  # their own order differs between processes
    if isinstance(value, (list, tuple)):
        return [part for item in value for part in _items(item)]
    return [value]


def _key(value: Any) -> str:
    """Return a text that is the same for equal values; the `repr` of a set is not."""
    if isinstance(value, (set, frozenset)):
        return f"{type(value).__name__}{sorted(map(_key, value))}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}{[_key(item) for item in value]}"
    if isinstance(value, dict):
        return f"dict{[(_key(key), _key(item)) for key, item in value.items()]}"
    return repr(value)


def _in_order(value: Any) -> Any:
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


def _is_one_kind(value: Any) -> bool:
    return len({type(item) for item in _items(value)}) <= 1


def _is_permutation(value: Any) -> bool:
    numbers = isinstance(value, (list, tuple)) and all(type(item) is int for item in value)
    return numbers and sorted(value) == list(range(min(value, default=0), min(value, default=0) + len(value)))


def _has_equal_rows(value: Any) -> bool:
    rows = isinstance(value, (list, tuple)) and all(isinstance(row, (list, tuple)) for row in value)
    return rows and len({len(row) for row in value}) <= 1


def _is_digits(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(
        0 <= item <= 9 for item in _items(value) if type(item) is int
    )


def _second_is_within(arguments: Arguments) -> bool:
    return _compare(arguments, lambda a, b: 0 <= b < len(a) if hasattr(a, "__len__") else b <= a)


def _first_is_within(arguments: Arguments) -> bool:
    return _compare(arguments, lambda a, b: 0 <= a <= len(b) if hasattr(b, "__len__") else a <= b)


def _items_below_second(arguments: Arguments) -> bool:
    return _compare(arguments, lambda a, b: all(0 <= item < b for item in a))


def _compare(arguments: Arguments, test: Callable[[Any, Any], bool]) -> bool:
    try:
        return len(arguments) == 2 and test(*arguments)
    except TypeError:
        return False


TRAITS: tuple[Trait, ...] = (
    is_sorted,
    _is_distinct,
    _is_not_empty,
    _has_no_negative,
    _has_no_zero,
    _is_one_kind,
    _is_permutation,
    _has_equal_rows,
    _is_digits,
)
"""Properties of one value that new values keep."""
PAIRS: tuple[Callable[[Arguments], bool], ...] = (_second_is_within, _first_is_within, _items_below_second)
"""Relations of two arguments that new arguments keep."""
