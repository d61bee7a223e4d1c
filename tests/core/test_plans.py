"""Subtasks of a plan need only earlier ones, and run in waves after them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suture.core.records import Plan, Subtask, decode_record, encode_record


def test_independent_subtasks_are_one_wave() -> None:
    subtasks = (
        Subtask(goal="read"),
        Subtask(goal="count"),
        Subtask(goal="join", needs=(1, 2)),
        Subtask(goal="log", needs=(1,)),
        Subtask(goal="report", needs=(3,)),
    )
    assert Plan(subtasks=subtasks).waves == ((1, 2), (3, 4), (5,))
    assert Plan(subtasks=()).waves == ()


@pytest.mark.parametrize("need", [0, 1, 2, 7, -1])
def test_a_subtask_needs_only_earlier_subtasks(need: int) -> None:
    with pytest.raises(ValueError, match="subtask 1 needs"):
        Plan(subtasks=(Subtask(goal="a", needs=(need,)), Subtask(goal="b")))


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    count = draw(st.integers(0, 8))
    needs = [draw(st.sets(st.integers(1, number), max_size=3)) - {number} for number in range(1, count + 1)]
    return Plan(subtasks=tuple(Subtask(goal="g", needs=tuple(sorted(indices))) for indices in needs))


@given(plans())
def test_each_subtask_runs_once_after_its_needs(plan: Plan) -> None:
    order = [number for wave in plan.waves for number in wave]
    assert sorted(order) == list(range(1, len(plan.subtasks) + 1))
    wave_of = {number: index for index, wave in enumerate(plan.waves) for number in wave}
    for number, subtask in enumerate(plan.subtasks, 1):
        assert all(wave_of[need] < wave_of[number] for need in subtask.needs)
    assert decode_record(Plan, encode_record(plan)) == plan
