"""An answer that is nan or infinite cannot make a test overlook it."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest

from judge.conftest import Judge
from suture.judge.split.codec import Encoder, decode
from suture.judge.split.special_numbers import (
    NotANumber,
    UnorderedComparison,
    choose_number_guard,
    guard_number,
    write_number,
)

INFINITE = "def mean(xs): return float('inf')\n"
UNDEFINED = "def mean(xs): return complex('nan')\n"
RIGHT = "def mean(xs): return sum(xs) / len(xs)\n"
CASES = "cases = [([1, 2, 3], 2.0), ([4, 6], 5.0)]\n"
TESTS = {
    "largest relative error": (
        "worst = 0.0\nfor xs, want in cases:\n    got = mean(xs)\n"
        "    worst = max(worst, abs(got - want) / max(abs(got), abs(want)))\nassert worst < 1e-9"
    ),
    "collected errors": (
        "errors = []\nfor xs, want in cases:\n    if abs(mean(xs) - mean(xs[::-1])) > 1e-9:\n"
        "        errors.append(xs)\nassert not errors"
    ),
    "no case is wrong": (
        "assert not any(abs(mean(xs) - want) / abs(mean(xs)) > 1e-9 for xs, want in cases)\n"
    ),
    "a list of wrong cases": (
        "bad = [xs for xs, want in cases if abs(mean(xs) - want) / abs(mean(xs)) > 1e-9]\nassert bad == []"
    ),
    "an error by math": (
        "import math\nbad = [xs for xs, want in cases if math.fabs((mean(xs) - want) / abs(mean(xs))) > 1e-9]\n"
        "assert bad == []"
    ),
    "a root by math": (
        "from math import sqrt\nworst = 0.0\nfor xs, want in cases:\n"
        "    worst = max(worst, sqrt(abs(mean(xs) - want) / abs(mean(xs))))\nassert worst < 1e-9"
    ),
    "a helper": (
        "def close(a, b):\n    gap = abs(a - b) / max(abs(a), abs(b))\n    if gap > 1e-9:\n"
        "        return False\n    return True\nfor xs, want in cases:\n    assert close(mean(xs), want)"
    ),
}


@pytest.mark.parametrize("test", TESTS.values(), ids=TESTS)
async def test_nan_that_a_test_computes_does_not_pass(judge: Judge, test: str) -> None:
    for wrong in (INFINITE, UNDEFINED):
        verdict = await judge(wrong, CASES + test)
        assert [(outcome.passed, outcome.evidence) for outcome in verdict.outcomes] == [(False, "split")]
    assert (await judge(RIGHT, CASES + test)).all_passed


@pytest.mark.parametrize(
    ("code", "test"),
    [
        ("def f(x): return float('inf')", "assert f(1) > 1000 and 1 / f(1) == 0"),
        (
            "def f(x): return float('inf')",
            "want = float('inf')\nassert [v for v in [f(1)] if abs(v - want) > 1] == []",
        ),
        ("def f(x): return {'a': float('inf')}", "assert f(1) == {'a': 1e999}\nassert f(2)['a'] - 1 > 0"),
        ("def f(x): return x * 2", "assert f(f(1e999)) == 1e999"),
        ("def f(x): return complex(float('inf'), 1)", "assert f(1).imag == 1 and f(1) == f(2)"),
        ("def f(x): return float('nan')", "import math\nassert math.isnan(f(1)) and (f(1) > 3) is False"),
    ],
    ids=["infinite", "mentioned", "overflow", "passed back", "complex", "nan"],
)
async def test_a_test_that_expects_special_numbers_gets_them(judge: Judge, code: str, test: str) -> None:
    verdict = await judge(code, test)
    assert verdict.all_passed, verdict.counterexamples
    assert verdict.evidence == "split"


@pytest.mark.parametrize(
    "number", [math.inf, -math.inf, math.nan, complex(math.inf, 1), complex(0, math.nan)]
)
def test_a_stand_in_crosses_as_its_number(number: Any) -> None:
    guarded = copy.deepcopy(guard_number(number))
    assert type(guarded) is not type(number)
    encoder = Encoder(write_number)
    value, _ = decode(encoder.encode(guarded), encoder.new_nodes(), list)
    assert (type(value), repr(value)) == (type(number), repr(number))


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: x - x,
        lambda x: x / x,
        lambda x: 0 * x,
        lambda x: sum([1.0, x, -x]),
        lambda x: x % 2,
        lambda x: divmod(x, 2)[1],
        lambda x: round(x - x, 2),
        lambda x: abs((x - x) * 1j),
    ],
)
def test_nan_stays_guarded_through_arithmetic(compute: Any) -> None:
    result = compute(guard_number(math.inf))
    assert type(result) is NotANumber
    with pytest.raises(UnorderedComparison):
        assert result > 1


def test_finite_numbers_stay_as_they_are() -> None:
    guard = choose_number_guard("assert f(1) == 2")
    assert [type(guard(number)) for number in (1.5, 2j, 3)] == [float, complex, int]
