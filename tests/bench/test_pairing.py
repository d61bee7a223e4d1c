"""Two arms are compared task by task."""

from __future__ import annotations

import random

import pytest

from bench.made_rows import INFRA_GRADE, make_arm_rows, make_row, make_step
from suture.bench.measures.paired_statistics import mcnemar
from suture.bench.reports.arm_comparison import adjust_comparisons, compare_arms, count_ahead, paired_scores
from suture.bench.rows import BenchmarkRow


def test_a_comparison_with_one_seed_is_mcnemars_test() -> None:
    first = make_arm_rows("a", [True] * 10 + [False] * 10)
    second = make_arm_rows("b", [True] * 8 + [False] * 2 + [True] * 10)

    comparison = compare_arms("a", first, "b", second)

    assert (comparison.tasks, comparison.only_first, comparison.only_second) == (20, 2, 10)
    assert comparison.p_value == pytest.approx(2 * sum([1, 12, 66]) / 2**12)
    assert comparison.difference is not None
    assert comparison.difference.estimate == pytest.approx(0.4)
    assert 0 < comparison.difference.low < 0.4 < comparison.difference.high


def test_the_order_of_the_arms_only_changes_the_sign() -> None:
    first, second = (
        make_arm_rows("a", [True, False, True, True]),
        make_arm_rows("b", [False, False, True, False]),
    )
    first_comparison, second_comparison = (
        compare_arms("a", first, "b", second),
        compare_arms("b", second, "a", first),
    )

    assert first_comparison.p_value == second_comparison.p_value
    assert first_comparison.difference is not None
    assert second_comparison.difference is not None
    assert first_comparison.difference.estimate == -second_comparison.difference.estimate


def test_tasks_of_only_one_arm_are_excluded_and_counted() -> None:
    first = [make_row("a", n) for n in range(5)]
    second = [make_row("b", n) for n in range(3, 10)]

    comparison = compare_arms("a", first, "b", second)

    assert (comparison.tasks, comparison.missing_first, comparison.missing_second, comparison.unknown) == (
        2,
        5,
        3,
        0,
    )


def test_faults_and_missing_grades_exclude_their_pair() -> None:
    first = [
        make_row("a", 0),
        make_row("a", 1, fault="no sandbox"),
        make_row("a", 2, make_step(None)),
        make_row("a", 3),
    ]
    second = [make_row("b", 0), make_row("b", 1), make_row("b", 2), make_row("b", 3, make_step(INFRA_GRADE))]

    comparison = compare_arms("a", first, "b", second)

    assert (comparison.tasks, comparison.unknown, comparison.missing_first, comparison.missing_second) == (
        1,
        3,
        0,
        0,
    )


def test_only_common_seeds_count() -> None:
    first = [make_row("a", 0, seed=0), make_row("a", 1, seed=0)]
    second = [make_row("b", 0, seed=seed, right=seed > 0) for seed in range(3)] + [make_row("b", 1, seed=7)]
    comparison = compare_arms("a", first, "b", second)
    assert (comparison.tasks, comparison.runs, comparison.unknown) == (1, 1, 1)
    assert (comparison.only_first, comparison.only_second) == (1, 0)


@pytest.mark.parametrize("rows", [[], [make_row("a", 0, fault="no sandbox")]])
def test_arms_without_results_have_no_difference(rows: list[BenchmarkRow]) -> None:
    comparison = compare_arms("a", rows, "b", rows)

    assert (comparison.tasks, comparison.p_value, comparison.difference, comparison.detectable) == (
        0,
        1.0,
        None,
        None,
    )
    assert not comparison.significant


def test_only_ties_are_no_difference() -> None:
    comparison = compare_arms(
        "a", make_arm_rows("a", [True, False] * 20), "b", make_arm_rows("b", [True, False] * 20)
    )

    assert (comparison.only_first, comparison.only_second, comparison.p_value) == (0, 0, 1.0)
    assert comparison.difference is not None
    assert comparison.difference.estimate == 0
    assert comparison.difference.low < -0.05 < 0.05 < comparison.difference.high
    assert comparison.detectable is not None
    assert comparison.detectable > 0.1


def test_the_interval_with_one_seed_agrees_with_the_test() -> None:
    comparison = compare_arms(
        "a", make_arm_rows("a", [False] * 5 + [True] * 35), "b", make_arm_rows("b", [True] * 40)
    )
    assert (comparison.p_value, comparison.only_second) == (0.0625, 5)
    assert comparison.difference is not None
    assert comparison.difference.low < 0 < comparison.difference.estimate < comparison.difference.high


def test_an_interval_over_equal_seeds_has_a_width() -> None:
    first, second = (
        [
            first_comparison
            for seed in range(3)
            for first_comparison in make_arm_rows(arm, [True, False] * 12, seed=seed)
        ]
        for arm in "ab"
    )
    comparison = compare_arms("a", first, "b", second)
    assert (comparison.tasks, comparison.runs) == (24, 72)
    assert comparison.difference is not None
    assert comparison.difference.low < -0.1 < 0.1 < comparison.difference.high

    mixed = [make_row("b", n, seed=seed, right=seed == 0) for n in range(24) for seed in range(3)]
    bootstrap = compare_arms("a", first, "b", mixed).difference
    assert bootstrap is not None
    assert bootstrap.low < bootstrap.estimate < bootstrap.high


def test_one_task_cannot_show_a_difference() -> None:
    comparison = compare_arms("a", [make_row("a", right=False)], "b", [make_row("b")])
    assert comparison.p_value == 1.0
    assert comparison.detectable is None


def test_more_comparisons_need_a_larger_difference() -> None:
    first = make_arm_rows("a", [False] * 7 + [True] * 33)
    second = make_arm_rows("b", [True] * 40)
    first_comparison = compare_arms("a", first, "b", second)

    adjusted_comparisons = adjust_comparisons([first_comparison, first_comparison, first_comparison])

    assert first_comparison.p_value == pytest.approx(2 / 2**7)
    assert [comparison.adjusted for comparison in adjusted_comparisons] == pytest.approx(
        [3 * first_comparison.p_value] * 3
    )
    assert first_comparison.detectable is not None
    assert adjusted_comparisons[0].detectable is not None
    assert adjusted_comparisons[0].detectable > first_comparison.detectable
    assert adjust_comparisons([]) == ()


def test_equal_arms_are_seldom_called_different() -> None:
    """This also holds with several seeds, although the runs of one task are not independent."""
    generator = random.Random(11)
    false_positives = 0

    for _ in range(400):
        rates = [generator.random() for _ in range(25)]
        first, second = (
            [
                make_row(arm, n, seed=seed, right=generator.random() < rates[n])
                for n in range(25)
                for seed in range(3)
            ]
            for arm in "ab"
        )
        false_positives += mcnemar(*count_ahead(paired_scores(first, second))) <= 0.05

    assert false_positives / 400 <= 0.05 + 0.02
