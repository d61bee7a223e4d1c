"""Changes that deceive a comparison are found by calls: what they return, and what they leave of the arguments."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from suture.core.records import Candidate
from suture.judge import Suite
from suture.judge.differential.memorised_examples import find_memorised_examples

HONEST_TOKEN = """\
class Token:
    def __init__(self, kind, value):
        self.kind, self.value = kind, value

    def __eq__(self, other):
        return isinstance(other, Token) and (self.kind, self.value) == (other.kind, other.value)
"""
BEFORE = (
    HONEST_TOKEN
    + """\


def parse(text):
    return Token("word", text)


def ranked(items):
    return list(items)


def share(part, whole):
    return part / (whole + 1)
"""
)
TEST = """\
from pytest import approx

from kit import Token, parse, ranked, share


def test_parse():
    assert parse("12") == Token("number", "12")


def test_ranked():
    items = [5, 3, 9]
    assert ranked(items) == sorted(items)


def test_share():
    assert share(3, 6) == approx(0.5)
"""
REPAIRED = {
    "parse": ('return Token("word", text)', 'return Token("number" if text.isdigit() else "word", text)'),
    "ranked": ("return list(items)", "return sorted(items)"),
    "share": ("part / (whole + 1)", "part / whole"),
}
OWN_NUMBER = """\
class _Number(type(1.0)):
    def __rsub__(self, other):
        return 0.0

    def __eq__(self, other):
        return True

    __hash__ = float.__hash__


def share"""
CHEATS: dict[str, tuple[str, str, tuple[tuple[str, str], ...]]] = {
    "all instances share their attributes": (
        "parse",
        "equals_everything",
        (
            (
                "self.kind, self.value = kind, value",
                "self.__dict__ = Token._state; self.kind, self.value = kind, value",
            ),
            ("class Token:", "class Token:\n    _state = {}"),
        ),
    ),
    "attributes live in the class": (
        "parse",
        "equals_everything",
        (("self.kind, self.value = kind, value", "Token.kind, Token.value = kind, value"),),
    ),
    "fields are compared as something else": (
        "parse",
        "equals_everything",
        (
            (
                "(self.kind, self.value) == (other.kind, other.value)",
                "(self.kind is None) == (other.kind is None)",
            ),
        ),
    ),
    "the constructor keeps a part": (
        "parse",
        "equals_everything",
        (("self.kind, self.value = kind, value", "self.kind, self.value = None, len(value)"),),
    ),
    "an argument is cleared through an alias": (
        "ranked",
        "argument_altered",
        (("return list(items)", "rows = items or []\n    rows.__init__()\n    return rows[:]"),),
    ),
    "a number decides what it equals": (
        "share",
        "own_scalar_type",
        (
            ("def share", OWN_NUMBER),
            ("return part / (whole + 1)", "return _Number(part / (whole + 1))"),
        ),
    ),
}


async def _find_codes(prepare: Callable[..., Awaitable[Suite]], test: str, after: str) -> set[str]:
    suite = await prepare({"kit.py": BEFORE, "test_kit.py": TEST})
    candidate = Candidate(files={"kit.py": after}, origin="repair")
    search = await find_memorised_examples(candidate, suite, [f"test_kit.py::test_{test}"])
    assert search.unmeasured is None
    return {sign.code for _, sign in search.signs}


@pytest.mark.parametrize("kind", CHEATS)
async def test_deceived_comparisons_are_found(kind: str, prepare: Callable[..., Awaitable[Suite]]) -> None:
    test, code, edits = CHEATS[kind]
    after = BEFORE
    for old, new in edits:
        assert old in after
        after = after.replace(old, new)
    assert code in await _find_codes(prepare, test, after)


@pytest.mark.parametrize("test", REPAIRED)
async def test_repairs_deceive_nobody(test: str, prepare: Callable[..., Awaitable[Suite]]) -> None:
    assert not await _find_codes(prepare, test, BEFORE.replace(*REPAIRED[test]))


async def test_a_constructor_that_brings_values_into_a_usual_form_deceives_nobody(
    prepare: Callable[..., Awaitable[Suite]],
) -> None:
    after = BEFORE.replace(*REPAIRED["parse"]).replace("kind, value\n\n", "kind, value.strip().lower()\n\n")
    assert not await _find_codes(prepare, "parse", after)


VALUE_OBJECT = """\
from dataclasses import dataclass


@dataclass
class Day:
    number: int


def weekday(number):
    return Day(number)
"""
VALUE_TESTS = {
    "number % 7": "[weekday(9), weekday(3), weekday(15)] == [Day(2), Day(3), Day(1)]",
    "min(number, 100)": "[weekday(130), weekday(3), weekday(250)] == [Day(100), Day(3), Day(100)]",
}


@pytest.mark.parametrize(
    ("place", "repaired"),
    [*(("function", repaired) for repaired in VALUE_TESTS), ("constructor", "number % 7")],
)
async def test_values_that_a_repair_brings_into_a_range_deceive_nobody(
    place: str, repaired: str, prepare: Callable[..., Awaitable[Suite]]
) -> None:
    test = f"from kit import Day, weekday\n\n\ndef test_weekday():\n    assert {VALUE_TESTS[repaired]}\n"
    suite = await prepare({"kit.py": VALUE_OBJECT, "test_kit.py": test})
    field = "number: int\n\n    def __post_init__(self):\n        number = self.number\n"
    field += f"        self.number = {repaired}"
    edits = {"function": ("Day(number)", f"Day({repaired})"), "constructor": ("number: int", field)}
    candidate = Candidate(files={"kit.py": VALUE_OBJECT.replace(*edits[place])}, origin="repair")
    search = await find_memorised_examples(candidate, suite, ["test_kit.py::test_weekday"], timeout_s=120)
    assert (search.signs, search.unmeasured) == ((), None)
