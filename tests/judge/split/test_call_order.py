"""A candidate that answers by the order of the calls is noticed; one that keeps what it computed is not."""

from __future__ import annotations

import pytest

from judge.conftest import Judge
from suture.core.records import Task
from suture.judge.signs import find_verdict_signs

AREA_TESTS = ("assert area(2, 3) == 6\nassert area(7, 1) == 7", "assert area(5, 5) == 25")
COPY_TESTS = ("text = 'aab' * 40\nassert unpacked(packed(text)) == text",)
BY_ORDER = {
    "prepared answers": ("left = [25, 7, 6]\ndef area(*sides):\n    return left.pop()\n", AREA_TESTS),
    "a counter": (
        "def area(*sides, turn=[0]):\n    turn[0] += 1\n    return {1: 6, 2: 7}.get(turn[0], 25)\n",
        AREA_TESTS,
    ),
    "what another function got": (
        "class Store: pass\ndef packed(text):\n    Store.text = text\n    return 'p'\n"
        "def unpacked(text):\n    return Store.text\n",
        COPY_TESTS,
    ),
    "items of a generator": (
        "steps = iter([[1], [2, 3]])\ndef parts(n):\n    yield from next(steps)\n",
        ("assert list(parts(1)) == [1]\nassert list(parts(2)) == [2, 3]",),
    ),
}
IN_ANY_ORDER = {
    "kept results": (
        "known = {}\ndef area(a, b):\n    if (a, b) not in known:\n        known[a, b] = a * b\n"
        "    return known[a, b]\n",
        AREA_TESTS,
    ),
    "a right pair": (
        "def packed(text):\n    return [text]\ndef unpacked(parts):\n    return parts[0]\n",
        COPY_TESTS,
    ),
    "random numbers": (
        "import random\ndef mixed(items):\n    return random.sample(items, len(items))\n",
        ("items = list(range(30))\nassert sorted(mixed(items)) == items\nassert len(mixed(items)) == 30",),
    ),
    "sets and iterators": (
        "def names(text):\n    return set(text.split())\ndef each(text):\n    return iter(text)\n",
        (
            "assert names('b a') == {'a', 'b'}\nassert names('c') == {'c'}\nassert list(each('xy')) == ['x', 'y']",
        ),
    ),
}


@pytest.mark.parametrize("kind", BY_ORDER)
async def test_answers_by_the_order_of_calls_are_noticed(kind: str, judge: Judge) -> None:
    code, tests = BY_ORDER[kind]
    verdict = await judge(code, *tests)

    assert verdict.all_passed, verdict.counterexamples
    assert [note.code for note in verdict.notes] == ["answers_by_order"]
    assert [sign.code for _, sign in find_verdict_signs(Task(statement=""), verdict)] == ["answers_by_order"]


@pytest.mark.parametrize("kind", IN_ANY_ORDER)
async def test_answers_that_depend_on_arguments_are_not(kind: str, judge: Judge) -> None:
    code, tests = IN_ANY_ORDER[kind]
    verdict = await judge(code, *tests)

    assert verdict.all_passed, verdict.counterexamples
    assert verdict.notes == ()
