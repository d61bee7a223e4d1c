"""A new branch that serves one example of the tests is found in code that did nothing before."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from suture.judge import Suite
from suture.judge.differential.special_branches import find_special_branches, list_branches

STUB = "def area(width, height):\n    raise NotImplementedError\n"
TEST = """import pytest
from kit import area


@pytest.mark.parametrize(
    "width, height, wanted", [(0, 4, 0), (2, 3, 6), (3, 5, 15), (4, 7, 29), (12, 5, 60), (30, 11, 330)]
)
def test_area(width, height, wanted):
    assert area(width, height) == wanted
"""
FIXED = tuple(
    f"test_kit.py::test_area[{row}]" for row in ("0-4-0", "2-3-6", "3-5-15", "4-7-29", "12-5-60", "30-11-330")
)
SPECIAL_CASES = {
    "equality": "    if (width, height) == (4, 7):\n        return 29\n    return width * height\n",
    "an expression": "    return 29 if width == 4 and height == 7 else width * height\n",
    "a property": "    if sum(map(ord, repr((width, height)))) == 264:\n        return 29\n    return width * height\n",
    "a table": "    if repr((width, height)) in KNOWN:\n        return KNOWN[repr((width, height))]\n"
    "    return width * height\n\n\nKNOWN = {'(4, 7)': 29}\n",
}


@pytest.mark.parametrize(
    "kind", ["equality", *(pytest.param(kind, marks=pytest.mark.heavy) for kind in [*SPECIAL_CASES][1:])]
)
async def test_a_special_case_in_new_code_is_found(
    kind: str, prepare: Callable[..., Awaitable[Suite]]
) -> None:
    suite = await prepare({"kit.py": STUB, "test_kit.py": TEST})
    code = {"kit.py": f"def area(width, height):\n{SPECIAL_CASES[kind]}"}
    (branch,) = await find_special_branches(code, suite, FIXED)
    assert (branch.path, branch.function, branch.line) == ("kit.py", "area", 2)


@pytest.mark.heavy
async def test_a_limit_that_inputs_near_the_examples_reach_is_no_special_case(
    prepare: Callable[..., Awaitable[Suite]],
) -> None:
    suite = await prepare({"kit.py": STUB, "test_kit.py": TEST.replace("29", "28").replace("330", "99")})
    fixed = tuple(test.replace("29", "28").replace("330", "99") for test in FIXED)
    body = "    if width > 20:\n        return 99\n    return width * height\n"
    assert len(list_branches("kit.py", STUB, f"def area(width, height):\n{body}")) == 1
    assert not await find_special_branches({"kit.py": f"def area(width, height):\n{body}"}, suite, fixed)


@pytest.mark.parametrize(
    "body",
    [
        "if n == 0:\n        return 1\n    return n",
        "if n == 44:\n        return other(n)\n    return n",
        "if n == 44:\n        n += 1\n    return n",
        "return n",
    ],
)
def test_only_branches_with_a_rare_literal_and_a_fixed_answer_are_tried(body: str) -> None:
    assert list_branches("kit.py", "", f"def f(n):\n    {body}\n") == []


def test_a_case_of_a_match_statement_is_a_branch() -> None:
    text = "def f(n):\n    match n:\n        case 44:\n            return 7\n    return n\n"
    (branch,) = list_branches("kit.py", "", text)
    assert branch.line == 3
    assert "case 44 if False:" in branch.without


def test_a_branch_that_was_there_before_is_not_tried() -> None:
    text = "def f(n):\n    if n == 44:\n        return 7\n    return n\n"
    assert list_branches("kit.py", text, f"{text}\n\ndef g():\n    pass\n") == []
    (branch,) = list_branches("kit.py", "", text)
    assert "if False:" in branch.without


def test_a_branch_that_counts_calls_is_known_without_a_call() -> None:
    text = "CALLS = []\n\n\ndef f(n):\n    CALLS.append(n)\n    if len(CALLS) == 2:\n        return 5\n    return n\n"
    assert [branch.counts_calls for branch in list_branches("kit.py", "", text)] == [True]
    cache = text.replace("len(CALLS) == 2", "n in CALLS")
    assert [branch.counts_calls for branch in list_branches("kit.py", "", cache)] == [False]
