"""JSON-plus values (`suture.project.languages.calling`): their shape, their equality, and their text form.

A candidate's answer is data before it is inspected: nothing of it runs, and it cannot say what it is equal
to.
"""

from __future__ import annotations

import json
import math
from typing import Any

from suture.judge.tuning import MAX_VALUE_CHARS, MAX_VALUE_DEPTH
from suture.project.languages import CallDriver, JsonPlus

PART_COUNTS = {
    "list": 1,
    "object": 1,
    "map": 1,
    "set": 1,
    "undefined": 0,
    "number": 1,
    "bigint": 1,
    "date": 1,
}
"""-"""
PART_COUNTS |= {"regexp": 1, "typed": 2, "error": 2, "results": 1, "foreign": 1}
"""How many parts follow each kind; a list with another number of parts is not a value."""
PAIRS = ("object", "map")
SEQUENCES = ("list", "set", "results")
SPECIAL_NUMBERS = ("NaN", "Infinity", "-Infinity", "-0")


def is_call_value(value: Any, depth: int = 0) -> bool:
    """Whether something is a JSON-plus value."""
    if not isinstance(value, list):
        return value is None or isinstance(value, (bool, int, float, str))
    if (
        depth > MAX_VALUE_DEPTH
        or not value
        or not isinstance(value[0], str)
        or PART_COUNTS.get(value[0]) != len(value) - 1
    ):
        return False
    tag, inner = value[0], value[-1]
    if tag in PAIRS:
        return isinstance(inner, list) and all(
            isinstance(pair, list)
            and len(pair) == 2
            and (tag == "map" or isinstance(pair[0], str))
            and all(is_call_value(part, depth + 1) for part in pair)
            for pair in inner
        )
    if tag in SEQUENCES or tag == "typed":
        whole = isinstance(inner, list) and all(is_call_value(item, depth + 1) for item in inner)
        return whole and (tag != "typed" or isinstance(value[1], str))
    if tag == "number":
        return inner in SPECIAL_NUMBERS
    if tag == "date":
        return is_call_value(inner, depth + 1)
    return all(isinstance(part, str) for part in value[1:])


def values_match(expected: JsonPlus, got: JsonPlus, *, typed: bool = False) -> bool:
    """Whether a value is what an example shows; values of different types never match.

    Args:
        expected: The value that the example shows; an error whose name or message is `None` stands for any.
        got: The actual value, well-formed.
        typed: See `CallDriver`.
    """
    if typed and (again := _of_results(expected, got)) is not None:
        return again
    if not isinstance(expected, list) or not isinstance(got, list):
        return _same_scalar(expected, got, typed=typed)
    if typed and (expected[0], got[0]) == ("list", "object"):
        if not expected[1]:
            return _is_zero(got)
        return values_match(expected, ["list", [part for _, part in got[1]]], typed=True)
    if expected[0] != got[0]:
        return typed and not expected[-1] and not got[-1] and {expected[0], got[0]} <= {"list", "map"}
    tag = expected[0]
    if tag in ("list", "results"):
        pairs = zip(expected[1], got[1], strict=False)
        return len(expected[1]) == len(got[1]) and all(values_match(a, b, typed=typed) for a, b in pairs)
    if tag == "object":
        return _same_fields(dict(map(tuple, expected[1])), dict(map(tuple, got[1])), typed=typed)
    if tag == "error":
        return all(wanted in (None, came) for wanted, came in zip(expected[1:], got[1:], strict=True))
    if typed and tag == "map":
        wanted, came = ({_canonical(key): part for key, part in side[1]} for side in (expected, got))
        whole = len(expected[1]) == len(got[1]) and wanted.keys() == came.keys()
        return whole and all(values_match(wanted[key], came[key], typed=True) for key in wanted)
    return tag != "foreign" and _canonical(expected) == _canonical(got)


def _same_scalar(expected: JsonPlus, got: JsonPlus, *, typed: bool) -> bool:
    if ["number", "-0"] in (expected, got):  # an example that shows 0 may mean either zero
        return expected == got or (not isinstance(expected, (list, bool)) and expected == 0)
    if typed and expected is None:
        return got is None or (isinstance(got, list) and got[0] in ("list", "map") and not got[1])
    if typed and got is None:
        return isinstance(expected, list) and expected in (["list", []], ["map", []])
    return isinstance(expected, bool) == isinstance(got, bool) and expected == got


def _of_results(expected: JsonPlus, got: JsonPlus) -> bool | None:
    """Compare one expected value with the result of a function that returns a value and an error.

    Return `None` if the values are not of this kind.
    """
    if not (isinstance(got, list) and got[0] == "results" and len(got[1]) == 2):
        return None
    if isinstance(expected, list) and expected[0] == "results":
        return None
    value, fault = got[1]
    if isinstance(expected, list) and expected[0] == "error":
        return values_match(expected, fault, typed=True)
    return fault is None and values_match(expected, value, typed=True)


def _same_fields(expected: dict[str, JsonPlus], got: dict[str, JsonPlus], *, typed: bool) -> bool:
    left_out = got.keys() - expected.keys()
    if left_out and not (typed and all(_is_zero(got[name]) for name in left_out)):
        return False
    return expected.keys() <= got.keys() and all(
        values_match(expected[k], got[k], typed=typed) for k in expected
    )


def _is_zero(value: JsonPlus) -> bool:
    if isinstance(value, list) and value[0] == "object":
        return all(_is_zero(part) for _, part in value[1])
    return value in (None, 0, "", False)


def _canonical(value: JsonPlus) -> str:
    """Return a text that is equal for equal values: sets and maps have no order."""
    if not isinstance(value, list):
        whole = isinstance(value, float) and value.is_integer()
        return json.dumps(int(value) if whole else value)
    tag, inner = value[0], value[-1]
    if value == ["number", "-0"]:
        return "0"
    if tag in SEQUENCES or tag == "typed":
        items = [_canonical(item) for item in inner]
        return f"{json.dumps(value[:-1])}[{','.join(sorted(items) if tag == 'set' else items)}]"
    if tag in PAIRS:
        return f"{tag}[{','.join(sorted(f'{_canonical(key)}:{_canonical(part)}' for key, part in inner))}]"
    return json.dumps(value)


def to_python_data(value: JsonPlus, *, typed: bool = False) -> Any:
    """Return a value as Python's own plain data.

    Args:
        value: The value as it crossed the wire.
        typed: See `CallDriver`: the called function has typed maps, so a map may cross as any data with keys.

    Raises:
        ValueError: Plain Python data has no such value.
    """
    if not isinstance(value, list):
        return value
    if value[0] == "list":
        return [to_python_data(item, typed=typed) for item in value[1]]
    if value[0] == "object" or (typed and value[0] == "map" and not _has_deep_keys(value)):
        return {name: to_python_data(part, typed=typed) for name, part in value[1]}
    raise ValueError(f"no plain data: {value[0]}")


def _has_deep_keys(value: JsonPlus) -> bool:
    return any(isinstance(key, list) for key, _ in value[1])


def to_call_value(value: Any) -> JsonPlus:
    """Return plain Python data (numbers, text, `None`, lists, dicts) as a JSON-plus value."""
    if isinstance(value, (list, tuple)):
        return ["list", [to_call_value(item) for item in value]]
    if isinstance(value, dict) and not all(isinstance(name, str) for name in value):
        return ["map", [[to_call_value(name), to_call_value(part)] for name, part in value.items()]]
    if isinstance(value, dict):
        return ["object", [[name, to_call_value(part)] for name, part in value.items()]]
    if isinstance(value, float) and not math.isfinite(value):
        return ["number", "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"]
    return value


def render_value(value: JsonPlus, driver: CallDriver) -> str:
    """Return a value roughly as its language writes it, shortened if it is long."""
    text = _shown(value, driver)
    return text if len(text) <= MAX_VALUE_CHARS else f"{text[:MAX_VALUE_CHARS]}..."


def _shown(value: JsonPlus, driver: CallDriver) -> str:
    if value is None:
        return driver.null
    if not isinstance(value, list):
        whole = isinstance(value, float) and value.is_integer() and abs(value) < 1e15
        text = json.dumps(int(value) if whole else value, ensure_ascii=False)
        return text.encode("utf-8", "replace").decode()
    tag, inner = value[0], value[-1]
    opening, closing = ("{", "}") if driver.typed else ("[", "]")
    if tag in ("list", "typed", "set"):
        kind = {"list": "", "set": "Set "}.get(tag) if tag != "typed" else f"{value[1]} "
        return f"{kind}{opening}{', '.join(_shown(item, driver) for item in inner)}{closing}"
    if tag == "results":
        return ", ".join(_shown(item, driver) for item in inner) or "nothing"
    if tag == "object":
        return "{" + ", ".join(f"{name}: {_shown(part, driver)}" for name, part in inner) + "}"
    if tag == "map":
        pairs = ", ".join(f"{_shown(key, driver)}: {_shown(part, driver)}" for key, part in inner)
        return f"Map {{{pairs}}}"
    if tag == "error":
        return f"{value[1] or 'an error'}: {inner}" if inner else str(value[1] or "an error")
    if tag == "bigint":
        return f"{inner}n"
    if tag == "date":
        return f"Date({_shown(inner, driver)})"
    return str(inner)
