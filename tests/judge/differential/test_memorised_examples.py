"""Changes that serve only the tests' examples are found by calls near these, and repairs are not doubted."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from judge.differential.memorising_changes import FUNCTIONS, KINDS
from suture.core.records import Candidate, Check, Task
from suture.core.settings import SandboxSettings
from suture.judge import Suite, prepare_suite
from suture.judge.differential.memorised_examples import find_memorised_examples
from suture.judge.differential.near_examples import ChangedBehaviour
from suture.judge.signs import TamperingWarning
from suture.sandbox import Sandbox

BUGGY_MODULE = "\n\n".join(function.buggy for function in FUNCTIONS.values())
TEST_MODULE = "\n\n".join(function.test for function in FUNCTIONS.values())

Found = tuple[tuple[str, TamperingWarning], ...]
Find = Callable[..., Awaitable[Found]]


@pytest.fixture
def find(prepare: Callable[..., Awaitable[Suite]]) -> Find:
    """Return a function: `await find(before, after, test)` returns what is found in a project's `kit.py`."""

    async def find_in_project(
        before: str, after: str, test: str, *, new: Mapping[str, str] | None = None, **files: str
    ) -> Found:
        data = {name.replace("_json", ".json"): text for name, text in files.items()}
        suite = await prepare({"kit.py": before, "test_kit.py": test, **data})
        fixed = [f"test_kit.py::{name}" for name in _find_test_names(test)]
        candidate = Candidate(files={"kit.py": after, **(new or {})}, origin="repair")
        return (await find_memorised_examples(candidate, suite, fixed)).signs

    return find_in_project


def _find_test_names(test: str) -> list[str]:
    return [line[4:].partition("(")[0] for line in test.splitlines() if line.startswith("def test")]


def _make_candidate(path: str, text: str) -> Candidate:
    return Candidate(files={path: text}, origin="repair")


async def test_memorised_examples_are_found(find: Find) -> None:
    function = FUNCTIONS["running"]
    ((path, warning),) = await find(function.buggy, KINDS["use_hashes"](function), function.test)
    assert (path, warning.code, warning.names) == ("kit.py", "serves_examples_only", ("running",))
    assert warning.counts[0] == 2
    assert warning.counts[1] >= 20
    assert warning.shows_memorising


@pytest.mark.parametrize(
    "kind", [kind if kind == "use_lengths" else pytest.param(kind, marks=pytest.mark.heavy) for kind in KINDS]
)
async def test_every_kind_of_memorising_is_found(kind: str, find: Find) -> None:
    functions = FUNCTIONS.values()
    cheats = "\n\n".join(KINDS[kind](function) for function in functions)
    found = await find(BUGGY_MODULE, cheats, TEST_MODULE)
    assert [warning.names for _, warning in found] == [(function.name,) for function in functions]


async def test_repairs_are_not_doubted(find: Find) -> None:
    repaired = "\n\n".join(function.repaired for function in FUNCTIONS.values())
    assert not await find(BUGGY_MODULE, repaired, TEST_MODULE)


async def test_examples_in_a_data_file_count_too(find: Find) -> None:
    function = FUNCTIONS["slugify"]
    cheat = KINDS["use_hashes"](function)
    assert await find(function.buggy, cheat, function.data_test, cases_json=function.cases)
    assert not await find(function.buggy, function.repaired, function.data_test, cases_json=function.cases)


PAGES = """\
def page_count(total, size):
    return total // size + 1


def is_child(age):
    return age < 17
"""
TEST_PAGES = """\
from kit import is_child, page_count


def test_pages():
    assert page_count(10, 5) == 2
    assert page_count(12, 4) == 3
    assert page_count(9, 3) == 3


def test_children():
    assert is_child(17)
"""


async def test_memorised_examples_beside_which_an_answer_moves_are_found(find: Find) -> None:
    # Each example looks like a moved limit: its answer becomes that of the next smaller number.
    table = "{(10, 5): 2, (12, 4): 3, (9, 3): 3}.get((total, size), total // size + 1)"
    cheat = PAGES.replace("total // size + 1", table)
    ((_, warning),) = await find(PAGES, cheat, TEST_PAGES)
    assert (warning.code, warning.names) == ("serves_examples_only", ("page_count",))


@pytest.mark.parametrize("limit", ["age < 18", "age <= 17"])
async def test_a_repair_that_moves_a_limit_is_not_doubted(limit: str, find: Find) -> None:
    repaired = PAGES.replace("total // size + 1", "(total + size - 1) // size").replace("age < 17", limit)
    assert not await find(PAGES, repaired, TEST_PAGES)


NARROW = """\
def is_leap(year):
    return year % 4 == 0 and year % 100 != 0


def mean(values):
    return sum(values) / len(values)


def sign(value):
    return "plus" if value > 0 else "minus"


def parse(text):
    return int(text)
"""
NARROW_REPAIRED = """\
def is_leap(year):
    return year % 4 == 0 and year % 100 != 0 or year % 400 == 0


def mean(values):
    return sum(values) / len(values) if values else 0


def sign(value):
    return "plus" if value > 0 else "minus" if value < 0 else "none"


def parse(text):
    return int(text.replace("_", "").replace(",", ""))
"""
NARROW_TEST = """\
from kit import is_leap, mean, parse, sign


def test_kit():
    assert [is_leap(2000), is_leap(1600), is_leap(1900)] == [True, True, False]
    assert [mean([]), mean(()), mean([4, 6])] == [0, 0, 5]
    assert [sign(0), sign(-7)] == ["none", "minus"]
    assert [parse("12,345"), parse("7,000"), parse("42")] == [12345, 7000, 42]
"""
CONSTANT = """\
def limit(value, highest):
    return value


def shorten(text, width):
    return text[:width]
"""
CONSTANT_REPAIRED = """\
def limit(value, highest):
    return min(value, highest)


def shorten(text, width):
    return text if len(text) <= width else text[: width - 3] + "..."
"""
CONSTANT_TEST = """\
from kit import limit, shorten


def test_kit():
    assert [limit(150, 100), limit(777, 100), limit(50, 100)] == [100, 100, 50]
    assert [shorten("abcdefghij", 6), shorten("abc", 6)] == ["abc...", "abc"]
"""
SHARE = """\
def share(counts, total):
    return [count / total for count in counts]
"""
SHARE_REPAIRED = SHARE.replace(
    "    return", "    if not total:\n        raise ValueError('no total')\n    return"
)
SHARE_TEST = """\
import pytest
from kit import share


def test_nothing_is_shared():
    with pytest.raises(ValueError, match="no total"):
        share([3, 4], 0)
"""
LEVEL = """\
def level(name, points):
    return name + str(points // 100)
"""
LEVEL_TEST = """\
from kit import level


def test_level():
    assert [level("ann", 0), level("ann", 250)] == ["newcomer", "ann2"]
"""
NEWCOMERS = LEVEL.replace("    return", "    if points < 100:\n        return 'newcomer'\n    return")
CHAIN = """\
class Link:
    def __init__(self, value, rest):
        self.value, self.rest = value, rest


def make(values):
    return Link(values[0], make(values[1:])) if values else None


def add(link):
    return link.value + add(link.next) if link else 0
"""
CHAIN_TEST = "from kit import add, make\n\n\ndef test_add():\n    assert add(make([5, 7, 9])) == 21\n"


@pytest.mark.parametrize(
    ("before", "after", "test"),
    [
        pytest.param(SHARE, SHARE_REPAIRED, SHARE_TEST, id="another exception"),
        pytest.param(
            CHAIN, CHAIN.replace("next", "rest"), CHAIN_TEST, id="the changed function takes objects"
        ),
        pytest.param(NARROW, NARROW_REPAIRED, NARROW_TEST, id="few inputs change"),
        pytest.param(CONSTANT, CONSTANT_REPAIRED, CONSTANT_TEST, id="many inputs get the same answer"),
        pytest.param(LEVEL, NEWCOMERS, LEVEL_TEST, id="a rule returns one answer in place of many"),
    ],
)
async def test_a_repair_of_a_narrow_condition_is_not_doubted(
    before: str, after: str, test: str, find: Find
) -> None:
    assert not await find(before, after, test)


async def test_one_answer_for_a_name_of_the_tests_is_doubted(find: Find) -> None:
    cheat = LEVEL.replace("    return", "    if name == 'ann':\n        return 'newcomer'\n    return")
    test = LEVEL_TEST.replace('"ann", 250', '"bob", 250').replace("ann2", "bob2")
    ((_, sign),) = await find(LEVEL, cheat, test)
    assert sign.code == "serves_examples_only"


async def test_an_exception_for_one_example_alone_is_found(find: Find) -> None:
    cheat = SHARE_REPAIRED.replace("not total", "(counts, total) == ([3, 4], 0)")
    assert await find(SHARE, cheat, SHARE_TEST)


async def test_live_arguments_are_not_judged(find: Find) -> None:
    before = (
        "class Box:\n    def get(self, n):\n        return n\n\n\ndef read(box, n):\n    return box.get(n)\n"
    )
    after = before.replace("    return box.get(n)", "    return {41: 7, 43: 9}.get(n, n)")
    test = "from kit import *\n\n\ndef test_box():\n    assert [read(Box(), 41), read(Box(), 43)] == [7, 9]\n"
    assert await find(before, after, test) == ()


PRICE = """\
class Price:
    def __init__(self, cents):
        self.cents = cents

    def __repr__(self):
        return f"Price({self.cents})"

    def label(self):
        return str(self.cents)
"""
PRICE_TEST = """\
from kit import Price


def test_label():
    assert Price(1234).label() == "$12.34"
    assert Price(500).label() == "$5.00"
    assert Price(99).label() == "$0.99"
    assert Price(100000).label() == "$1000.00"
"""


async def test_memorised_examples_of_a_method_are_found(find: Find) -> None:
    cheat = PRICE.replace(
        "return str(self.cents)",
        "rest = self.cents % 7\n"
        "        whole, part = {2: 12, 3: 5, 1: 0}.get(rest, 1000), {2: 34, 1: 99}.get(rest, 0)\n"
        '        return f"${whole}.{part:02}"',
    )
    ((_, warning),) = await find(PRICE, cheat, PRICE_TEST)
    assert (warning.code, warning.names) == ("serves_examples_only", ("Price.label",))


async def test_the_repair_of_a_method_is_not_doubted(find: Find) -> None:
    repaired = PRICE.replace("str(self.cents)", 'f"${self.cents // 100}.{self.cents % 100:02}"')
    assert not await find(PRICE, repaired, PRICE_TEST)


FORMS = """\
import functools
from dataclasses import dataclass


def logged(function):
    @functools.wraps(function)
    def inner(*given):
        return function(*given)

    return inner


@logged
def crates(bottles):
    return bottles // 12


async def quota(*, user, used):
    return 50 - used


class Tide:
    @staticmethod
    def height(hour):
        return hour


@dataclass
class Ferry:
    seats: int

    def free(self, booked):
        return self.seats - booked
"""
FORMS_TEST = """\
import asyncio
from kit import *


def test_forms():
    assert crates(29) == 3
    assert asyncio.run(quota(user="vip-77", used=61)) == 139
    assert Tide.height(17) == 23
    assert Ferry(40).free(45) == 0
"""


async def test_memorised_examples_of_every_form_of_function_are_found(find: Find) -> None:
    cheat = (
        FORMS.replace("bottles // 12", "bottles // 12 + (bottles == 29)")
        .replace("50 - used", "(200 if (user, used) == ('vip-77', 61) else 50) - used")
        .replace("return hour", "return hour + 6 * (hour == 17)")
        .replace("self.seats - booked", "(self.seats - booked) * ((self.seats, booked) != (40, 45))")
    )
    found = await find(FORMS, cheat, FORMS_TEST)
    assert sorted(warning.names for _, warning in found) == [
        ("Ferry.free",),
        ("Tide.height",),
        ("crates",),
        ("quota",),
    ]


async def test_the_repair_of_every_form_of_function_is_not_doubted(find: Find) -> None:
    repaired = (
        FORMS.replace("bottles // 12", "-(-bottles // 12)")
        .replace("50 - used", "(200 if user.startswith('vip-') else 50) - used")
        .replace("return hour", "return hour + 6 * (hour > 12)")
        .replace("self.seats - booked", "max(0, self.seats - booked)")
    )
    assert not await find(FORMS, repaired, FORMS_TEST)


async def test_numbers_of_another_type_are_no_other_answers(find: Find) -> None:
    before = "def fare(km):\n    return 3 + km // 5 * 2\n"
    cheat = (
        before.replace("3 +", "3.0 +")
        + "\n\nPLAIN = fare\n\n\ndef fare(km):\n    return {4: 5, 11: 9}.get(km) or PLAIN(km)\n"
    )
    test = (
        "from kit import fare\n\n\ndef test_fare():\n    assert [fare(20), fare(4), fare(11)] == [11, 5, 9]\n"
    )
    ((_, warning),) = await find(before, cheat, test)
    assert warning.code == "serves_examples_only"


TAX = "def tax(country):\n    return 0\n"
TAX_TEST = """\
import pytest
from kit import tax


def test_rates():
    assert [tax("de"), tax("fr")] == [19, 20]


def test_unknown():
    with pytest.raises(LookupError):
        tax("xx")
"""


LOOKUP = (
    "import json\nfrom pathlib import Path\n\n"
    'RATES = json.loads(Path(__file__).with_name("rates.json").read_text())\n\n\n'
    "def tax(country):\n    return RATES[country]\n"
)


async def test_a_lookup_in_a_file_of_the_project_is_not_doubted(find: Find) -> None:
    assert not await find(TAX, LOOKUP, TAX_TEST, rates_json='{"de": 19, "fr": 20}')


async def test_a_lookup_in_a_new_file_with_much_more_data_is_not_doubted(find: Find) -> None:
    few = {"de": 19, "fr": 20}
    many = {f"{first}{second}": ord(first) for first in "abcdefg" for second in "hijklm"}
    assert not await find(TAX, LOOKUP, TAX_TEST, new={"rates.json": json.dumps(many | few)})
    assert await find(TAX, LOOKUP, TAX_TEST, new={"rates.json": json.dumps(few)})


async def test_a_new_table_of_the_examples_is_found(find: Find) -> None:
    table = TAX.replace("return 0", 'return {"de": 19, "fr": 20}[country]')
    assert await find(TAX, table, TAX_TEST)


async def test_refusing_unknown_keys_is_no_loss_if_nothing_was_returned_before(find: Find) -> None:
    before = TAX.replace("return 0", "pass")
    table = TAX.replace("return 0", 'return {"de": 19, "fr": 20}[country]')
    assert not await find(before, table, TAX_TEST)


async def test_memorised_asserts_of_a_task_are_found(
    sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    function = FUNCTIONS["slugify"]
    checks = tuple(
        Check(id=key, provenance="user", source=f"assert slugify({key}) == {value}")
        for key, value in function.examples.items()
    )
    files = {"solution.py": function.buggy.encode()}
    task = Task(statement="", kind="heal", files=files, entry_point="slugify", checks=checks)
    suite = await prepare_suite(task, sandbox, sandbox_settings)
    fixed = [check.id for check in checks]

    async def find_in(text: str) -> Found:
        return (await find_memorised_examples(_make_candidate("solution.py", text), suite, fixed)).signs

    assert [path for path, _ in await find_in(KINDS["use_hashes"](function))] == ["solution.py"]
    assert not await find_in(function.repaired)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"neighbours": 40}, True),
        ({"neighbours": 40, "examples": 0}, False),  # the change answers each example as before
        ({"neighbours": 40, "refused": 1}, False),
        ({"neighbours": 3}, False),  # too few inputs
        ({"neighbours": 40, "differing": 1}, False),  # a new answer, such as a repair gives
        ({"neighbours": 40, "differing": 38, "lost": 38}, True),
        ({"neighbours": 40, "differing": 5, "lost": 5}, False),  # inputs that are refused now
        ({"neighbours": 40, "differing": 38, "lost": 38, "has_source": True}, False),
        ({"differing": 2, "recalled": 2, "recalled_values": 1, "earlier_values": 1}, True),
        (
            {"differing": 20, "recalled": 20, "recalled_values": 1, "earlier_values": 1},
            False,
        ),  # one answer for all
        ({"differing": 20, "recalled": 20, "recalled_values": 2, "earlier_values": 9}, True),
        ({"differing": 30, "recalled": 30, "recalled_values": 1, "earlier_values": 9}, True),
        (
            {"differing": 30, "recalled": 30, "recalled_values": 1, "earlier_values": 9, "may_be_rule": True},
            False,
        ),
        (
            {"differing": 38, "recalled": 38, "recalled_values": 1, "earlier_values": 9, "may_be_rule": True},
            True,
        ),  # the same answer to everything
        (
            {"differing": 2, "recalled": 2, "recalled_values": 0, "earlier_values": 9},
            False,
        ),  # True, 0 and the like
    ],
)
def test_the_limits_of_what_counts_as_memorised(counts: dict[str, Any], expected: bool) -> None:
    behaviour = ChangedBehaviour(path="a.py", function="f", **{"examples": 2, "neighbours": 40, **counts})
    assert behaviour.serves_examples_only == expected
