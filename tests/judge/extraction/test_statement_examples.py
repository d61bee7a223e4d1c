"""Examples that a statement shows in prose, in tables, and for functions beside the entry point."""

from __future__ import annotations

import pytest

from suture.judge.extraction.prose_examples import read_examples


def read_programs(text: str, entry_point: str = "f") -> list[str]:
    return [check.source.strip() for check in read_examples(text, entry_point).checks]


@pytest.mark.parametrize(
    ("text", "programs"),
    [
        ("f(seconds) formats a time. 3661 becomes '1:01:01'.", ["assert f(3661) == '1:01:01'"]),
        ("Write f. For [1, 2, 3] it returns 6.", ["assert f([1, 2, 3]) == 6"]),
        ("Write f(n). Given 5, the function should return 120.", ["assert f(5) == 120"]),
        (
            "It returns True for 'abba' and False for 'abc'.",
            ["assert f('abba') == True", "assert f('abc') == False"],
        ),
        ("f(n) writes a number.\n- 4 -> 'IV'\n- 9 -> 'IX'\n", ["assert f(4) == 'IV'", "assert f(9) == 'IX'"]),
        ("f(n). For example, 4 → 'IV', 9 → 'IX'.", ["assert f(4) == 'IV'", "assert f(9) == 'IX'"]),
        ("f(s) turns 'a b' into 'a-b'.", ["assert f('a b') == 'a-b'"]),
        ("Write f(a, b).\n(2, 3) -> 5\n", ["assert f(2, 3) == 5"]),
        (
            "Write f(a, b).\n\n| b | a | result |\n|---|---|---|\n| 1 | `2` | 3 |\n| 0 | 5 | 6 |\n",
            ["assert f(2, 1) == 3", "assert f(5, 0) == 6"],
        ),
        ("Write f.\n\n| input | output |\n|:--|--:|\n| 'A b' | 'a-b' |\n", ["assert f('A b') == 'a-b'"]),
        ("f([]) should be 0, f([1, 2]) is 3", ["assert f([]) == 0", "assert f([1, 2]) == 3"]),
    ],
)
def test_an_unambiguous_example_without_a_call_becomes_a_check(text: str, programs: list[str]) -> None:
    reading = read_examples(text, "f")
    assert [check.source.strip() for check in reading.checks] == programs
    assert reading.unread == ()


def test_checks_whose_call_the_text_does_not_show_are_named() -> None:
    reading = read_examples("f(2) == 4. So 3 becomes 9.", "f")
    assert reading.inferred == ("assert f(3) == 9",)


@pytest.mark.parametrize(
    ("text", "unread"),
    [
        ("Write f(a, b). 2 becomes 3.", "2 becomes 3"),
        ("f negates the items of a list: 1 becomes -1.", "1 becomes -1"),
        ("Write f(x).\n2 -> 3 or 4\n", "2 -> 3 or 4"),
        ("f([1]) == 1. For 5 it returns 6.", "For 5 it returns 6"),
        ("Write f(x) and g(y). 2 becomes 3.", "2 becomes 3"),
        ("Write f(x).\n\n| x | result |\n|---|---|\n| two | 4 |\n", "| two | 4 |"),
        ("Write f(x).\n>>> f(1)\nhello there\n", ">>> f(1)"),
        ("Write f(x). h(2) == 3", "h(2) == 3"),
        ("Write f(x). f(3) == x", "f(3) == x"),
    ],
)
def test_an_ambiguous_example_is_named_and_becomes_no_check(text: str, unread: str) -> None:
    reading = read_examples(text, "f")
    assert [check.source.strip() for check in reading.checks if "f([1])" not in check.source] == []
    assert reading.unread == (unread,)


@pytest.mark.parametrize(
    "text",
    [
        "f supports Python 2 -> 3.",
        "Every 0 becomes 1.",
        "1 -> 2 -> 3 is a path.",
        "f returns -1 for an empty list.",
        "2 becomes prime.",
        "| Symbol | Value |\n|---|---|\n| 'I' | 1 |",
        "where g(x) = x + 1",
    ],
)
def test_a_text_without_an_example_is_not_named(text: str) -> None:
    reading = read_examples(text, "f")
    assert (reading.checks, reading.unread) == ((), ())


@pytest.mark.parametrize(
    "text",
    [
        "Write two functions, `f` and `decode`.\n\ndecode('2a') == 'aa'\n",
        "Write f(s) and decode(s). decode('2a') returns 'aa'.",
        "- f(s): shortens a text\n- decode(s): restores it; `decode('2a')` -> 'aa'\n",
        "def f(s): ...\n\ndef decode(s): ...\n\n>>> decode('2a')\n'aa'\n",
    ],
)
def test_examples_of_every_function_that_the_statement_asks_for_become_checks(text: str) -> None:
    assert read_programs(text) == ["assert decode('2a') == 'aa'"]


def test_a_call_that_must_raise_becomes_a_check() -> None:
    (program,) = read_programs("Write f(x). `f(0)` raises a ValueError.")
    assert program.endswith("assert raised_by(lambda: f(0)) == 'ValueError'")


def test_a_formula_asks_for_no_function() -> None:
    assert read_programs("f(n) sums g(x) = x + 1 over the digits of n. g(1) == 2") == []


def test_a_long_text_is_read_quickly() -> None:
    for piece in ("1 -> ", "returns 1 for ", "(-", "write the " + " " * 50, "for the 1 is "):
        read_examples(piece * 2000, "f")
