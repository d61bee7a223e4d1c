"""JSON-plus values (`suture.project.languages.calling`): their shape, equality, and how people read them.

What comes from a candidate is data before it is looked at: nothing of it runs, and nothing in it can say what
it is equal to.
"""

from __future__ import annotations

import json
import math
from typing import Any

from suture.project.languages import CallDriver, Plus

DEEPEST = 64
"""Levels of an answer: it is walked by recursion, and comes from untrusted code."""
LONGEST = 400
"""Characters of a value in a counterexample."""
PARTS = {"list": 1, "object": 1, "map": 1, "set": 1, "undefined": 0, "number": 1, "bigint": 1, "date": 1}
PARTS |= {"regexp": 1, "typed": 2, "error": 2, "results": 1, "foreign": 1}
"""How many parts stand beside a kind; with another number it is no value, whoever sent it."""
PAIRS = ("object", "map")
ITEMS = ("list", "set", "results")
WORDS = ("NaN", "Infinity", "-Infinity", "-0")


def well_formed(value: Any, depth: int = 0) -> bool:
    """Whether something is a JSON-plus value."""
    if not isinstance(value, list):
        return value is None or isinstance(value, (bool, int, float, str))
    if depth > DEEPEST or not value or not isinstance(value[0], str) or PARTS.get(value[0]) != len(value) - 1:
        return False
    tag, inner = value[0], value[-1]
    if tag in PAIRS:
        return isinstance(inner, list) and all(
            isinstance(pair, list)
            and len(pair) == 2
            and (tag == "map" or isinstance(pair[0], str))
            and all(well_formed(part, depth + 1) for part in pair)
            for pair in inner
        )
    if tag in ITEMS or tag == "typed":
        whole = isinstance(inner, list) and all(well_formed(item, depth + 1) for item in inner)
        return whole and (tag != "typed" or isinstance(value[1], str))
    if tag == "number":
        return inner in WORDS
    if tag == "date":
        return well_formed(inner, depth + 1)
    return all(isinstance(part, str) for part in value[1:])


def same(expected: Plus, got: Plus, *, typed: bool = False) -> bool:
    """Whether a value is what an example shows. No two values of different types are the same.

    Args:
        expected: As the example shows it; an error whose name or message is `None` stands for any.
        got: What came, well-formed.
        typed: See `CallDriver`.
    """
    if typed and (again := _of_results(expected, got)) is not None:
        return again
    if not isinstance(expected, list) or not isinstance(got, list):
        return _same_scalar(expected, got, typed=typed)
    if typed and (expected[0], got[0]) == ("list", "object"):
        if not expected[1]:
            return _is_zero(got)
        return same(expected, ["list", [part for _, part in got[1]]], typed=True)
    if expected[0] != got[0]:
        return typed and not expected[-1] and not got[-1] and {expected[0], got[0]} <= {"list", "map"}
    tag = expected[0]
    if tag in ("list", "results"):
        pairs = zip(expected[1], got[1], strict=False)
        return len(expected[1]) == len(got[1]) and all(same(a, b, typed=typed) for a, b in pairs)
    if tag == "object":
        return _same_fields(dict(map(tuple, expected[1])), dict(map(tuple, got[1])), typed=typed)
    if tag == "error":
        return all(wanted in (None, came) for wanted, came in zip(expected[1:], got[1:], strict=True))
    if typed and tag == "map":
        wanted, came = ({_canonical(key): part for key, part in side[1]} for side in (expected, got))
        whole = len(expected[1]) == len(got[1]) and wanted.keys() == came.keys()
        return whole and all(same(wanted[key], came[key], typed=True) for key in wanted)
    return tag != "foreign" and _canonical(expected) == _canonical(got)


def _same_scalar(expected: Plus, got: Plus, *, typed: bool) -> bool:
    if ["number", "-0"] in (expected, got):  # what is written as 0 may be either
        return expected == got or (not isinstance(expected, (list, bool)) and expected == 0)
    if typed and expected is None:
        return got is None or (isinstance(got, list) and got[0] in ("list", "map") and not got[1])
    if typed and got is None:
        return isinstance(expected, list) and expected in (["list", []], ["map", []])
    return isinstance(expected, bool) == isinstance(got, bool) and expected == got


def _of_results(expected: Plus, got: Plus) -> bool | None:
    """Where one value is shown of a function that gives an error too: either of them."""
    if not (isinstance(got, list) and got[0] == "results" and len(got[1]) == 2):
        return None
    if isinstance(expected, list) and expected[0] == "results":
        return None
    value, fault = got[1]
    if isinstance(expected, list) and expected[0] == "error":
        return same(expected, fault, typed=True)
    return fault is None and same(expected, value, typed=True)


def _same_fields(expected: dict[str, Plus], got: dict[str, Plus], *, typed: bool) -> bool:
    left_out = got.keys() - expected.keys()
    if left_out and not (typed and all(_is_zero(got[name]) for name in left_out)):
        return False
    return expected.keys() <= got.keys() and all(same(expected[k], got[k], typed=typed) for k in expected)


def _is_zero(value: Plus) -> bool:
    if isinstance(value, list) and value[0] == "object":
        return all(_is_zero(part) for _, part in value[1])
    return value in (None, 0, "", False)


def _canonical(value: Plus) -> str:
    """A text that is the same for the same values: sets and maps have no order."""
    if not isinstance(value, list):
        whole = isinstance(value, float) and value.is_integer()
        return json.dumps(int(value) if whole else value)
    tag, inner = value[0], value[-1]
    if value == ["number", "-0"]:
        return "0"
    if tag in ITEMS or tag == "typed":
        items = [_canonical(item) for item in inner]
        return f"{json.dumps(value[:-1])}[{','.join(sorted(items) if tag == 'set' else items)}]"
    if tag in PAIRS:
        return f"{tag}[{','.join(sorted(f'{_canonical(key)}:{_canonical(part)}' for key, part in inner))}]"
    return json.dumps(value)


def plain_of(value: Plus, *, typed: bool = False) -> Any:
    """A value as Python's own plain data.

    Args:
        value: As it crossed the wall.
        typed: See `CallDriver`: a map is one of what is called, so it may cross as any data with keys.

    Raises:
        ValueError: Python's plain data has no such value.
    """
    if not isinstance(value, list):
        return value
    if value[0] == "list":
        return [plain_of(item, typed=typed) for item in value[1]]
    if value[0] == "object" or (typed and value[0] == "map" and not _has_deep_keys(value)):
        return {name: plain_of(part, typed=typed) for name, part in value[1]}
    raise ValueError(f"no plain data: {value[0]}")


def _has_deep_keys(value: Plus) -> bool:
    return any(isinstance(key, list) for key, _ in value[1])


def plus_of(value: Any) -> Plus:
    """Plain data as a JSON-plus value: of numbers, texts, `None`, lists and dicts."""
    if isinstance(value, (list, tuple)):
        return ["list", [plus_of(item) for item in value]]
    if isinstance(value, dict) and not all(isinstance(name, str) for name in value):
        return ["map", [[plus_of(name), plus_of(part)] for name, part in value.items()]]
    if isinstance(value, dict):
        return ["object", [[name, plus_of(part)] for name, part in value.items()]]
    if isinstance(value, float) and not math.isfinite(value):
        return ["number", "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"]
    return value


def shown(value: Plus, driver: CallDriver) -> str:
    """A value as its language writes it, more or less; cut where it is long."""
    text = _shown(value, driver)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _shown(value: Plus, driver: CallDriver) -> str:
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
