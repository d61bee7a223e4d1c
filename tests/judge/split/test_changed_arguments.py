"""A candidate cannot choose what its answers are compared with by changing its arguments."""

from __future__ import annotations

import sys
import tomllib
import types
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from judge.conftest import Judge
from judge.split.argument_variants import CHEATS, ROUTES, list_cheating_variants
from suture.judge.extraction.program_plans import ProgramPlan, TaskNames, plan_program
from suture.judge.split.candidate_program import CandidateModules
from suture.judge.split.judge_program import run_program
from suture.judge.split.wire import dump, load

CORPUS = tomllib.loads((Path(__file__).parent / "changed_arguments.toml").read_text("utf-8"))
RIGHT = {
    "returns a copy": "def f(x):\n    return sorted(x)\n",
    "in place": "def f(x):\n    x.sort()\n    return x\n",
}
LIGHT_STEP, HEAVY_STEP = 7, 3
"""Each test of a route runs every n-th variant. The numbers share no factor with the sizes of a variant's parts."""


@pytest.fixture(autouse=True)
def own_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore the modules that `run_once` replaces."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.setitem(sys.modules, "solution", types.ModuleType("solution"))


@lru_cache
def plan_test(test: str) -> ProgramPlan:
    """Return the plan of a test, which all candidates share."""
    plan = plan_program(test, TaskNames(files=("solution.py",), module="solution.py"))
    assert not plan.live_reason
    return plan


def run_once(
    code: str, test: str, *, protects_arguments: bool, failed_lines: Collection[int] = ()
) -> dict[str, Any]:
    """Run a test against a fresh candidate in this process, because a sandbox for each would take minutes."""
    plan = plan_test(test)
    module = sys.modules["solution"] = types.ModuleType("solution")
    exec(code, module.__dict__)
    candidate = CandidateModules("/nowhere")
    request = {"source": plan.source, "names": plan.names, "expects": plan.expects}

    def ask(question: dict[str, Any]) -> dict[str, Any]:
        return load(dump(candidate.answer(load(dump(question)))))

    protection = {"protects_arguments": protects_arguments, "failed_lines": failed_lines}
    return run_program({**request, **protection}, ask)


def passes(code: str, test: str) -> bool:
    """Judge a candidate as `SplitRunner.try_program` does."""
    return passes_after(run_once(code, test, protects_arguments=False), code, test)


def passes_after(outcome: dict[str, Any], code: str, test: str) -> bool:
    """Judge a candidate by the outcome of its first run."""
    if outcome["passed"] and outcome.get("changing_call"):
        outcome = run_protected(code, test)
    return bool(outcome["passed"])


def run_protected(code: str, test: str) -> dict[str, Any]:
    lines: set[int] = set()
    while True:
        outcome = run_once(code, test, protects_arguments=True, failed_lines=lines)
        if outcome["passed"] or lines.issuperset(outcome["failed_lines"]):
            return outcome
        lines.update(outcome["failed_lines"])


def check_variants(route: str, step: int) -> None:
    """Check every n-th variant of a route. Each route starts at another one, so that together they check all."""
    right_passes = lru_cache(passes)  # several cheats share a test
    first_variant = list(ROUTES).index(route) % step
    for name, code, test in list(list_cheating_variants(route))[first_variant::step]:
        first = run_once(code, test, protects_arguments=False)
        assert first["passed"], f"{name}: it would fail anyway"
        assert not passes_after(first, code, test), name
        assert right_passes(RIGHT["returns a copy"], test), name
        assert right_passes(RIGHT["in place"], test), name


@pytest.mark.parametrize("route", ROUTES)
def test_no_route_to_a_changed_argument_passes(route: str) -> None:
    check_variants(route, LIGHT_STEP)


@pytest.mark.heavy
@pytest.mark.parametrize("route", ROUTES)
def test_no_variant_of_a_changed_argument_passes(route: str) -> None:
    check_variants(route, HEAVY_STEP)


@pytest.mark.parametrize("row", CORPUS["cheat"], ids=lambda row: row["name"])
def test_no_test_is_passed_by_emptying_its_argument(row: dict[str, str]) -> None:
    assert run_once(CHEATS["empties"], row["test"], protects_arguments=False)["passed"]
    assert not passes(CHEATS["empties"], row["test"])
    assert passes(RIGHT["returns a copy"], row["test"])


@pytest.mark.parametrize("row", CORPUS["honest"], ids=lambda row: row["name"])
def test_a_test_that_wants_changed_arguments_passes(row: dict[str, str]) -> None:
    first = run_once(row["code"], row["test"], protects_arguments=False)
    assert first["passed"]
    assert first["changing_call"]
    second = run_protected(row["code"], row["test"])
    assert second["passed"], second


@pytest.mark.parametrize(
    ("code", "test"),
    [
        ("def f(x):\n    x.clear()\n    yield from ()\n", "x = [3, 1]\nassert list(f(x)) == sorted(x)"),
        (
            "held = []\ndef f(x):\n    [v.clear() for v in held]\n    held.append(x)\n    return []\n",
            "x = [3, 1]\ngot = f(x)\nf([])\nassert got == sorted(x)",
        ),
        (
            "class Odd(Exception): pass\n"
            "def f(x):\n    x.clear()\n    fault = Odd()\n    fault.rows = x\n    raise fault\n",
            "x = [3, 1]\ntry:\n    f(x)\nexcept Odd as fault:\n    assert fault.rows == sorted(x)",
        ),
        (
            "class D(dict): pass\ndef make():\n    return D(a=1)\ndef f(d):\n    d.clear()\n    return [0, d]\n",
            "d = make()\ngot = f(d)\nassert got[0] == len(d)",
        ),
        (
            "def f(x):\n    x[:] = [0] * len(x)\n    return 0\n",
            "x = [3, 1, 2]\nassert x[f(x)] == min(x) and len(x) == 3",
        ),
    ],
    ids=[
        "a lazy iterator",
        "a later call",
        "an exception",
        "an answer that changes later",
        "a selected element",
    ],
)
def test_no_later_change_passes(code: str, test: str) -> None:
    assert not passes(code, test)


def test_many_calls_with_a_long_list_of_cases_stay_fast() -> None:
    """The search for the exposed arguments must not visit all cases at each call."""
    test = (
        "cases = [([n, n], [n]) for n in range(3000)]\n"
        "for x, want in cases:\n    k = f(x)\n    assert x[:k] == want\n"
    )
    assert passes("def f(x):\n    x.pop()\n    return len(x)\n", test)


@pytest.mark.heavy
def test_a_program_of_many_checks_is_analysed_fast() -> None:
    """An analysis of quadratic cost took minutes for this program, which is more than its time limit."""
    check = "x = [{n}, 1]\ny = f(x)\nassert y == sorted(x)\nassert x == [1, {n}]\n"
    assert passes(RIGHT["in place"], "".join(check.format(n=n) for n in range(2, 1500)))


async def test_a_verdict_names_the_call_that_changed_its_argument(judge: Judge) -> None:
    verdict = await judge(CHEATS["empties"], "x = [3, 1]\nassert f(x) == sorted(x), f'wrong for {x}'")
    (outcome,) = verdict.outcomes
    fact = outcome.counterexample
    assert (outcome.status, outcome.evidence, fact.code) == ("failed", "split", "changed_argument")
    assert "f([3, 1])" in fact.exception
    assert (fact.call, fact.expected, fact.actual) == ("f([3, 1])", "[1, 3]", "[]")


@pytest.mark.parametrize(
    ("code", "test", "loads"),
    [
        (RIGHT["returns a copy"], "x = [3, 1]\nassert f(x) == [1, 3]", 1),
        (RIGHT["in place"], "assert f([3, 1]) == [1, 3]", 1),
        (RIGHT["in place"], "x = [3, 1]\nassert f(x) == [1, 3]", 2),
    ],
    ids=["nothing changed", "nobody holds what changed", "a variable changed"],
)
async def test_a_second_run_takes_place_only_if_an_argument_changed(
    judge: Judge, code: str, test: str, loads: int
) -> None:
    verdict = await judge(f"print('loaded')\n{code}", test)
    assert verdict.all_passed
    assert verdict.output.count("loaded") == loads


async def test_the_second_run_starts_with_fresh_state(judge: Judge) -> None:
    code = "n = 0\ndef f(x):\n    global n\n    n += 1\n    x.append(n)\n    return n\n"
    verdict = await judge(code, "x = []\nassert f(x) == 1\nassert f(x) == 2\nassert x == [1, 2]")
    assert verdict.all_passed, verdict.counterexamples
    assert verdict.evidence == "split"


@pytest.mark.parametrize(
    ("code", "test"),
    [
        (
            "def take(x):\n    even = [v for v in x if v % 2 == 0]\n"
            "    x[:] = [v for v in x if v % 2]\n    return even",
            "x = [1, 2, 3, 4]\nbefore = list(x)\ntaken = take(x)\nassert sorted(taken + x) == before",
        ),
        (
            "def f(x):\n    x.sort()\n    return x",
            "x = [3, 1, 2]\ngot = f(x)\nassert got is x\nassert got == sorted(x)",
        ),
        (
            "def fib(n, memo):\n    if n < 2: return n\n"
            "    if n not in memo: memo[n] = fib(n - 1, memo) + fib(n - 2, memo)\n    return memo[n]",
            "memo = {}\nassert fib(10, memo) == 55\nassert memo[10] == 55\nassert fib(10, memo) == memo[10]",
        ),
        (
            "def move(a, b, n):\n    a['n'] -= n\n    b['n'] += n\n    return n",
            "a, b = {'n': 10}, {'n': 0}\nmoved = move(a, b, 4)\nassert moved == 4\n"
            "assert a['n'] + b['n'] == 10\nassert b['n'] == moved",
        ),
        (
            "def pop_max(x):\n    top = max(x)\n    x.remove(top)\n    return top",
            "x = [5, 7, 6]\ntop = pop_max(x)\nassert top == 7\nassert top not in x",
        ),
        (
            "def step(log, i):\n    log.append(i)\n    return i * i",
            "log = []\nsquares = [step(log, i) for i in range(3)]\nassert squares == [0, 1, 4]\n"
            "assert len(log) == len(squares)",
        ),
    ],
    ids=["a sum of both", "the argument itself", "a memo", "a transfer", "an element that is gone", "a log"],
)
async def test_a_check_of_an_answer_together_with_an_argument_is_weaker_evidence(
    judge: Judge, code: str, test: str
) -> None:
    verdict = await judge(code, test)
    assert verdict.all_passed, verdict.counterexamples
    assert verdict.evidence == "nonce"


@pytest.mark.parametrize(
    "test",
    [
        "x = [3, 1]\nassert [a - b for a, b in zip(f(x), sorted(x))] == [0] * len(x)",
        "x = [3, 1]\ngot = f(x)\nassert len(got) - len(x) == 0",
        "x = []\nassert f(x) == []\nx = [3, 1]\nassert f(x) == sorted(x)",
        "x = [3, 1]\ngot = f(x)\nassert len(x) + 1 == len(got) + 1",
    ],
)
async def test_no_comparison_with_an_argument_passes_as_a_joint_check(judge: Judge, test: str) -> None:
    verdict = await judge(CHEATS["empties"], test)
    assert [(outcome.passed, outcome.evidence) for outcome in verdict.outcomes] == [(False, "split")]
