"""JSON-plus values (`suture.project.languages.calling`): their shape, their equality, and their string form.

A candidate's answer arrives as data. None of its code runs here, so it cannot decide what it is equal to.

Make the calls of a verdict again in another order, to see whether a candidate answers by the order of the calls.

A function that returns prepared answers one by one, or returns what another function was given before, passes tests
that call it in the order of these answers. A function that only uses its arguments returns the same in any order.
"""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from suture.judge.tuning import MAX_VALUE_CHARS, MAX_VALUE_DEPTH
from suture.project.languages import CallDriver, JsonPlus

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIELD_COUNTS = {
    "list": 1,
    "object": 1,
    "map": 1,
    "set": 1,
    "undefined": 0,
    "number": 1,
    "bigint": 1,
    "date": 1,
    "regexp": 1,
    "typed": 2,
    "error": 2,
    "results": 1,
    "foreign": 1,
}
"""How many fields follow each tag; a list with another number of fields is not a value."""
PAIR_TAGS = ("object", "map")
SEQUENCE_TAGS = ("list", "set", "results")
SPECIAL_NUMBERS = ("NaN", "Infinity", "-Infinity", "-0")
"""Numbers that JSON has no way to write."""
MAX_WHOLE_FLOAT = 1e15
"""Whole floats below this are shown as integers; larger ones may not be exact."""


def is_call_value(value: Any, depth: int = 0) -> bool:
    """Whether something is a well-formed JSON-plus value."""
    if not isinstance(value, list):
        return value is None or isinstance(value, (bool, int, float, str))
    if depth > MAX_VALUE_DEPTH or not value or not isinstance(value[0], str):
        return False
    if FIELD_COUNTS.get(value[0]) != len(value) - 1:
        return False
    tag, content = value[0], value[-1]
    if tag in PAIR_TAGS:
        return isinstance(content, list) and all(
            isinstance(pair, list)
            and len(pair) == 2
            and (tag == "map" or isinstance(pair[0], str))
            and all(is_call_value(part, depth + 1) for part in pair)
            for pair in content
        )
    if tag in SEQUENCE_TAGS or tag == "typed":
        are_values = isinstance(content, list) and all(is_call_value(item, depth + 1) for item in content)
        return are_values and (tag != "typed" or isinstance(value[1], str))
    if tag == "number":
        return content in SPECIAL_NUMBERS
    if tag == "date":
        return is_call_value(content, depth + 1)
    return all(isinstance(field, str) for field in value[1:])


def values_match(expected: JsonPlus, actual: JsonPlus, *, statically_typed: bool = False) -> bool:
    """Whether a value is what an example shows; values of different types never match.

    Args:
        expected: The value that the example shows; an error whose name or message is `None` stands for any.
        actual: The actual value, well-formed.
        statically_typed: See `CallDriver`.
    """
    if statically_typed:
        matches_results = _match_value_and_error(expected, actual)
        if matches_results is not None:
            return matches_results
    if not isinstance(expected, list) or not isinstance(actual, list):
        return _scalars_match(expected, actual, statically_typed=statically_typed)
    if statically_typed and expected[0] == "list" and actual[0] == "object":
        if not expected[1]:  # Go's `Point{}`; otherwise its `Point{1, 2}`
            return _is_zero(actual)
        return values_match(expected, ["list", [part for _, part in actual[1]]], statically_typed=True)
    if expected[0] != actual[0]:
        both_empty = not expected[-1] and not actual[-1]
        return statically_typed and both_empty and {expected[0], actual[0]} <= {"list", "map"}
    tag = expected[0]
    if tag in ("list", "results"):
        return len(expected[1]) == len(actual[1]) and all(
            values_match(expected_item, actual_item, statically_typed=statically_typed)
            for expected_item, actual_item in zip(expected[1], actual[1], strict=True)
        )
    if tag == "object":
        return _fields_match(
            dict(map(tuple, expected[1])), dict(map(tuple, actual[1])), statically_typed=statically_typed
        )
    if tag == "error":
        return all(
            expected_field in (None, actual_field)
            for expected_field, actual_field in zip(expected[1:], actual[1:], strict=True)
        )
    if statically_typed and tag == "map":
        expected_parts = {_make_key(key): part for key, part in expected[1]}
        actual_parts = {_make_key(key): part for key, part in actual[1]}
        if len(expected[1]) != len(actual[1]) or expected_parts.keys() != actual_parts.keys():
            return False
        return all(
            values_match(part, actual_parts[key], statically_typed=True)
            for key, part in expected_parts.items()
        )
    return tag != "foreign" and _make_key(expected) == _make_key(actual)


def _scalars_match(expected: JsonPlus, actual: JsonPlus, *, statically_typed: bool) -> bool:
    if ["number", "-0"] in (expected, actual):  # an example that shows 0 may mean either zero
        return expected == actual or (not isinstance(expected, (list, bool)) and expected == 0)
    if statically_typed and expected is None:
        return actual is None or (isinstance(actual, list) and actual[0] in ("list", "map") and not actual[1])
    if statically_typed and actual is None:
        return isinstance(expected, list) and expected in (["list", []], ["map", []])
    return isinstance(expected, bool) == isinstance(actual, bool) and expected == actual


def _match_value_and_error(expected: JsonPlus, actual: JsonPlus) -> bool | None:
    """Whether the result of a function that returns a value and an error is the one that an example shows.

    An example shows only one of the two: the value if there is no error, and otherwise the error.
    """
    if not (isinstance(actual, list) and actual[0] == "results" and len(actual[1]) == 2):
        return None
    if isinstance(expected, list) and expected[0] == "results":
        return None
    value, fault = actual[1]
    if isinstance(expected, list) and expected[0] == "error":
        return values_match(expected, fault, statically_typed=True)
    return fault is None and values_match(expected, value, statically_typed=True)


def _fields_match(
    expected: dict[str, JsonPlus], actual: dict[str, JsonPlus], *, statically_typed: bool
) -> bool:
    omitted = actual.keys() - expected.keys()
    if omitted and not (statically_typed and all(_is_zero(actual[name]) for name in omitted)):
        return False
    return expected.keys() <= actual.keys() and all(
        values_match(part, actual[name], statically_typed=statically_typed) for name, part in expected.items()
    )


def _is_zero(value: JsonPlus) -> bool:
    """Whether a value is the zero value of its static type, as a field that a literal omits."""
    if isinstance(value, list) and value[0] == "object":
        return all(_is_zero(part) for _, part in value[1])
    return value in (None, 0, "", False)


def _make_key(value: JsonPlus) -> str:
    """Return a string that is equal for equal values: sets and maps have no order."""
    if not isinstance(value, list):
        is_whole = isinstance(value, float) and value.is_integer()
        return json.dumps(int(value) if is_whole else value)
    tag, content = value[0], value[-1]
    if value == ["number", "-0"]:
        return "0"
    if tag in SEQUENCE_TAGS or tag == "typed":
        keys = [_make_key(item) for item in content]
        return f"{json.dumps(value[:-1])}[{','.join(sorted(keys) if tag == 'set' else keys)}]"
    if tag in PAIR_TAGS:
        pairs = sorted(f"{_make_key(key)}:{_make_key(part)}" for key, part in content)
        return f"{tag}[{','.join(pairs)}]"
    return json.dumps(value)


def to_python_data(value: JsonPlus, *, statically_typed: bool = False) -> Any:
    """Return a JSON-plus value as plain Python data.

    Args:
        statically_typed: See `CallDriver`. The called function says which type its argument has, so a map
            with simple keys can be passed as a dict.

    Raises:
        ValueError: Plain Python data has no such value.
    """
    if not isinstance(value, list):
        return value
    if value[0] == "list":
        return [to_python_data(item, statically_typed=statically_typed) for item in value[1]]
    is_simple_map = value[0] == "map" and not any(isinstance(key, list) for key, _ in value[1])
    if value[0] == "object" or (statically_typed and is_simple_map):
        return {key: to_python_data(part, statically_typed=statically_typed) for key, part in value[1]}
    if value[0] == "date" and type(value[1]) is int:
        with suppress(OverflowError):
            return EPOCH + timedelta(milliseconds=value[1])
    raise ValueError(f"no plain data: {value[0]}")


def to_call_value(value: Any) -> JsonPlus:
    """Return plain Python data (numbers, strings, `None`, lists, dicts, times with a zone) as a JSON-plus value."""
    if isinstance(value, (list, tuple)):
        return ["list", [to_call_value(item) for item in value]]
    if isinstance(value, dict) and not all(isinstance(name, str) for name in value):
        return ["map", [[to_call_value(name), to_call_value(part)] for name, part in value.items()]]
    if isinstance(value, dict):
        return ["object", [[name, to_call_value(part)] for name, part in value.items()]]
    if isinstance(value, float) and not math.isfinite(value):
        return ["number", "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"]
    if isinstance(value, datetime):
        return ["date", (value - EPOCH) // timedelta(milliseconds=1)]
    return value


def render_value(value: JsonPlus, driver: CallDriver) -> str:
    """Return a value roughly as its language writes it, shortened if it is long."""
    text = _render(value, driver)
    return text if len(text) <= MAX_VALUE_CHARS else f"{text[:MAX_VALUE_CHARS]}..."


def _render(value: JsonPlus, driver: CallDriver) -> str:
    if value is None:
        return driver.null
    if not isinstance(value, list):
        is_whole = isinstance(value, float) and value.is_integer() and abs(value) < MAX_WHOLE_FLOAT
        text = json.dumps(int(value) if is_whole else value, ensure_ascii=False)
        return text.encode("utf-8", "replace").decode()
    tag, content = value[0], value[-1]
    opening, closing = ("{", "}") if driver.statically_typed else ("[", "]")
    if tag in ("list", "typed", "set"):
        prefix = {"list": "", "set": "Set "}.get(tag) if tag != "typed" else f"{value[1]} "
        return f"{prefix}{opening}{', '.join(_render(item, driver) for item in content)}{closing}"
    if tag == "results":
        return ", ".join(_render(item, driver) for item in content) or "nothing"
    if tag == "object":
        return "{" + ", ".join(f"{name}: {_render(part, driver)}" for name, part in content) + "}"
    if tag == "map":
        pairs = ", ".join(f"{_render(key, driver)}: {_render(part, driver)}" for key, part in content)
        return f"Map {{{pairs}}}"
    if tag == "error":
        name = value[1] or "an error"
        return f"{name}: {content}" if content else str(name)
    if tag == "bigint":
        return f"{content}n"
    if tag == "date":
        return f"Date({_render(content, driver)})"
    return str(content)


MAX_REPEATED_CALLS = 100
"""Calls of a verdict that are made again. Chosen by judgement; not measured."""
FOREIGN_TAGS = ("h", "it", "o")
"""Tags of values that are not data, but stand for an object of the candidate's process (see wire.py)."""

Ask = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
Exchange = tuple[dict[str, Any], dict[str, Any]]
"""A request to the candidate, and its reply."""


class RecordedCalls:
    """The calls that one process of a candidate answered, each with the items that were read of its result."""

    def __init__(self) -> None:
        self._calls: list[list[Exchange]] = []
        self._owners: dict[int, list[Exchange]] = {}
        """Handle of an iterator -> the call whose result it is."""

    def __len__(self) -> int:
        return len(self._calls)

    def record(self, request: dict[str, Any], reply: dict[str, Any]) -> None:
        """Add a request that was answered. A call with an object of the candidate cannot be made again alone."""
        exchanges = self._owners.get(request.get("handle", -1))
        is_call = request["op"] == "call" and not _has_foreign([request["value"], request["nodes"]])
        if is_call and len(self._calls) < MAX_REPEATED_CALLS:
            exchanges = []
            self._calls.append(exchanges)
        if exchanges is not None:
            exchanges.append((request, reply))
            for handle in _find_handles(reply):
                self._owners[handle] = exchanges

    async def find_order_dependence(self, restart: Callable[[], Awaitable[Ask | None]]) -> bool:
        """Return whether the calls have other answers in the reverse order, and the same ones in the same order.

        Whatever differs for another reason, such as a random number, says nothing.

        Args:
            restart: Starts a fresh process of the candidate, and returns how to ask it; `None` if that fails.
        """
        if len(self._calls) < 2:
            return False
        recorded = [[_normalise(reply) for _, reply in exchanges] for exchanges in self._calls]
        backwards = await _repeat(self._calls[::-1], restart)
        if backwards is None or backwards[::-1] == recorded:
            return False
        return await _repeat(self._calls, restart) == recorded and (
            await _repeat(self._calls[::-1], restart) == backwards
        )


async def _repeat(
    calls: Sequence[Sequence[Exchange]], restart: Callable[[], Awaitable[Ask | None]]
) -> list[list[str]] | None:
    """Return the replies of a fresh process to some calls; `None` if they are not known."""
    ask = await restart()
    if ask is None:
        return None
    replies: list[list[str]] = []
    for exchanges in calls:
        handles: dict[int, int] = {}
        replies.append([])
        for request, recorded in exchanges:
            handle = request.get("handle")
            if handle is not None and handle not in handles:
                break
            reply = await ask(request if handle is None else {**request, "handle": handles[handle]})
            replies[-1].append(_normalise(reply))
            handles.update(zip(_find_handles(recorded), _find_handles(reply), strict=False))
    return replies


def _find_handles(reply: dict[str, Any]) -> list[int]:
    return [value[1] for value in _iter_foreign(reply.get("value"))]


def _has_foreign(value: Any) -> bool:
    return any(True for _ in _iter_foreign(value))


def _iter_foreign(value: Any) -> Iterator[list[Any]]:
    """Yield the parts of an encoded value that stand for an object of the candidate's process."""
    if isinstance(value, list):
        if value[:1] and value[0] in FOREIGN_TAGS and len(value) > 1 and type(value[1]) is int:
            yield value
        for part in value:
            yield from _iter_foreign(part)


def _normalise(reply: dict[str, Any]) -> str:
    """Return a reply as a string that does not depend on the numbers of objects."""
    copied = json.loads(json.dumps(reply))
    for value in _iter_foreign([copied.get("value"), copied.get("nodes")]):
        value[1] = 0
    return json.dumps(copied)
