"""Two arms, task by task."""

from __future__ import annotations

import random

import pytest

from bench.made_rows import INFRA, arm_rows, row, step
from suture.bench.measures.paired_statistics import mcnemar
from suture.bench.reports.arm_comparison import adjust_comparisons, compare_arms, count_ahead, paired_scores
from suture.bench.rows import BenchmarkRow


def test_with_one_seed_it_is_mcnemar() -> None:
    first = arm_rows("a", [True] * 10 + [False] * 10)
    second = arm_rows("b", [True] * 8 + [False] * 2 + [True] * 10)
    found = compare_arms("a", first, "b", second)
    assert (found.tasks, found.only_first, found.only_second) == (20, 2, 10)
    assert found.p_value == pytest.approx(2 * sum([1, 12, 66]) / 2**12)
    assert found.difference is not None
    assert found.difference.estimate == pytest.approx(0.4)
    assert 0 < found.difference.low < 0.4 < found.difference.high


def test_the_order_of_the_arms_turns_the_sign_and_nothing_else() -> None:
    first, second = arm_rows("a", [True, False, True, True]), arm_rows("b", [False, False, True, False])
    one, other = compare_arms("a", first, "b", second), compare_arms("b", second, "a", first)
    assert one.p_value == other.p_value
    assert one.difference is not None
    assert other.difference is not None
    assert one.difference.estimate == -other.difference.estimate


def test_tasks_of_one_arm_alone_are_left_out_and_counted() -> None:
    first = [row("a", n) for n in range(5)]
    second = [row("b", n) for n in range(3, 10)]
    found = compare_arms("a", first, "b", second)
    assert (found.tasks, found.missing_first, found.missing_second, found.unknown) == (2, 5, 3, 0)


def test_faults_and_missing_grades_leave_their_pair_out() -> None:
    first = [row("a", 0), row("a", 1, fault="no wall"), row("a", 2, step(None)), row("a", 3)]
    second = [row("b", 0), row("b", 1), row("b", 2), row("b", 3, step(INFRA))]
    found = compare_arms("a", first, "b", second)
    assert (found.tasks, found.unknown, found.missing_first, found.missing_second) == (1, 3, 0, 0)


def test_only_seeds_that_both_have_count() -> None:
    first = [row("a", 0, seed=0), row("a", 1, seed=0)]
    second = [row("b", 0, seed=s, right=s > 0) for s in range(3)] + [row("b", 1, seed=7)]
    found = compare_arms("a", first, "b", second)
    assert (found.tasks, found.runs, found.unknown) == (1, 1, 1)
    assert (found.only_first, found.only_second) == (1, 0)


@pytest.mark.parametrize("rows", [[], [row("a", 0, fault="no wall")]])
def test_nothing_to_compare(rows: list[BenchmarkRow]) -> None:
    found = compare_arms("a", rows, "b", rows)
    assert (found.tasks, found.p_value, found.difference, found.detectable) == (0, 1.0, None, None)
    assert not found.significant


def test_ties_everywhere_are_no_difference() -> None:
    found = compare_arms("a", arm_rows("a", [True, False] * 20), "b", arm_rows("b", [True, False] * 20))
    assert (found.only_first, found.only_second, found.p_value) == (0, 0, 1.0)
    assert found.difference is not None
    assert found.difference.estimate == 0
    assert found.difference.low < -0.05 < 0.05 < found.difference.high
    assert found.detectable is not None
    assert found.detectable > 0.1


def test_the_interval_with_one_seed_says_what_the_test_says() -> None:
    found = compare_arms("a", arm_rows("a", [False] * 5 + [True] * 35), "b", arm_rows("b", [True] * 40))
    assert (found.p_value, found.only_second) == (0.0625, 5)
    assert found.difference is not None
    assert found.difference.low < 0 < found.difference.estimate < found.difference.high


def test_an_interval_over_seeds_that_agree_has_a_width_all_the_same() -> None:
    first, second = (
        [one for seed in range(3) for one in arm_rows(arm, [True, False] * 12, seed=seed)] for arm in "ab"
    )
    found = compare_arms("a", first, "b", second)
    assert (found.tasks, found.runs) == (24, 72)
    assert found.difference is not None
    assert found.difference.low < -0.1 < 0.1 < found.difference.high
    mixed = [row("b", n, seed=s, right=s == 0) for n in range(24) for s in range(3)]
    bootstrap = compare_arms("a", first, "b", mixed).difference
    assert bootstrap is not None
    assert bootstrap.low < bootstrap.estimate < bootstrap.high


def test_one_task_can_show_nothing() -> None:
    found = compare_arms("a", [row("a", right=False)], "b", [row("b")])
    assert found.p_value == 1.0
    assert found.detectable is None


def test_more_comparisons_ask_for_more() -> None:
    first = arm_rows("a", [False] * 7 + [True] * 33)
    second = arm_rows("b", [True] * 40)
    one = compare_arms("a", first, "b", second)
    three = adjust_comparisons([one, one, one])
    assert one.p_value == pytest.approx(2 / 2**7)
    assert [found.adjusted for found in three] == pytest.approx([3 * one.p_value] * 3)
    assert one.detectable is not None
    assert three[0].detectable is not None
    assert three[0].detectable > one.detectable
    assert adjust_comparisons([]) == ()


def test_arms_that_are_alike_are_seldom_called_different() -> None:
    """Also with several seeds, where the runs of one task are not independent of each other."""
    chance = random.Random(11)
    found = 0
    for _ in range(400):
        rates = [chance.random() for _ in range(25)]
        first, second = (
            [row(arm, n, seed=s, right=chance.random() < rates[n]) for n in range(25) for s in range(3)]
            for arm in "ab"
        )
        found += mcnemar(*count_ahead(paired_scores(first, second))) <= 0.05
    assert found / 400 <= 0.05 + 0.02
