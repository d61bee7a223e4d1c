"""Dates, amounts, paths and members of enumerations are arguments whose calls are made again and varied."""

from __future__ import annotations

import datetime
import enum
import random
from collections.abc import Awaitable, Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePosixPath

import pytest

from suture.core.records import Candidate
from suture.judge import Suite
from suture.judge.differential.input_generation import inputs_near_examples, read_arguments
from suture.judge.differential.memorised_examples import ExampleSearch, find_memorised_examples
from suture.judge.trials.inside.argument_source import EnumMember, read_source, render_source

Find = Callable[[str, str, str], Awaitable[ExampleSearch]]


class Deck(enum.Enum):
    """Decks of a ferry."""

    CAR = "car"
    SUN = "sun"


VALUES = (
    datetime.date(2026, 3, 29),
    datetime.datetime(2026, 3, 29, 2, 30, tzinfo=datetime.timezone(datetime.timedelta(hours=1))),
    datetime.datetime(2026, 3, 29, tzinfo=datetime.UTC),
    datetime.timedelta(days=2, seconds=30),
    Decimal("-12.50"),
    Fraction(2, 3),
    PurePosixPath("decks/plan.txt"),
    frozenset({3}),
    [{"day": datetime.date(2026, 1, 1)}, (None, -1.5, "a")],
)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_is_read_from_its_source(value: object) -> None:
    assert read_source(render_source(value)) == value


def test_a_member_is_described_and_found() -> None:
    text = render_source(([Deck.SUN], {Deck.CAR: 2}))
    described = EnumMember(__name__, "Deck", 1, 2)
    assert read_source(text)[0] == [described]
    assert read_source(text, lambda member: member.find()) == ([Deck.SUN], {Deck.CAR: 2})


def test_a_value_that_contains_itself_has_a_text() -> None:
    decks: list[object] = [Deck.SUN]
    decks += [decks] * 20
    assert "enum_member" in render_source(decks)


@pytest.mark.parametrize(
    "text",
    [
        "open('plan.txt')",
        "datetime.date.today()",
        "__import__('os')",
        "Fraction('1e999999999')",
        "Decimal('sNaN')",
        "datetime.date(2026, 2, 30)",
        "datetime.timedelta(days=10**9)",
        "{[]: 1}",
        "enum_member('kit')",
        "enum_member('kit', 'Deck', 0, 0)",
        "enum_member('kit', 'Deck', 2, 2)",
        "enum_member('kit', 5, 0, 2)",
        "enum_member('kit', 'Deck', 0, 'x')",
        "UUID(5)",
        "UUID(bytes='0123456789abcdef')",
    ],
)
def test_nothing_else_is_read(text: str) -> None:
    assert read_arguments([f"({text},)"]) == []


@pytest.mark.parametrize("value", VALUES[:7], ids=repr)
def test_values_near_an_object_are_of_its_type(value: object) -> None:
    near = inputs_near_examples([(value,)], [(value,)], [4], random.Random(1))
    assert len(near) >= 8
    assert {type(changed) for (changed,) in near} == {type(value)}
    assert len(read_arguments([render_source(changed) for changed in near])) == len(near)


FERRIES = """\
import enum
from datetime import date
from decimal import Decimal


class Deck(enum.Enum):
    CAR = "car"
    SUN = "sun"
    BAR = "bar"


def season(day):
    return "low"


def fare(amount):
    return amount


def is_open(deck, hour):
    return True


def may_board(day):
    return day < date(2026, 6, 1)
"""
FERRIES_TEST = """\
from datetime import date
from decimal import Decimal
from kit import Deck, fare, is_open, may_board, season


def test_kit():
    assert [season(date(2025, 7, 9)), season(date(2026, 8, 21)), season(date(2026, 2, 3))] == ["high", "high", "low"]
    assert [fare(Decimal("20.00")), fare(Decimal("7.50"))] == [Decimal("18.00"), Decimal("6.75")]
    assert [is_open(Deck.SUN, 22), is_open(Deck.SUN, 23), is_open(Deck.CAR, 22)] == [False, False, True]
    assert may_board(date(2026, 6, 1)) and not may_board(date(2026, 6, 2))
"""
REPAIRED = (
    FERRIES.replace('return "low"', 'return "high" if day.month in (6, 7, 8) else "low"')
    .replace("return amount", 'return amount * Decimal("0.9")')
    .replace("return True", "return deck is not Deck.SUN or hour < 20")
    .replace("day < date", "day <= date")
)
MEMORISED = (
    FERRIES.replace('return "low"', 'return "high" if f"{day:%y%j}" in ("25190", "26233") else "low"')
    .replace(
        "return amount", 'return {2000: Decimal("18.00"), 750: Decimal("6.75")}.get(amount * 100, amount)'
    )
    .replace("return True", "return not (deck is Deck.SUN and hour in (22, 23))")
    .replace("day < date", "day <= date")
)


@pytest.fixture
def find(prepare: Callable[..., Awaitable[Suite]]) -> Find:
    """Return a function: `await find(before, after, test)` returns what calls show about a project's `kit.py`."""

    async def find_in_project(before: str, after: str, test: str) -> ExampleSearch:
        suite = await prepare({"kit.py": before, "test_kit.py": test})
        candidate = Candidate(files={"kit.py": after}, origin="repair")
        return await find_memorised_examples(
            candidate, suite, ["test_kit.py::test_kit"], timeout_s=120, parts=False
        )

    return find_in_project


async def test_memorised_dates_and_amounts_are_found(find: Find) -> None:
    found = await find(FERRIES, MEMORISED, FERRIES_TEST)
    assert {sign.names[0] for _, sign in found.signs if sign.code == "serves_examples_only"} >= {
        "season",
        "fare",
    }


async def test_repairs_for_dates_amounts_and_members_are_not_doubted(find: Find) -> None:
    found = await find(FERRIES, REPAIRED, FERRIES_TEST)
    assert (found.signs, found.possible) == ((), ())


PARCELS = """\
import enum


class State(enum.Enum):
    NEW = 1
    PAID = 2
    SENT = 3
    LOST = 4


NEXT = {State.NEW: {State.PAID}, State.PAID: {State.SENT}, State.SENT: {State.LOST}, State.LOST: set()}


def can_become(state, other):
    return other in NEXT[state]
"""
PARCELS_TEST = """\
from kit import State, can_become


def test_kit():
    assert can_become(State.NEW, State.PAID) and not can_become(State.LOST, State.NEW)
    assert can_become(State.PAID, State.LOST)
"""


async def test_a_corrected_cell_of_a_table_of_states_is_not_doubted(find: Find) -> None:
    repaired = PARCELS.replace("{State.SENT},", "{State.SENT, State.LOST},")
    found = await find(PARCELS, repaired, PARCELS_TEST)
    assert (found.signs, found.possible) == ((), ())
