"""What a failed assert says is true: the call, what it gave, and what the test expected."""

from __future__ import annotations

from pathlib import Path

import pytest

from prepared_suites import prepare_python_suite
from suture.core.records import Candidate, CodeFrame, Counterexample
from suture.core.text_excerpts import shorten_pair
from suture.judge import check_candidate
from suture.judge.failures import parse_collection_error
from suture.judge.runners.failed_asserts import AssertFacts, read_failed_assert
from suture.judge.runners.report_plugin.plain_values import render_pair, render_value
from suture.sandbox import Sandbox

WHERE = "\n +  where "


@pytest.mark.parametrize(
    ("statement", "text", "call", "actual", "expected"),
    [
        ("assert ok()", f"assert False{WHERE}False = ok()", "ok()", "False", "a true value"),
        ("assert not ok()", f"assert not True{WHERE}True = ok()", "ok()", "True", "a false value"),
        ("assert ok() is False", f"assert None is False{WHERE}None = ok()", "ok()", "None", "False"),
        ("assert get() is not 3", f"assert 3 is not 3{WHERE}3 = get()", "get()", "3", "anything but 3"),
        ("assert get() != 3", f"assert 3 != 3{WHERE}3 = get()", "get()", "3", "anything but 3"),
        ("assert 3 == get()", f"assert 3 == 4{WHERE}4 = get()", "get()", "4", "3"),
        ("assert 4 == get(want)", f"assert 4 == 4.5{WHERE}4.5 = get(4)", "get(4)", "4.5", "4"),
        ("assert 'a' in get()", f"assert 'a' in 'bc'{WHERE}'bc' = get()", "get()", "'bc'", "a value that contains 'a'"),
        ("assert get() in (1, 2)", f"assert 5 in (1, 2){WHERE}5 = get()", "get()", "5", "one of (1, 2)"),
        ("assert 'a' not in text", "assert 'a' not in 'abc'", "", "'abc'", "a value that does not contain 'a'"),
        ("assert get() < 3", f"assert 5 < 3{WHERE}5 = get()", "get()", "5", "a value < 3"),
        ("assert 3 < get()", f"assert 3 < 2{WHERE}2 = get()", "get()", "2", "a value > 3"),
        ("assert 1 < get() < 3", f"assert 5 < 3{WHERE}5 = get()", "get()", "5", "`1 < get() < 3` to hold"),
        (
            "assert a() and b()",
            f"assert (True and False){WHERE}True = a()\n +  and   False = b()",
            "a() and b()",
            "(True and False)",
            "a true value",
        ),
        (
            "assert cart.total() == 3",
            f"assert 2 == 3{WHERE}2 = total(){WHERE}total = <Cart object at 0x7f>.total",
            "total()",
            "2",
            "3",
        ),
        (
            "assert cart.total() == 3",
            f"assert 2 == 3{WHERE}2 = <bound method Cart.total of <Cart object at 0x7f>>()",
            "cart.total()",
            "2",
            "3",
        ),
        ("check(get())", f"assert 2 == 3{WHERE}2 = len([1, 2])", "len([1, 2])", "2", "3"),
        ("assert get() == 3, 'why'", f"why\nassert 2 == 3{WHERE}2 = get()", "get()", "2", "3"),
    ],
)  # fmt: skip
def test_each_form_of_an_assert_is_read_rightly(
    statement: str, text: str, call: str, actual: str, expected: str
) -> None:
    assert read_failed_assert(text, statement, None) == AssertFacts(
        call=call, actual=actual, expected=expected
    )


@pytest.mark.parametrize(
    ("statement", "call", "actual", "expected"),
    [
        ("self.assertEqual(words(-1), 'minus one')", "words(-1)", "LEFT", "RIGHT"),
        ("self.assertEqual('minus one', words(-1))", "words(-1)", "RIGHT", "LEFT"),
        ("self.assertNotEqual(words(1), 'one', 'why')", "words(1)", "LEFT", "anything but RIGHT"),
        ("self.assertAlmostEqual(half(1), 0.5)", "half(1)", "LEFT", "about RIGHT"),
    ],
)
def test_the_values_of_unittest_are_those_of_its_arguments(
    statement: str, call: str, actual: str, expected: str
) -> None:
    found = read_failed_assert("'one' != 'minus one'", statement, ["LEFT", "RIGHT"])
    assert found == AssertFacts(call=call, actual=actual, expected=expected)


def test_what_is_no_comparison_stays_an_exception() -> None:
    assert read_failed_assert("SomeError not raised", "with self.assertRaises(SomeError):", None) is None
    assert read_failed_assert("1 not less than 0", "self.assertLess(1, 0)", ["1", "0"]) is None


def test_long_values_are_cut_so_that_they_stay_different() -> None:
    same = "the same " * 100
    left, right = shorten_pair(f"{same}left", f"{same}right", 60)

    assert (left, right) == ("...e the same the same left", "...e the same the same right")
    assert shorten_pair("a", "b", 60) == ("a", "b")


def test_a_collection_error_begins_with_the_first_line_of_its_message() -> None:
    text = (
        "test_shop.py:1: in <module>\n    from shop import X\nshop.py:8: in load\n    raise ValueError(...)\n"
        "E   KeyError: 'inner'\n\nE   ValueError: first: line\nE   hint: second line\nE   last: third line\n"
    )
    fact = parse_collection_error("test_shop.py", text)

    assert fact.exception == "ValueError: first: line"
    assert fact.message == "ValueError: first: line\nhint: second line\nlast: third line"
    assert (fact.file, fact.line) == ("shop.py", 8)
    assert fact.frames == (
        CodeFrame(file="test_shop.py", line=1),
        CodeFrame(file="shop.py", line=8, function="load"),
    )


def test_values_are_written_only_if_they_are_plain_and_of_limited_size() -> None:
    class Odd:
        def __repr__(self) -> str:
            raise AssertionError("code of the project ran")

    endless: list[object] = []
    endless.append(endless)
    for value in (Odd(), [Odd()], {"a": Odd()}, endless, "x" * 200_000, 10**6000):
        assert render_value(value) == ""
    assert render_value({"a": [1, (2.5, None)]}) == "{'a': [1, (2.5, None)]}"
    pair = render_pair(["same " * 2000, "left"], ["same " * 2000, "right"])
    assert "left" in pair[0]
    assert "right" in pair[1]


CODE = """
from decimal import Decimal

class Cart:
    def total(self, prices):
        return sum(prices) / Decimal(self.count)

def table(rows):
    return "| " + " |\\n| ".join(rows) + " |"

def is_open(day):
    return True
"""
TESTS = """
import unittest
import pytest
from shop import Cart, is_open, table

HEAD = "the same for both " * 40

def test_alike():
    rows = [HEAD + "left"]
    assert table(rows) == "| " + HEAD + "right |"

@pytest.mark.parametrize("day", ["sun", "mon"])
def test_closed(day):
    assert not is_open(day)

class CartTest(unittest.TestCase):
    def test_total(self):
        self.assertEqual(is_open("tue"), "yes\\nno", "a message")

    def test_count(self):
        for count in (3, 0):
            Cart().total([count])
"""


@pytest.fixture
async def facts(tmp_path: Path, sandbox: Sandbox) -> dict[str, Counterexample]:
    """Return the facts of the failing tests above, by the last part of their names."""
    (tmp_path / "shop.py").write_text(CODE)
    (tmp_path / "test_shop.py").write_text(TESTS)
    suite, _ = await prepare_python_suite(tmp_path, sandbox)
    verdict = await check_candidate(Candidate(files={}, origin="user"), suite)
    return {fact.check_id.rpartition("::")[2]: fact for fact in verdict.counterexamples}


async def test_facts_hold_the_input_the_frames_and_the_first_difference(
    facts: dict[str, Counterexample],
) -> None:
    alike = facts["test_alike"]
    assert "left" in alike.actual
    assert "right" in alike.expected
    assert facts["test_closed[sun]"].inputs == {"day": "'sun'"}
    assert (facts["test_closed[mon]"].actual, facts["test_closed[mon]"].expected) == ("True", "a false value")
    unittest_fact = facts["test_total"]
    assert (unittest_fact.call, unittest_fact.actual) == ("is_open('tue')", "True")
    assert alike.message.count("\n") > 3  # all lines of the exception's own message
    raised = facts["test_count"]
    assert raised.exception == "AttributeError: 'Cart' object has no attribute 'count'"
    assert [frame.function for frame in raised.frames] == ["test_count", "total"]
    assert raised.inputs == {"count": "3", "prices": "[3]"}


@pytest.mark.parametrize(
    "statement",
    ["assert expected == result", "assert want_rows == rows", "self.assertEqual(expected, result)"],
)
def test_a_variable_named_as_the_expectation_is_the_expected_side(statement: str) -> None:
    text = "assert 'old' == 'new'" if statement.startswith("assert") else "'old' != 'new'"
    facts = read_failed_assert(text, statement, ("'old'", "'new'"))
    assert facts is not None
    assert (facts.expected, facts.actual) == ("'old'", "'new'")
