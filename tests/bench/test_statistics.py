"""The statistics, against brute force and against values known by other means."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from suture.bench.measures.calibration import compute_calibration
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
    [(n, c, k) for n in range(1, 7) for c in range(n + 1) for k in range(1, n + 1)],
)
def test_pass_at_k_is_the_share_of_draws_with_a_right_one(samples: int, right: int, k: int) -> None:
    draws = list(itertools.combinations([True] * right + [False] * (samples - right), k))
    assert pass_at_k(samples, right, k) == pytest.approx(sum(map(any, draws)) / len(draws))


@pytest.mark.parametrize(("samples", "right", "k"), [(0, 0, 1), (3, 4, 1), (3, 1, 4), (3, -1, 1), (3, 1, 0)])
def test_pass_at_k_refuses_what_makes_no_sense(samples: int, right: int, k: int) -> None:
    with pytest.raises(ValueError, match="no pass@"):
        pass_at_k(samples, right, k)


def test_mcnemar_is_the_two_sided_sign_test() -> None:
    for first, second in itertools.product(range(8), repeat=2):
        flips = list(itertools.product([0, 1], repeat=first + second))
        far = abs(first - second)
        as_far = sum(abs(2 * sum(flip) - (first + second)) >= far for flip in flips)
        assert mcnemar(first, second) == pytest.approx(as_far / len(flips))


def test_holm_by_hand() -> None:
    adjusted = holm({"a": 0.04, "b": 0.01, "c": 0.03})
    assert adjusted == pytest.approx({"a": 0.06, "b": 0.03, "c": 0.06})
    assert holm({"a": 0.9, "b": 0.8}) == {"a": 1.0, "b": 1.0}
    assert holm({}) == {}


@pytest.mark.parametrize(
    ("right", "tasks", "low", "high"),
    [(0, 10, 0.0, 0.3085), (10, 10, 0.6915, 1.0), (9, 10, 0.5550, 0.9975), (50, 100, 0.3983, 0.6017)],
)
def test_exact_intervals_are_those_of_the_tables(right: int, tasks: int, low: float, high: float) -> None:
    interval = exact_interval(right, tasks)
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=5e-5)
    assert interval.estimate == right / tasks


def test_an_exact_interval_covers_at_least_as_often_as_it_says() -> None:
    for share in (0.05, 0.5, 0.83):
        covered = 0.0
        for right in range(21):
            interval = exact_interval(right, 20)
            chance = math.comb(20, right) * share**right * (1 - share) ** (20 - right)
            covered += chance * (interval.low <= share <= interval.high)
        assert covered >= 0.95


@pytest.fixture(scope="module")
def of_twelve() -> dict[tuple[int, int], Interval]:
    """All intervals of twelve tasks, by how many only the first arm solved and how many only the second."""
    outcomes = [(first, second) for first in range(13) for second in range(13 - first)]
    return {outcome: paired_interval(*outcome, 12) for outcome in outcomes}


def test_a_paired_interval_leaves_0_out_just_where_the_exact_test_finds_something(
    of_twelve: dict[tuple[int, int], Interval],
) -> None:
    for (first, second), found in of_twelve.items():
        assert (found.low > 0 or found.high < 0) == (mcnemar(first, second) < 0.05)
        assert found.low < found.estimate == (second - first) / 12 < found.high or abs(found.estimate) == 1
        turned = of_twelve[second, first]
        assert (turned.low, turned.high) == (-found.high, -found.low)
    told = paired_interval(0, 5, 40)
    assert (mcnemar(0, 5), told.low < 0 < told.estimate) == (0.0625, True)


def test_a_paired_interval_covers_the_truth_as_often_as_it_says(
    of_twelve: dict[tuple[int, int], Interval],
) -> None:
    shares = [n / 20 for n in range(21)]
    for one, other in ((one, other) for one in shares for other in shares if one + other <= 1):
        missed = 0.0
        for (first, second), found in of_twelve.items():
            if not found.low - 1e-9 <= other - one <= found.high + 1e-9:
                ways = math.comb(12, first) * math.comb(12 - first, second)
                neither = max(0.0, 1 - one - other) ** (12 - first - second)
                missed += ways * one**first * other**second * neither
        assert missed <= 0.05


@pytest.mark.parametrize(("only_first", "only_second", "tasks"), [(7, 1, 21), (4, 9, 60), (2, 30, 33)])
def test_a_paired_interval_is_the_product_of_two_distributions(
    only_first: int, only_second: int, tasks: int
) -> None:
    """By simulation, as its authors do it too; the first case is of their program's manual."""
    chance, discordant = random.Random(1), only_first + only_second

    def drawn(share: tuple[int, int], wins: tuple[int, int], place: float) -> float:
        made = (chance.betavariate(*share) * (2 * chance.betavariate(*wins) - 1) for _ in range(20_000))
        return sorted(made)[int(place * 20_000)]

    shares = ((discordant, tasks - discordant + 1), (discordant + 1, tasks - discordant))
    low = min(drawn(share, (only_second, only_first + 1), 0.025) for share in shares)
    high = max(drawn(share, (only_second + 1, only_first), 0.975) for share in shares)
    found = paired_interval(only_first, only_second, tasks)
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.015)


def test_a_paired_interval_where_one_of_the_two_shares_is_certain() -> None:
    none = paired_interval(0, 0, 24)
    assert none.estimate == 0
    assert none.high == -none.low == pytest.approx(1 - 0.025 ** (1 / 24))
    every, of_these = paired_interval(2, 8, 10), exact_interval(8, 10)
    assert (every.low, every.high) == pytest.approx((2 * of_these.low - 1, 2 * of_these.high - 1))


@pytest.mark.parametrize(("only_first", "only_second", "tasks"), [(0, 0, 0), (3, 3, 5), (-1, 2, 5)])
def test_a_paired_interval_refuses_what_makes_no_sense(only_first: int, only_second: int, tasks: int) -> None:
    with pytest.raises(ValueError, match="cannot be compared"):
        paired_interval(only_first, only_second, tasks)


def test_a_bootstrap_finds_a_difference_and_owns_up_to_none() -> None:
    chance = random.Random(7)
    weak = [[float(chance.random() < 0.4) for _ in range(3)] for _ in range(150)]
    strong = [[float(chance.random() < 0.7) for _ in range(3)] for _ in range(150)]
    found = bootstrap_difference(weak, strong)
    assert 0.15 < found.low < found.estimate < found.high < 0.4
    none = bootstrap_difference(weak, weak)
    assert none.low < 0 < none.high
    assert none.estimate == 0
    assert bootstrap_difference(weak, strong) == found


def test_arms_of_other_tasks_are_not_compared() -> None:
    with pytest.raises(ValueError, match="same tasks"):
        bootstrap_difference([[1.0]], [[1.0], [0.0]])


def test_a_share_of_a_large_set_has_an_interval() -> None:
    interval = exact_interval(700, 1405)
    assert 0.47 < interval.low < interval.estimate < interval.high < 0.53


def test_what_a_sample_can_resolve_is_found_as_often_as_it_says() -> None:
    chance = random.Random(3)
    found = find_detectable_difference(100, 0.2)
    assert found is not None
    assert 0.1 < found < 0.2

    def detects(difference: float) -> float:
        better = (0.2 + difference) / 2
        hits = 0
        for _ in range(2000):
            draws = [chance.random() for _ in range(100)]
            wins = sum(draw < better for draw in draws)
            losses = sum(better <= draw < 0.2 for draw in draws)
            hits += wins > losses and mcnemar(wins, losses) <= 0.05
        return hits / 2000

    assert detects(found) == pytest.approx(0.8, abs=0.04)
    assert detects(found / 2) < 0.5


def test_a_larger_sample_resolves_more_and_a_tiny_one_nothing() -> None:
    sizes = [find_detectable_difference(tasks, 0.1) for tasks in (20, 80, 400)]
    assert sizes == sorted((size for size in sizes if size is not None), reverse=True)
    assert find_detectable_difference(5, 0.2) is None
    assert find_detectable_difference(0, 0.2) is None
    assert find_detectable_difference(6, 0.2) == pytest.approx(
        0.964, abs=0.001
    )  # all six must differ: 0.8 ** (1 / 6)


def test_calibration_of_a_coin_that_says_so() -> None:
    found = compute_calibration([(0.5, True), (0.5, False)] * 10)
    assert found.brier == pytest.approx(0.25)
    assert found.ece == pytest.approx(0)


def test_calibration_of_a_boaster() -> None:
    found = compute_calibration([(0.95, False)] * 3 + [(0.95, True)])
    assert found.ece == pytest.approx(0.7)
    assert [b.count for b in found.bins] == [4]


def test_leaving_out_the_unsure_answers_pays_where_confidence_means_something() -> None:
    found = compute_calibration([(0.9, True), (0.8, True), (0.3, False), (0.1, False)])
    assert [coverage for coverage, _ in found.selective] == [1.0, 0.75, 0.5, 0.25]
    assert [accuracy for _, accuracy in found.selective] == pytest.approx([0.5, 2 / 3, 1.0, 1.0])


def test_the_order_of_equally_sure_answers_does_not_matter() -> None:
    answers = [(0.9, True), (0.9, False), (0.9, True), (0.2, False)]
    found = compute_calibration(answers)
    assert found == compute_calibration(answers[::-1])
    assert [coverage for coverage, _ in found.selective] == [1.0, 0.75]
    assert [accuracy for _, accuracy in found.selective] == pytest.approx([0.5, 2 / 3])


@pytest.mark.parametrize("answers", [[], [(1.2, True)]])
def test_calibration_refuses_what_is_no_confidence(answers: list[tuple[float, bool]]) -> None:
    with pytest.raises(ValueError, match="confidence in"):
        compute_calibration(answers)
