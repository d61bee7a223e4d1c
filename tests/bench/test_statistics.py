"""The statistics agree with brute force and with published values."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from suture.bench.measures.arm_metrics import compute_calibration
from suture.bench.measures.paired_statistics import (
    Interval,
    bootstrap_difference,
    exact_interval,
    find_detectable_difference,
    holm,
    mcnemar,
    paired_interval,
    pass_at_k,
)


@pytest.mark.parametrize(
    ("samples", "right", "k"),
    [
        (samples, right, k)
        for samples in range(1, 7)
        for right in range(samples + 1)
        for k in range(1, samples + 1)
    ],
)
def test_pass_at_k_is_the_share_of_draws_with_a_right_sample(samples: int, right: int, k: int) -> None:
    draws = list(itertools.combinations([True] * right + [False] * (samples - right), k))
    assert pass_at_k(samples, right, k) == pytest.approx(sum(map(any, draws)) / len(draws))


@pytest.mark.parametrize(("samples", "right", "k"), [(0, 0, 1), (3, 4, 1), (3, 1, 4), (3, -1, 1), (3, 1, 0)])
def test_pass_at_k_refuses_impossible_counts(samples: int, right: int, k: int) -> None:
    with pytest.raises(ValueError, match="no pass@"):
        pass_at_k(samples, right, k)


def test_mcnemar_is_the_two_sided_sign_test() -> None:
    for first, second in itertools.product(range(8), repeat=2):
        flips = list(itertools.product([0, 1], repeat=first + second))
        imbalance = abs(first - second)
        extreme_flips = sum(abs(2 * sum(flip) - (first + second)) >= imbalance for flip in flips)
        assert mcnemar(first, second) == pytest.approx(extreme_flips / len(flips))


def test_holm_agrees_with_values_computed_by_hand() -> None:
    adjusted = holm({"a": 0.04, "b": 0.01, "c": 0.03})
    assert adjusted == pytest.approx({"a": 0.06, "b": 0.03, "c": 0.06})
    assert holm({"a": 0.9, "b": 0.8}) == {"a": 1.0, "b": 1.0}
    assert holm({}) == {}


@pytest.mark.parametrize(
    ("right", "tasks", "low", "high"),
    [(0, 10, 0.0, 0.3085), (10, 10, 0.6915, 1.0), (9, 10, 0.5550, 0.9975), (50, 100, 0.3983, 0.6017)],
)
def test_exact_intervals_agree_with_published_tables(right: int, tasks: int, low: float, high: float) -> None:
    interval = exact_interval(right, tasks)
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=5e-5)
    assert interval.estimate == right / tasks


def test_an_exact_interval_has_at_least_its_nominal_coverage() -> None:
    for share in (0.05, 0.5, 0.83):
        covered = 0.0
        for right in range(21):
            interval = exact_interval(right, 20)
            probability = math.comb(20, right) * share**right * (1 - share) ** (20 - right)
            covered += probability * (interval.low <= share <= interval.high)
        assert covered >= 0.95


@pytest.fixture(scope="module")
def intervals_of_twelve_tasks() -> dict[tuple[int, int], Interval]:
    """Return all intervals for twelve tasks, by the numbers that only the first or second arm solved."""
    outcomes = [(first, second) for first in range(13) for second in range(13 - first)]
    return {outcome: paired_interval(*outcome, 12) for outcome in outcomes}


def test_a_paired_interval_excludes_zero_when_the_exact_test_is_significant(
    intervals_of_twelve_tasks: dict[tuple[int, int], Interval],
) -> None:
    for (first, second), interval in intervals_of_twelve_tasks.items():
        assert (interval.low > 0 or interval.high < 0) == (mcnemar(first, second) < 0.05)
        assert (
            interval.low < interval.estimate == (second - first) / 12 < interval.high
            or abs(interval.estimate) == 1
        )
        reversed_interval = intervals_of_twelve_tasks[second, first]
        assert (reversed_interval.low, reversed_interval.high) == (-interval.high, -interval.low)
    wide_interval = paired_interval(0, 5, 40)

    assert (mcnemar(0, 5), wide_interval.low < 0 < wide_interval.estimate) == (0.0625, True)


def test_a_paired_interval_has_at_least_its_nominal_coverage(
    intervals_of_twelve_tasks: dict[tuple[int, int], Interval],
) -> None:
    shares = [count / 20 for count in range(21)]
    for first_share, second_share in (
        (first_share, second_share)
        for first_share in shares
        for second_share in shares
        if first_share + second_share <= 1
    ):
        missed = 0.0
        for (first, second), interval in intervals_of_twelve_tasks.items():
            if not interval.low - 1e-9 <= second_share - first_share <= interval.high + 1e-9:
                combinations = math.comb(12, first) * math.comb(12 - first, second)
                remaining_share = max(0.0, 1 - first_share - second_share) ** (12 - first - second)
                missed += combinations * first_share**first * second_share**second * remaining_share
        assert missed <= 0.05


@pytest.mark.parametrize(("only_first", "only_second", "tasks"), [(7, 1, 21), (4, 9, 60), (2, 30, 33)])
def test_a_paired_interval_agrees_with_a_simulation(only_first: int, only_second: int, tasks: int) -> None:
    """The authors of the method simulate it too; the first case is from the manual of their program."""
    generator, discordant = random.Random(1), only_first + only_second

    def draw_quantile(share: tuple[int, int], wins: tuple[int, int], quantile: float) -> float:
        samples = (
            generator.betavariate(*share) * (2 * generator.betavariate(*wins) - 1) for _ in range(20_000)
        )
        return sorted(samples)[int(quantile * 20_000)]

    shares = ((discordant, tasks - discordant + 1), (discordant + 1, tasks - discordant))
    low = min(draw_quantile(share, (only_second, only_first + 1), 0.025) for share in shares)
    high = max(draw_quantile(share, (only_second + 1, only_first), 0.975) for share in shares)

    interval = paired_interval(only_first, only_second, tasks)

    assert (interval.low, interval.high) == pytest.approx((low, high), abs=0.015)


def test_a_paired_interval_with_a_certain_share_has_a_closed_form() -> None:
    equal_interval = paired_interval(0, 0, 24)
    assert equal_interval.estimate == 0
    assert equal_interval.high == -equal_interval.low == pytest.approx(1 - 0.025 ** (1 / 24))

    certain_interval, conditional_interval = paired_interval(2, 8, 10), exact_interval(8, 10)
    assert (certain_interval.low, certain_interval.high) == pytest.approx(
        (2 * conditional_interval.low - 1, 2 * conditional_interval.high - 1)
    )


@pytest.mark.parametrize(("only_first", "only_second", "tasks"), [(0, 0, 0), (3, 3, 5), (-1, 2, 5)])
def test_a_paired_interval_refuses_impossible_counts(only_first: int, only_second: int, tasks: int) -> None:
    with pytest.raises(ValueError, match="cannot be compared"):
        paired_interval(only_first, only_second, tasks)


def test_a_bootstrap_finds_a_real_difference_and_no_false_one() -> None:
    generator = random.Random(7)
    weak = [[float(generator.random() < 0.4) for _ in range(3)] for _ in range(150)]
    strong = [[float(generator.random() < 0.7) for _ in range(3)] for _ in range(150)]
    interval = bootstrap_difference(weak, strong)
    assert 0.15 < interval.low < interval.estimate < interval.high < 0.4

    equal_interval = bootstrap_difference(weak, weak)
    assert equal_interval.low < 0 < equal_interval.high
    assert equal_interval.estimate == 0
    assert bootstrap_difference(weak, strong) == interval


def test_arms_with_different_tasks_are_not_compared() -> None:
    with pytest.raises(ValueError, match="same tasks"):
        bootstrap_difference([[1.0]], [[1.0], [0.0]])


def test_a_share_of_a_large_set_has_an_interval() -> None:
    interval = exact_interval(700, 1405)
    assert 0.47 < interval.low < interval.estimate < interval.high < 0.53


def test_a_detectable_difference_is_found_with_the_stated_power() -> None:
    generator = random.Random(3)
    detectable = find_detectable_difference(100, 0.2)
    assert detectable is not None
    assert 0.1 < detectable < 0.2

    def compute_power(difference: float) -> float:
        better = (0.2 + difference) / 2
        hits = 0
        for _ in range(2000):
            draws = [generator.random() for _ in range(100)]
            wins = sum(draw < better for draw in draws)
            losses = sum(better <= draw < 0.2 for draw in draws)
            hits += wins > losses and mcnemar(wins, losses) <= 0.05
        return hits / 2000

    assert compute_power(detectable) == pytest.approx(0.8, abs=0.04)
    assert compute_power(detectable / 2) < 0.5


def test_a_larger_sample_detects_smaller_differences() -> None:
    sizes = [find_detectable_difference(tasks, 0.1) for tasks in (20, 80, 400)]
    assert sizes == sorted((size for size in sizes if size is not None), reverse=True)
    assert find_detectable_difference(5, 0.2) is None
    assert find_detectable_difference(0, 0.2) is None
    # With six tasks all must differ: 0.8 ** (1 / 6).
    assert find_detectable_difference(6, 0.2) == pytest.approx(0.964, abs=0.001)


def test_calibration_of_an_honest_coin_has_no_error() -> None:
    calibration = compute_calibration([(0.5, True), (0.5, False)] * 10)
    assert calibration.brier == pytest.approx(0.25)
    assert calibration.ece == pytest.approx(0)


def test_calibration_measures_overconfidence() -> None:
    calibration = compute_calibration([(0.95, False)] * 3 + [(0.95, True)])
    assert calibration.ece == pytest.approx(0.7)


def test_accuracy_rises_when_uncertain_answers_are_excluded() -> None:
    calibration = compute_calibration([(0.9, True), (0.8, True), (0.3, False), (0.1, False)])
    assert [coverage for coverage, _ in calibration.selective] == [1.0, 0.75, 0.5, 0.25]
    assert [accuracy for _, accuracy in calibration.selective] == pytest.approx([0.5, 2 / 3, 1.0, 1.0])


def test_the_order_of_equally_confident_answers_does_not_matter() -> None:
    answers = [(0.9, True), (0.9, False), (0.9, True), (0.2, False)]
    calibration = compute_calibration(answers)
    assert calibration == compute_calibration(answers[::-1])
    assert [coverage for coverage, _ in calibration.selective] == [1.0, 0.75]
    assert [accuracy for _, accuracy in calibration.selective] == pytest.approx([0.5, 2 / 3])


@pytest.mark.parametrize("answers", [[], [(1.2, True)]])
def test_calibration_refuses_an_invalid_confidence(answers: list[tuple[float, bool]]) -> None:
    with pytest.raises(ValueError, match="confidence in"):
        compute_calibration(answers)
