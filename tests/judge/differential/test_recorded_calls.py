"""Which calls of the tests can be made again, and how they are named."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Awaitable, Callable

import pytest

from suture.core.records import Candidate
from suture.judge import Suite
from suture.judge.differential.example_calls import open_versions
from suture.judge.differential.recorded_calls import count_constructor_arguments, get_function_name
from suture.judge.trials.inside.call_names import CallNames
from suture.judge.trials.inside.object_state import MAX_PARTS, fingerprint_object

MODULE = """\
import functools
from dataclasses import dataclass


def parse(text):
    return text


def fee(*stays, zone="A", **more):
    return len(stays)


async def quota(used):
    return used + 1


def logged(function):
    def inner(*given):
        return function(*given)

    return inner


@logged
def crates(bottles):
    return bottles // 12


@logged
def boxes(bottles):
    return bottles // 6


double = lambda n: 2 * n


class Price:
    def __init__(self, cents, *, sign="$"):
        self.cents, self.sign = cents, sign

    def label(self, width):
        return self.sign + str(self.cents).rjust(width)

    @property
    def euros(self):
        return self.cents // 100

    @staticmethod
    def read(text):
        return int(text)

    @classmethod
    def zero(cls, sign):
        return cls(0, sign=sign).sign

    @functools.lru_cache(maxsize=None)
    def cached(self, n):
        return n


class Child(Price):
    pass


@dataclass
class Ferry:
    seats: int

    def free(self, booked):
        return self.seats - booked


ida = Ferry(40)


def scaler(factor):
    def scale(value):
        return value * factor

    return scale
"""
CALLS = {
    "parse('a')": ("parse", "('a',)", "'a'"),
    "fee(1, 2, day='Sun')": ("fee*zone,day", "(1, 2, 'A', 'Sun')", "2"),
    "asyncio.run(quota(3))": ("quota", "(3,)", "4"),
    "crates(24)": ("crates", "(24,)", "2"),
    "boxes(24)": ("boxes", "(24,)", "4"),
    "double(4)": ("double", "(4,)", "8"),
    "Price(5, sign='E').label(3)": ("Price.label/1,sign", "(5, 'E', 3)", "'E  5'"),
    "Child(5).label(3)": ("Child.label/1,sign", "(5, '$', 3)", "'$  5'"),
    "Price(250).euros": ("Price.euros/1,sign", "(250, '$')", "2"),
    "Price(250).cached(7)": ("Price.cached/1,sign", "(250, '$', 7)", "7"),
    "Price.read('12')": ("Price.read", "('12',)", "12"),
    "Price.zero('E')": ("Price.zero", "('E',)", "'E'"),
    "Ferry(30).free(booked=4)": ("Ferry.free/1", "(30, 4)", "26"),
    "ida.free(4)": ("ida.free", "(4,)", "36"),
    "scaler(2)(7)": ("scaler", "(2,)", ""),
    "parse(object())": ("", "", ""),
}


async def test_calls_of_tests_are_made_again(prepare: Callable[..., Awaitable[Suite]]) -> None:
    lines = [f"    {call}" for call in CALLS]
    test = "\n".join(["import asyncio", "from kit import *", "", "", "def test_kit():", *lines, ""])
    suite = await prepare({"kit.py": MODULE, "test_kit.py": test})
    candidate = Candidate(files={"kit.py": f"{MODULE}\n"}, origin="repair")
    async with open_versions(candidate, suite, ["test_kit.py::test_kit"], 60) as versions:
        assert versions is not None
        examples = [call for call in versions.examples if call[2] and "object at" not in call[2]]
        answers = (await versions.after.call(examples)).answers
    made = {call[1:]: answer for call, answer in zip(examples, answers, strict=True)}
    wanted = {(name, arguments): value for name, arguments, value in CALLS.values() if name}
    assert made.keys() >= wanted.keys()
    assert {call: answer.value if answer else "" for call, answer in made.items() if call in wanted} == wanted
    assert versions.unrepeatable is not None
    assert ("kit.py", "parse") in versions.unrepeatable


async def test_code_after_a_change_is_called_where_pytest_cannot_be_configured_with_that_before(
    prepare: Callable[..., Awaitable[Suite]],
) -> None:
    test = "from kit import parse\n\ndef test_kit():\n    assert parse('a') == 'a'\n"
    code = "def parse(text):\n    return text\n"
    files = {"kit.py": code, "conftest.py": "from kit import parse\n\nparse('a')\n", "test_kit.py": test}
    suite = await prepare({**files, "kit.py": code.replace("text\n", "text + 1\n")}, "python -m pytest")
    candidate = Candidate(files={"kit.py": code}, origin="repair")

    async with open_versions(candidate, suite, ["test_kit.py::test_kit"], 60) as versions:
        assert versions is not None
        before, after = [
            (await version.call([("kit.py", "parse", "('b',)")])).answers
            for version in (versions.before, versions.after)
        ]

    assert [answer.value for answer in after if answer] == ["'b'"]
    assert before == ()


class Stay:
    """Names the calls of its methods."""

    def __init__(self, names: CallNames, nights: int) -> None:
        self.nights = nights
        names.describe(sys._getframe())

    def describe(self, names: CallNames) -> tuple[str, str]:
        return names.describe(sys._getframe())


def test_a_later_object_at_the_same_address_is_not_made_as_the_earlier_one() -> None:
    names = CallNames()
    stay = Stay(names, 3)
    assert stay.describe(names)[0] == "Stay.describe/2"
    address = id(stay)
    del stay

    later = next(other for other in [Stay.__new__(Stay) for _ in range(99)] if id(other) == address)
    assert later.describe(names) == ("Stay.describe", "")


@pytest.mark.parametrize("name", ["Price.label/2", "Price.label*width", "Price.label/1,sign*width"])
def test_a_method_is_named_without_how_its_object_is_made(name: str) -> None:
    assert get_function_name(name) == "Price.label"


@pytest.mark.parametrize(
    ("name", "count"), [("label*width", 0), ("Price.label/0", 0), ("Price.label/1,sign*width", 2)]
)
def test_the_arguments_of_a_constructor_are_counted(name: str, count: int) -> None:
    assert count_constructor_arguments(name) == count


CALLING = """\
import sys
from suture.judge.trials.inside.function_calls import call_all

texts = ("(' a',)", "(UUID(5),)", "(enum_member('no_such_module', 'Deck', 0, 1),)", "(5,)")
call_all([("textwrap.py", "dedent", text) for text in texts], 60, sys.stdout.buffer.write)
"""


def test_arguments_that_cannot_be_made_are_no_answer() -> None:
    done = subprocess.run([sys.executable, "-c", CALLING], check=True, capture_output=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()[:4]]
    assert answers[0] == "('a', (' a',))"
    assert answers[1:3] == ["!timeout", "!timeout"]
    assert answers[3].startswith("!TypeError")


def test_an_object_of_too_many_parts_has_no_fingerprint() -> None:
    parts = list(range(MAX_PARTS // 2))
    assert fingerprint_object(parts) == fingerprint_object([*parts])
    assert fingerprint_object(parts * 2) is None
