"""Candidates are compared by their answers to generated calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from suture.core.records import Candidate, Check, Task
from suture.core.settings import SandboxSettings
from suture.judge import prepare_suite
from suture.judge.differential import behaviour_comparison
from suture.judge.differential.behaviour_comparison import (
    BehaviourComparison,
    ComparisonLimits,
    compare_candidates,
    generate_edge_calls,
    generate_near_calls,
    render_comparison,
)
from suture.judge.split.answer_digest import digest_answer
from suture.sandbox import Sandbox

TASK = Task(
    statement="def middle(a, b, c):\n    '''The middle one.\n\n    >>> middle(3, 1, 2)\n    2\n    '''",
    entry_point="middle",
    checks=(Check(id="v", provenance="visible", source="assert middle(1, 2, 3) == 2"),),
)
SORTED = "def middle(a, b, c):\n    return sorted((a, b, c))[1]\n"
SUMMED = "def middle(a, b, c):\n    return a + b + c - max(a, b, c) - min(a, b, c)\n"
TYPED = "def middle(a, b, c):\n    return float(sorted((a, b, c))[1])\n"
GUESSED = "def middle(a, b, c):\n    return 2\n"
ENDLESS = "def middle(a, b, c):\n    while a > 3: pass\n    return 2\n"
FRAGILE = "def middle(a, b, c):\n    return {1: 2, 3: 2}[a]\n"

Compare = Callable[..., Awaitable[tuple[BehaviourComparison, list[str]]]]


@pytest.fixture
def compare(sandbox: Sandbox, sandbox_settings: SandboxSettings) -> Compare:
    """Return a function: `await compare(code, ...)` returns the comparison and the candidates' hashes."""

    async def compare_codes(
        *codes: str, task: Task = TASK, **options: object
    ) -> tuple[BehaviourComparison, list[str]]:
        suite = await prepare_suite(task, sandbox, sandbox_settings)
        candidates = [Candidate(files={"solution.py": code}, origin="sample") for code in codes]
        comparison = await compare_candidates(candidates, suite, **options)  # type: ignore[arg-type]
        return comparison, [candidate.hash for candidate in candidates]

    return compare_codes


async def test_the_larger_cluster_is_preferred_and_a_difference_is_shown(compare: Compare) -> None:
    comparison, (guessed, one, two, three) = await compare(GUESSED, SORTED, SUMMED, TYPED)
    assert comparison.clusters == ((one, two, three), (guessed,))
    assert comparison.preferred == one
    assert comparison.calls > 10
    assert (comparison.code, comparison.sizes[0]) == ("plurality", 3)

    first = comparison.disagreements[0]
    assert first.call.startswith("middle(")
    assert first.answers[guessed] == "2"
    assert eval(first.call, {"middle": lambda a, b, c: sorted((a, b, c))[1]}) == int(first.answers[one])


async def test_a_candidate_that_was_drawn_several_times_counts_as_often(compare: Compare) -> None:
    names = [Candidate(files={"solution.py": code}, origin="sample").hash for code in (SORTED, GUESSED)]
    comparison, (_, guessed) = await compare(SORTED, GUESSED, drawn={names[1]: 3})
    assert comparison.preferred == guessed
    assert (comparison.code, comparison.sizes[0]) == ("plurality", 3)


async def test_exceptions_and_endless_loops_count_as_behaviour(compare: Compare) -> None:
    limits = ComparisonLimits(inputs=8, call_timeout_s=1.2)
    comparison, (endless, fragile, one, two) = await compare(ENDLESS, FRAGILE, SORTED, SUMMED, limits=limits)
    assert comparison.clusters == ((one, two), (fragile,), (endless,))
    assert "raises KeyError" in [difference.answers[fragile] for difference in comparison.disagreements]
    assert comparison.timed_out == 1


async def test_edge_cases_are_called_if_nothing_else_differs(compare: Compare) -> None:
    task = Task(statement="", checks=(Check(id="v", provenance="visible", source="assert top([3, 1]) == 3"),))
    careful = "def top(xs):\n    return max(xs) if xs else None\n"
    other = "def top(xs):\n    return max(xs, default=None)\n"
    careless = "def top(xs):\n    return sorted(xs)[-1]\n"

    comparison, (first, one, two) = await compare(careless, careful, other, task=task)

    assert comparison.clusters == ((one, two), (first,))
    assert [difference.call for difference in comparison.disagreements] == ["top([])"]
    assert comparison.disagreements[0].answers == {first: "raises IndexError", one: "None", two: "None"}


async def test_without_a_majority_the_first_candidate_leads_and_the_code_says_so(compare: Compare) -> None:
    comparison, (guessed, one) = await compare(GUESSED, SORTED)
    assert comparison.clusters == ((guessed,), (one,))
    assert comparison.code == "tie"


async def test_a_comparison_that_is_impossible_has_a_reason(compare: Compare) -> None:
    comparison, _ = await compare(SORTED, GUESSED, task=Task(statement="", entry_point="middle"))
    assert (comparison.clusters, comparison.preferred) == ((), None)
    assert comparison.code == "no_known_call"

    comparison, _ = await compare(SORTED)
    assert comparison.code == "single_candidate"

    comparison, _ = await compare(SORTED, GUESSED, limits=ComparisonLimits(timeout_s=0.001))
    assert comparison.code == "no_comparable_call"

    task = Task(
        statement="", entry_point="Box", checks=(Check(id="v", provenance="visible", source="Box(1)"),)
    )
    boxes = (
        "class Box:\n    def __init__(self, n): self.n = n\n",
        "class Box:\n    def __init__(self, m): self.m = m\n",
    )
    comparison, _ = await compare(*boxes, task=task)
    assert comparison.clusters == ()


async def test_mutated_arguments_and_generators_are_part_of_the_answer(compare: Compare) -> None:
    task = Task(
        statement="",
        checks=(Check(id="v", provenance="visible", source="assert list(up([2, 1])) == [1, 2]"),),
    )
    sorted_copy = "def up(xs):\n    return sorted(xs)\n"
    sorted_in_place = "def up(xs):\n    xs.sort()\n    return xs\n"
    sorted_lazily = "def up(xs):\n    yield from sorted(xs)\n"

    comparison, hashes = await compare(sorted_copy, sorted_in_place, sorted_lazily, task=task)

    assert comparison.clusters == ((hashes[0], hashes[2]), (hashes[1],))


def test_calls_are_new_and_reproducible_and_use_hints() -> None:
    hints = (Check(id="h", provenance="spec", source="assert middle(7, 7, -1) == 99"),)
    assert "middle(0, 2, 3)" in generate_edge_calls(TASK, hints, 20)

    calls = generate_near_calls(TASK, hints, 20, 1)
    assert calls == generate_near_calls(TASK, hints, 20, 1) != generate_near_calls(TASK, hints, 20, 2)
    assert calls[0] == "middle(7, 7, -1)"
    assert len(set(calls)) == 20
    assert not {"middle(1, 2, 3)", "middle(3, 1, 2)"} & set(calls)


def test_equal_answers_have_equal_keys() -> None:
    assert digest_answer({1, 2, "a"}, ())[0] == digest_answer({"a", 2.0, True}, ())[0]
    assert digest_answer({"a": 1, "b": 2}, ())[0] == digest_answer({"b": 2, "a": 1}, ())[0]
    assert digest_answer([1], ())[0] != digest_answer((1,), ())[0]
    assert digest_answer([1], ([],))[0] != digest_answer([1], ([1],))[0]
    assert digest_answer(float("nan"), ())[0] == digest_answer(float("nan"), ())[0]
    assert digest_answer(10**5000, ())[1].startswith("<int whose repr raised")


async def test_the_largest_cluster_need_not_be_more_than_half(compare: Compare) -> None:
    answers = ("def middle(a, b, c):\n    return 3\n", "def middle(a, b, c):\n    return 4\n", GUESSED)
    comparison, _ = await compare(SORTED, SUMMED, *answers)
    assert (comparison.code, comparison.sizes) == ("plurality", (2, 1, 1, 1))
    assert render_comparison(comparison).startswith("2 of 5 candidates answer")


async def test_without_known_calls_no_candidate_is_started(
    compare: Compare, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(behaviour_comparison, "run_programs", None)  # calling it would raise an error
    comparison, _ = await compare(SORTED, GUESSED, task=Task(statement="", entry_point="middle"))
    assert comparison.code == "no_known_call"
