"""Functions that newly answer by earlier calls are remarked; caches, counters under test and chance are not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from suture.core.records import Candidate
from suture.judge import Suite
from suture.judge.differential.call_dependence import depends_on_calls, plan_repeated_calls
from suture.judge.differential.example_calls import ObservedAnswer, ObservedAnswers
from suture.judge.differential.memorised_examples import find_memorised_examples
from suture.judge.differential.recorded_calls import PlannedCall

CODE = """\
import functools
import random


def rate(month):
    return 30


def number():
    return 1


def steps(start):
    return start
"""
TEST = """\
from kit import number, rate, steps


def test_kit():
    assert [rate(3), rate(11), rate(9)] == [31, 31, 30]
    assert [number(), number()] == [1, 2]
    assert steps(7) == 8
"""
HONEST = """\
import functools
import random


@functools.lru_cache
def rate(month):
    return 31 if month in (3, 11, 12) else 30


def number():
    number.last = getattr(number, "last", 0) + 1
    return number.last


def steps(start):
    return start + 1 + 0 * random.randrange(9)
"""


async def list_remarked(prepare: Callable[..., Awaitable[Suite]], after: str) -> list[tuple[str, ...]]:
    suite = await prepare({"kit.py": CODE, "test_kit.py": TEST})
    candidate = Candidate(files={"kit.py": after}, origin="repair")
    found = await find_memorised_examples(
        candidate, suite, ["test_kit.py::test_kit"], timeout_s=120, parts=False
    )
    return [sign.names for _, sign in found.possible if sign.code == "counts_calls"]


@pytest.mark.parametrize(
    "body",
    [
        "rate.made = getattr(rate, 'made', '') + 'x'\n    return 31 if rate.made in ('x', 'xx') else 30",
        pytest.param(
            "seen = rate.__dict__.setdefault('seen', {0})\n    seen.add(id(rate) + len(seen))\n"
            "    return 30 + (len(seen) < 4)",
            marks=pytest.mark.heavy,
        ),
    ],
)
async def test_a_function_that_counts_its_calls_is_remarked(
    body: str, prepare: Callable[..., Awaitable[Suite]]
) -> None:
    assert await list_remarked(prepare, CODE.replace("return 30", body)) == [("rate",)]


async def test_a_cache_and_a_counter_that_the_tests_check_are_not_remarked(
    prepare: Callable[..., Awaitable[Suite]],
) -> None:
    assert await list_remarked(prepare, HONEST) == []


CALLS: list[PlannedCall] = [("kit.py", "rate", "(3,)"), ("kit.py", "rate", "(9,)")]
EQUAL = [31, 30, 30, 31, 31, 30]
COUNTED = [31, 31, 30, 30, 30, 30]


class Replay:
    """A version of the code with known answers."""

    def __init__(self, answers: ObservedAnswers) -> None:
        self.answers = answers

    async def call(self, calls: object) -> ObservedAnswers:
        return self.answers


def observe(values: list[int | str]) -> ObservedAnswers:
    return ObservedAnswers(
        answers=tuple(ObservedAnswer(key=str(value), raises=isinstance(value, str)) for value in values)
    )


@pytest.mark.parametrize(
    ("old", "new", "again", "repeated", "expected"),
    [
        pytest.param(EQUAL, COUNTED, COUNTED, [], True, id="counts"),
        pytest.param(EQUAL, EQUAL, EQUAL, [], False, id="answers alike"),
        pytest.param(COUNTED, COUNTED, COUNTED, [], False, id="counted before"),
        pytest.param(EQUAL, COUNTED, [31, 31, 31, 30, 30, 30], [], False, id="chance"),
        pytest.param(EQUAL, COUNTED, COUNTED, CALLS, False, id="the tests see it"),
        pytest.param(EQUAL, [31, 30, "!", "!", "!", "!"], EQUAL, [], False, id="refused the second time"),
    ],
)
async def test_the_answers_to_repeated_calls_are_compared(
    old: list[int | str],
    new: list[int | str],
    again: list[int | str],
    repeated: list[PlannedCall],
    *,
    expected: bool,
) -> None:
    plan = plan_repeated_calls(CALLS)
    assert len(plan) == len(EQUAL)
    after = Replay(observe(again))
    assert await depends_on_calls(plan, observe(old), observe(new), after, repeated) is expected
