"""Examples in the text of a task become checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from suture.judge import extract_examples, find_unread_examples


def extract_programs(text: str, entry_point: str | None = "f") -> list[str]:
    entry_point = "F" if text.startswith("F(") else entry_point
    return [check.source.strip() for check in extract_examples(text, entry_point)]


@pytest.mark.parametrize(
    ("text", "program"),
    [
        (">>> f(1)\n2\n", "assert f(1) == 2"),
        (">>> f([1,\n...    2])\n[1,\n 2]\n", "assert f([1, 2]) == [1, 2]"),
        (">>>f(1)\n'a'", "assert f(1) == 'a'"),
        (">>> round(f(1), 2)  # why\n0.5", "assert round(f(1), 2) == 0.5"),
        (">>> f(1) == 2\n", "assert f(1) == 2"),
        (">>> f(1) is None\nTrue\n", "assert (f(1) is None) == True"),
        (">>> f(1) == 2\nFalse\n", "assert (f(1) == 2) == False"),
        ("f(1, 2) == 3", "assert f(1, 2) == 3"),
        ("it holds that f(1, 2) -> 3.", "assert f(1, 2) == 3"),
        ("* f(1,2) => 3", "assert f(1, 2) == 3"),
        ("f(1, 2) returns 3", "assert f(1, 2) == 3"),
        ("f({'a': 1}) should return True.", "assert f({'a': 1}) == True"),
        ("assert f(1)==2", "assert f(1) == 2"),
        ("f('x') ➞ \"y\" # because", "assert f('x') == 'y'"),
        ("f('x') ==> ('y', 1) (a tuple)", "assert f('x') == ('y', 1)"),
        ("f(3) # => false", "assert f(3) == False"),
        ("f(2) -> 1 + 1 = 2", "assert f(2) == 1 + 1"),
        ("f([\n [1],\n [2]\n], 1) == [\n (0, 0)]", "assert f([[1], [2]], 1) == [(0, 0)]"),
        ("F([1, 2]).pop(-1) == 2", "assert F([1, 2]).pop(-1) == 2"),
        ("`f(1)` returns `[2]`.", "assert f(1) == [2]"),
        ("| call | gives |\n|---|---|\n| f('a b') | 'a-b' |", "assert f('a b') == 'a-b'"),
        ("Input: f(3)\nOutput: 9", "assert f(3) == 9"),
        ("def f(a, b):\n  '''\n  Input: b = 2, a = 1\n  Output: 3", "assert f(1, 2) == 3"),
        ("def f(a):\n  '''For a = [1] the output should be 3", "assert f([1]) == 3"),
    ],
)
def test_an_example_becomes_a_check(text: str, program: str) -> None:
    assert extract_programs(text) == [program]


@pytest.mark.parametrize(
    "text",
    ['f(4) == "IV", f(9) == "IX"', 'f(4) == "IV"; f(9) == "IX"', '`f(4)` -> "IV", `f(9)` -> "IX"'],
)
def test_several_examples_on_a_line_are_read(text: str) -> None:
    assert extract_programs(text) == ["assert f(4) == 'IV'", "assert f(9) == 'IX'"]


def test_the_dot_of_a_sentence_does_not_belong_to_a_number() -> None:
    assert extract_programs("f(2, 3) returns 5. f(1, 1) -> 2") == [
        "assert f(2, 3) == 5",
        "assert f(1, 1) == 2",
    ]


@pytest.mark.parametrize(
    ("text", "unread"),
    [
        ("f(4) is two. f(9) must be three", ("f(4) is two", "f(9) must be three")),
        ("f(4) is a number", ()),
        ("f(4) == range(3)\nf(1) == 2", ("f(4) == range(3)",)),
        ("f(1) returns 3 or 4", ("f(1) returns 3 or 4",)),
        ("f(1) -> " + "x" * 99, (f"f(1) -> {'x' * 52}...",)),
        ("f(x) == 3", ()),
        ("f(1) is called first", ()),
        ("g(1) == h", ()),
        (">>> f(1)\n2", ()),
        ("", ()),
    ],
)
def test_unread_examples_are_reported(text: str, unread: tuple[str, ...]) -> None:
    assert find_unread_examples(text, "f") == unread
    assert find_unread_examples(text, None) == ()


@pytest.mark.parametrize(
    "text",
    [
        "f(x) == 3",
        "f(1) == g(1)",
        "f(1) returns 3 or 4",
        "f(1) returns 1, 2",
        "f(1) is called first",
        "f(1) == ''oops'",
        "f(1) -> 2 + 2 = 5",
        "g(1) == 2",
        "math.f(1) == 2",
        ">>> f(x)\n3",
        ">>> f(1)\nsome words",
        ">>> f(1)\n",
        ">>> print(f(1))\nhello",
        "`f('a')` returns `None` if there is no such key.",
        "`f(1)` returns `0` or `1`.",
        "`f(3)` returns `3` copies of it",
        "f(1) is `None`-safe",
        "`f()` -> True | False",
        "def f(x=1) -> None | int:",
        "The value is f(3) | 4.",
        "| Call | ms | Result |\n| f(2) | 10 | 4 |",
        "f(1)" + ".g()" * 300 + " == 3",
        "f(1",
        "f(1) ->",
        "",
    ],
)
def test_ambiguous_text_becomes_no_check(text: str) -> None:
    assert extract_programs(text) == []


def test_a_recurrence_is_no_example() -> None:
    assert extract_programs("f(2) = 1 + (2 / 2) = 2\nf(4) = 3\nf(3) == [1, 3, 2, 8]") == [
        "assert f(3) == [1, 3, 2, 8]"
    ]


def test_an_expected_exception_becomes_a_check() -> None:
    text = ">>> f(0)\nTraceback (most recent call last):\n  ...\nValueError: no zero\n"
    (program,) = extract_programs(text)
    names: dict[str, Any] = {}
    exec("def f(x):\n    raise ValueError(x)", names)
    exec(program, names)

    exec("def f(x):\n    return x", names)

    with pytest.raises(AssertionError):
        exec(program, names)


def test_an_example_brings_the_lines_that_it_needs() -> None:
    assert extract_programs(">>> x = [1]\n>>> f(x)\n2\n") == ["x = [1]\nassert f(x) == 2"]


def test_an_example_may_call_helpers_of_the_text() -> None:
    text = "def g(x):\n    return x\n\ndef f(x):\n    '''\n    >>> f(g(1))\n    1\n    '''"
    assert extract_programs(text, None) == ["assert f(g(1)) == 1"]


def test_examples_have_a_provenance_and_stable_ids() -> None:
    first, second = extract_examples("f(1) == 2\nf(2) == 3\nf(1) == 2", "f")
    assert (first.provenance, first.trust) == ("visible", 1.0)
    assert (first.id, second.id) == ("assert f(1) == 2", "assert f(2) == 3")


WRONG_IN_THE_DOCSTRING = {"HumanEval/47", "HumanEval/116"}


def test_examples_of_human_eval_are_right(data_set: Callable[[str], list[dict[str, Any]]]) -> None:
    tasks_with_examples, wrong_tasks = 0, set()
    for task in data_set("humaneval"):
        checks = extract_examples(task["prompt"], task["entry_point"])
        tasks_with_examples += bool(checks)
        names: dict[str, Any] = {}
        exec(task["reference"], names)
        for check in checks:
            try:
                exec(check.source, dict(names))
            except AssertionError:
                wrong_tasks.add(task["id"])

    assert tasks_with_examples >= 153
    assert wrong_tasks == WRONG_IN_THE_DOCSTRING
