"""Plans: subtasks need only earlier ones, and waves respect that."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suture.core.records import Plan, Subtask, decode_record, encode_record


def test_independent_parts_are_one_wave() -> None:
    parts = (
        Subtask(goal="read"),
        Subtask(goal="count"),
        Subtask(goal="join", needs=(1, 2)),
        Subtask(goal="log", needs=(1,)),
        Subtask(goal="report", needs=(3,)),
    )
    assert Plan(subtasks=parts).waves == ((1, 2), (3, 4), (5,))
    assert Plan(subtasks=()).waves == ()


@pytest.mark.parametrize("need", [0, 1, 2, 7, -1])
def test_a_part_needs_only_parts_before_it(need: int) -> None:
    with pytest.raises(ValueError, match="subtask 1 needs"):
        Plan(subtasks=(Subtask(goal="a", needs=(need,)), Subtask(goal="b")))


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    count = draw(st.integers(0, 8))
    needs = [draw(st.sets(st.integers(1, number), max_size=3)) - {number} for number in range(1, count + 1)]
    return Plan(subtasks=tuple(Subtask(goal="g", needs=tuple(sorted(some))) for some in needs))


@given(plans())
def test_each_part_comes_once_and_after_all_that_it_needs(plan: Plan) -> None:
    order = [number for wave in plan.waves for number in wave]
    assert sorted(order) == list(range(1, len(plan.subtasks) + 1))
    wave_of = {number: at for at, wave in enumerate(plan.waves) for number in wave}
    for number, subtask in enumerate(plan.subtasks, 1):
        assert all(wave_of[need] < wave_of[number] for need in subtask.needs)
    assert decode_record(Plan, encode_record(plan)) == plan
