"""Every decision tree becomes a filter that the kernel accepts and that gives the same answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox import cbpf
from suture.sandbox.seccomp.filters import (
    Decision,
    FilterAnswer,
    FilterBranch,
    assemble,
    build_range_tree,
)

FIELDS = range(0, 64, 4)
OPERATORS = ("eq", "gt", "ge", "set")
words = st.integers(0, 2**32 - 1) | st.integers(0, 20)
answers = st.builds(FilterAnswer, words)


def branches(inner: st.SearchStrategy[Decision]) -> st.SearchStrategy[FilterBranch]:
    return st.builds(
        FilterBranch,
        field=st.sampled_from(FIELDS),
        operator=st.sampled_from(OPERATORS),
        operand=words,
        yes=inner,
        no=inner,
    )


decisions: st.SearchStrategy[Decision] = st.recursive(answers, branches, max_leaves=300)


def decide(decision: Decision, call: tuple[int, ...]) -> int:
    """Return the answer of a decision tree for the sixteen words of a call."""
    while isinstance(decision, FilterBranch):
        value, operand = call[decision.field // 4], decision.operand
        holds = {
            "eq": value == operand,
            "gt": value > operand,
            "ge": value >= operand,
            "set": bool(value & operand),
        }
        decision = decision.yes if holds[decision.operator] else decision.no
    return decision.value


def run_filter(code: bytes, call: tuple[int, ...]) -> int:
    """Return the answer of an assembled filter for the sixteen words of a call."""
    halves = zip(call[4::2], call[5::2], strict=True)
    return cbpf.run_filter(cbpf.parse(code), call[1], call[0], *(low | high << 32 for low, high in halves))


calls = st.tuples(words, words, st.just(0), st.just(0), *[words] * 12)


@given(decisions, st.lists(calls, min_size=1, max_size=5))
def test_every_decision_is_preserved(decision: Decision, sample_calls: list[tuple[int, ...]]) -> None:
    code = assemble(decision)
    cbpf.check(cbpf.parse(code))
    assert cbpf.listing(code).count("\n") == len(code) // 8
    for call in sample_calls:
        assert run_filter(code, call) == decide(decision, call)


@given(st.sets(st.integers(1, 2**32 - 1), max_size=600), st.lists(words, min_size=1, max_size=20))
def test_a_range_tree_decides_by_range(starts: set[int], numbers: list[int]) -> None:
    ranges: list[tuple[int, Decision]] = [
        (start, FilterAnswer(n)) for n, start in enumerate([0, *sorted(starts)])
    ]
    program = cbpf.parse(assemble(build_range_tree(0, ranges)))
    cbpf.check(program)

    for number in [*numbers, *starts]:
        assert cbpf.run_filter(program, 0, number) == sum(start <= number for start in starts)


def test_a_jump_beyond_the_range_of_a_test_is_split() -> None:
    for size in (254, 255, 256, 257, 1000):
        far: Decision = FilterAnswer(1)
        for _ in range((size - 1) // 2):
            far = FilterBranch(field=0, operator="eq", operand=7, yes=FilterAnswer(2), no=far)
        program = cbpf.parse(
            assemble(FilterBranch(field=0, operator="gt", operand=5, yes=far, no=FilterAnswer(3)))
        )
        cbpf.check(program)
        assert [cbpf.run_filter(program, 0, number) for number in (5, 6, 7)] == [3, 1, 2]


def test_filters_that_are_too_long_are_an_error() -> None:
    long: Decision = FilterAnswer(0)
    for _ in range(500):
        long = FilterBranch(field=0, operator="eq", operand=1, yes=FilterAnswer(1), no=long)
    wide = build_range_tree(0, [(0, long), *((start, long) for start in range(1, 10))])
    with pytest.raises(ValueError, match="too many"):
        assemble(wide)
