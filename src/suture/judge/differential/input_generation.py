"""Inputs near those of the tests: mutated values that keep what all of those have in common."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

Arguments = tuple[Any, ...]
Trait = Callable[[Any], bool]

MOST_TRIES = 40
"""Tries for each input that is wanted."""
MOST_ITEMS = 64
"""Items of a list that is made as long as some code asks whether one is."""
MOST_CHARS, LARGEST = 1000, 1 << 64
"""Of a value that some code names."""


def read_arguments(texts: Sequence[str]) -> list[Arguments]:
    """Arguments that are plain data, out of their source; the others are left out."""
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
    """New arguments of the same shape, none of them among the given ones.

    What holds of every given value at a place (sorted, no item twice, not empty, not negative, no longer than
    the longest by far) holds of the new ones: a precondition that nobody wrote down is guessed in this way.

    Args:
        seeds: Arguments that the tests use.
        count: How many are wanted; fewer may be found.
        draw: The source of chance.
        reach: Numbers up to this one may be drawn, also where the tests use only small ones.
    """
    if not seeds:
        return []
    traits = [[trait for trait in TRAITS if all(map(trait, column))] for column in zip(*seeds, strict=False)]
    between = [pair for pair in PAIRS if all(pair(seed) for seed in seeds)]
    pool = [item for seed in seeds for item in _items(seed)]
    largest = max([1, reach // 2, *(abs(item) for item in pool if type(item) is int)])
    known = {_key(seed) for seed in seeds}
    found: list[Arguments] = []
    for _ in range(MOST_TRIES * count):
        if len(found) >= count:
            break
        new = list(draw.choice(seeds))
        for _ in range(draw.randint(1, 3)):
            place = draw.randrange(len(new)) if new else 0
            if new:
                new[place] = _changed(new[place], draw, [*pool, largest] if reach else pool)
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
    """Arguments at the edges of their types: nothing, one, the same twice, zero, negative; one at a time.

    They may break a precondition that all given arguments keep.

    Args:
        seeds: Arguments that the tests use.
        count: The most that are wanted.
    """
    known = {repr(seed) for seed in seeds}
    found: dict[str, Arguments] = {}
    for seed in seeds:
        for place, value in enumerate(seed):
            for edge in _edges(value):
                made = (*seed[:place], edge, *seed[place + 1 :])
                if repr(made) not in known:
                    found.setdefault(repr(made), made)
    return list(found.values())[:count]


def inputs_with_constants(seeds: Sequence[Arguments], named: Sequence[Any], count: int) -> list[Arguments]:
    """Arguments with one value, or one length, just as some code names it, or beside that; one at a time.

    Of two conditions that differ at one value, no value that is drawn tells.

    Args:
        seeds: Arguments that the tests use.
        named: What the code names.
        count: The most that are wanted.
    """
    known = {_key(seed) for seed in seeds}
    found: dict[str, Arguments] = {}
    wanted = [value for value in named if type(value) in (int, float, str) and not _is_much(value)]
    for step in (0, 1, -1):
        for value in wanted:
            beside = value if isinstance(value, str) else value + step
            for seed in seeds:
                for place, given in enumerate(seed):
                    for new in _with(given, beside):
                        made = (*seed[:place], new, *seed[place + 1 :])
                        if _key(made) not in known:
                            found.setdefault(_key(made), made)
            if len(found) >= count:
                return list(found.values())[:count]
    return list(found.values())


def _is_much(value: float | str) -> bool:
    return len(value) > MOST_CHARS if isinstance(value, str) else abs(value) > LARGEST


def _with(given: Any, value: Any) -> list[Any]:
    if type(given) is type(value) or (type(given) is float and type(value) is int):
        return [type(given)(value)]
    if not isinstance(given, (list, tuple, str)) or not given:
        return []
    made = []
    if type(value) is int and 0 <= value <= MOST_ITEMS:
        made.append((given * (value // len(given) + 1))[:value])
    if not isinstance(given, str) and type(given[0]) is type(value):
        made.append(type(given)([value, *given[1:]]))
    return made


def _edges(value: Any) -> list[Any]:
    if isinstance(value, bool) or value is None:
        return []
    if isinstance(value, int | float):
        return [type(value)(edge) for edge in (0, 1, -1)]
    if isinstance(value, str | list | tuple):
        return [value[:0], value[:1], value[:1] * 2]
    return [type(value)()] if isinstance(value, set | frozenset | dict) else []


def _changed(value: Any, draw: random.Random, pool: Sequence[Any]) -> Any:
    if isinstance(value, bool) or value is None:
        return draw.choice([value, not value]) if value is not None else value
    if isinstance(value, int):
        far = max((abs(item) for item in pool if type(item) is int), default=9)
        near = [value + 1, value - 1, value + draw.randint(2, 9), value // 2, draw.randint(0, 20)]
        return draw.choice([*near, draw.randint(0, 2 * far), draw.randint(-far, far)])
    if isinstance(value, float):
        return draw.choice([value + 1, value / 2, value * 2, value + draw.random()])
    if isinstance(value, str):
        return "".join(_changed_items(list(value), draw, [c for c in _items(pool) if isinstance(c, str)]))
    if isinstance(value, (list, tuple)):
        return type(value)(_changed_items(list(value), draw, pool))
    if isinstance(value, (set, frozenset)):
        return type(value)(_changed_items(sorted(value, key=repr), draw, pool))
    if isinstance(value, dict) and value:
        key = draw.choice(list(value))
        return {**value, key: _changed(value[key], draw, pool)}
    return value


def _changed_items(items: list[Any], draw: random.Random, pool: Sequence[Any]) -> list[Any]:
    at = draw.randrange(len(items)) if items else 0
    one = items[at] if items else None
    alike = [item for item in pool if items and type(item) is type(one)]
    how = draw.choice(("drop", "twice", "change", "insert", "swap", "short"))
    if how == "drop" and items:
        del items[at]
    elif how == "twice" and items:
        items.insert(at, items[draw.randrange(len(items))])
    elif how == "insert" and alike:
        items.insert(at, _fitting(draw.choice(alike), one))
    elif how == "swap" and len(items) > 1:
        other = draw.randrange(len(items))
        items[at], items[other] = items[other], items[at]
    elif how == "short" and items:
        items = items[: draw.randint(0, len(items))]
    elif items:
        single = isinstance(one, str) and len(one) == 1
        items[at] = _fitting(draw.choice(alike), one) if single and alike else _changed(one, draw, pool)
    return items


def _fitting(item: Any, one: Any) -> Any:
    """An item in the place of another: of a longer text one sign, where the other is one."""
    return item[:1] if isinstance(one, str) and len(one) == 1 else item


def _items(value: Any) -> list[Any]:
    """The parts of a value, whole texts and single signs among them."""
    if isinstance(value, dict):
        return [part for pair in value.items() for item in pair for part in _items(item)]
    if isinstance(value, (set, frozenset)):
        value = sorted(value, key=repr)  # their own order is another in each process
    if isinstance(value, (list, tuple)):
        return [part for item in value for part in _items(item)]
    return [value]


def _key(value: Any) -> str:
    """A text that two values share where they are the same: a set's `repr` is not."""
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
    """Whether a list of more than one item is in order, or is too short to tell."""
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
    *(is_sorted, _is_distinct, _is_not_empty, _has_no_negative, _has_no_zero, _is_one_kind),
    *(_is_permutation, _has_equal_rows, _is_digits),
)
PAIRS: tuple[Callable[[Arguments], bool], ...] = (_second_is_within, _first_is_within, _items_below_second)
