"""Metrics, each on rows where the answer is known by counting."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.made_rows import INFRA, RIGHT, arm_rows, benchmark_rows, row, step
from suture.bench.grading.hidden_checks import Grade
from suture.bench.measures.arm_metrics import Ratio, compute_arm_metrics, estimate_task_share
from suture.bench.rows import BenchmarkRow, GeneratedTestRecord


def test_solved_is_what_the_user_had_within_the_cap() -> None:
    rows = [
        row("a", 0, step(False, completion_tokens=200), step(True, completion_tokens=900, round=1)),
        row("a", 1, step(True, completion_tokens=300)),
        row("a", 2, step(True, completion_tokens=100), step(False, completion_tokens=1500, round=1)),
        row(
            "a", 3, step(False, completion_tokens=100), step(True, completion_tokens=2100, round=1)
        ),  # beyond the cap
    ]
    found = compute_arm_metrics("a", rows).solved
    assert (found.tokens, found.runs, found.tasks) == (2000, Ratio(count=2, of=4), 4)
    assert found.completion_tokens == pytest.approx((900 + 300 + 1500 + 2100) / 4)
    assert found.prompt_tokens == pytest.approx(3 * found.completion_tokens)


def test_the_last_that_led_is_the_leader_though_it_led_before() -> None:
    """Steps of a search cost no tokens and may take no time: two of them can be equal, word for word."""
    first, second = step(True, completion_tokens=0), step(False, completion_tokens=0, round=1)
    assert row("a", 0, first, second, replace(first)).solved() is True


def test_claims_are_held_against_the_truth() -> None:
    rows = [
        row("a", 0),
        row("a", 1, step(False, claimed=True), outcome="healed", forged=True),
        row("a", 2, step(True, claimed=False), outcome="not_healed"),
        row("a", 3, right=False),
    ]
    found = compute_arm_metrics("a", rows)
    assert found.claimed == Ratio(count=2, of=4)
    assert found.forged == Ratio(count=1, of=1)
    assert found.false_claims == Ratio(count=1, of=2)
    assert found.unclaimed_right == Ratio(count=1, of=2)
    assert found.outcomes == {"healed": 2, "not_healed": 2}


def test_harm_is_right_first_and_wrong_in_the_end() -> None:
    given = step(True, origin="user", round=-1, completion_tokens=0)
    rows = [
        row("a", 0, step(True), step(False, completion_tokens=200, round=1)),
        row("a", 1, step(True)),
        row("a", 2, step(False), step(True, completion_tokens=200, round=1)),
        row("a", 3, given, step(False, completion_tokens=200)),
        row(
            "a", 4, step(True), step(False, completion_tokens=200, round=1, is_best_so_far=False)
        ),  # never worse
    ]
    found = compute_arm_metrics("a", rows)
    assert found.harmed == Ratio(count=2, of=4)
    assert found.first_pass == Ratio(count=3, of=5)
    assert found.healed == Ratio(count=1, of=2)


def test_given_code_is_no_first_candidate() -> None:
    given = step(False, origin="user", round=-1, completion_tokens=0, error="AssertionError")
    found = compute_arm_metrics("a", [row("a", 0, given, step(True, completion_tokens=200))])
    assert found.first_pass == Ratio(count=1, of=1)
    assert found.errors == ()
    assert [(one.rounds, one.runs) for one in found.rounds] == [(1, Ratio(count=1, of=1))]


def test_given_code_that_needs_no_candidate_has_passed_at_first() -> None:
    given = step(True, origin="user", round=-1, completion_tokens=0)
    found = compute_arm_metrics("a", [row("a", 0, given, outcome="nothing_to_heal")])
    assert found.first_pass == Ratio(count=1, of=1)
    assert found.healed == Ratio(count=0, of=0)


def test_what_fells_the_wall_is_wrong_and_named() -> None:
    rows = [
        row("a", 0),
        row("a", 1, sandbox_failure="SandboxBroken: it lives", outcome="infra_error"),
        row("a", 2, step(Grade(status="broke_sandbox"))),
    ]
    found = compute_arm_metrics("a", rows)
    assert found.solved.runs == Ratio(count=1, of=3)
    assert found.sandbox_breakers == ("Set/1", "Set/2")
    assert found.unknown == Ratio(count=0, of=3)


def test_rounds_and_error_classes() -> None:
    rows = [
        row("a", 0, step(False, error="TypeError"), step(True, completion_tokens=200, round=1)),
        row(
            "a",
            1,
            step(False, error="TypeError"),
            step(False, completion_tokens=200, round=1, error="KeyError"),
        ),
        row("a", 2, step(False, claimed=True)),
        row("a", 3),
    ]
    found = compute_arm_metrics("a", rows)
    assert [(one.rounds, one.runs.count, one.runs.of) for one in found.rounds] == [(1, 1, 2), (2, 1, 2)]
    assert [(one.error, one.healed.count, one.healed.of) for one in found.errors] == [
        ("TypeError", 1, 2),
        ("none seen", 0, 1),
    ]


def test_faults_and_missing_grades_count_nowhere_but_apart() -> None:
    rows = [
        row("a", 0),
        row("a", 1, fault="the wall failed", completion_tokens=9999),
        row("a", 2, step(INFRA)),
        row("a", 3, step(None)),
    ]
    found = compute_arm_metrics("a", rows)
    assert (found.runs, found.faults, found.ungraded) == (4, 2, 1)
    assert found.unknown == Ratio(count=3, of=4)
    assert found.solved.runs == found.claimed == Ratio(count=1, of=1)
    assert found.spent.completion_tokens == 100


def test_an_arm_of_faults_alone_has_no_numbers() -> None:
    found = compute_arm_metrics("a", [row("a", n, fault="no wall") for n in range(3)])
    assert found.faults == 3
    assert found.solved.share is None
    assert found.calibration is None
    assert found.pass_at == ()
    assert found.spent.per_solved(found.spent.seconds) is None
    assert found.claimed.share is None


def test_a_run_without_a_candidate_is_unsolved() -> None:
    nothing = replace(row("a"), steps=(), outcome="budget_exhausted", completion_tokens=50)
    found = compute_arm_metrics("a", [nothing])
    assert found.solved.runs == Ratio(count=0, of=1)
    assert found.first_pass == found.healed == Ratio(count=0, of=1)
    assert [(one.error, one.healed.of) for one in found.errors] == [("no candidate", 1)]
    assert [(one.rounds, one.runs.of) for one in found.rounds] == [(0, 1)]


def test_money_is_unknown_where_one_price_is() -> None:
    assert compute_arm_metrics("a", [row("a", 0), row("a", 1)]).spent.cost_usd == pytest.approx(0.002)
    assert compute_arm_metrics("a", [row("a", 0), row("a", 1, cost_usd=None)]).spent.cost_usd is None


def test_what_a_solved_run_costs_holds_the_failed_ones_too() -> None:
    spent = compute_arm_metrics("a", arm_rows("a", [True, False, False, True])).spent
    assert spent.per_solved(spent.completion_tokens) == pytest.approx(200)
    assert spent.per_solved(spent.seconds) == pytest.approx(20)


def test_time_outs_are_named_and_wrong() -> None:
    rows = [row("a", 0, step(Grade(status="timeout"))), row("a", 1)]
    found = compute_arm_metrics("a", rows)
    assert found.timeouts == ("Set/0",)
    assert found.solved.runs == Ratio(count=1, of=2)


def test_verdicts_in_reach_of_the_code_are_counted() -> None:
    weak = replace(RIGHT, evidence="nonce")
    found = compute_arm_metrics("a", [row("a", 0), row("a", 1, step(weak))])
    assert found.evidence == {"split": 1, "nonce": 1}


def test_pass_at_k_is_over_seeds() -> None:
    rows = [row("a", 0, seed=seed, right=seed == 0) for seed in range(3)] + [row("a", 1, right=False)]
    found = compute_arm_metrics("a", rows)
    assert [(one.k, one.tasks) for one in found.pass_at] == [(1, 2), (2, 1), (3, 1)]
    assert [one.share for one in found.pass_at] == pytest.approx([(1 / 3 + 0) / 2, 2 / 3, 1.0])


def test_a_task_with_more_seeds_weighs_no_more() -> None:
    rows = [row("a", 0, seed=seed) for seed in range(9)] + [row("a", 1, right=False)]
    share = compute_arm_metrics("a", rows).solved.share
    assert share is not None
    assert share.estimate == pytest.approx(0.5)


@pytest.mark.parametrize("score", [0.0, 1.0])
def test_an_interval_is_never_of_no_width(score: float) -> None:
    share = estimate_task_share([[score] * 3] * 8)
    assert share is not None
    assert share.estimate == score
    assert share.high - share.low > 0.3
    assert estimate_task_share([]) is None


def test_the_confidence_is_held_against_the_truth() -> None:
    found = compute_arm_metrics("a", [row("a", 0, confidence=1.0), row("a", 1, right=False, confidence=1.0)])
    assert found.calibration is not None
    assert found.calibration.brier == pytest.approx(0.5)


def test_counts_agree_on_a_whole_benchmark() -> None:
    rows = benchmark_rows(40, seeds=2)
    for arm in {one.arm for one in rows}:
        mine: list[BenchmarkRow] = [one for one in rows if one.arm == arm]
        found = compute_arm_metrics(arm, mine)
        assert sum(found.outcomes.values()) == found.runs == sum(one.runs.of for one in found.rounds) == 80
        assert sum(one.runs.count for one in found.rounds) == found.spent.solved == found.solved.runs.count
        assert found.first_pass.of - found.first_pass.count == found.healed.of
        assert sum(one.healed.of for one in found.errors) == found.healed.of
        right = found.claimed.count - found.false_claims.count + found.unclaimed_right.count
        assert right == found.spent.solved


def test_trust_in_generated_tests_is_held_against_the_reference() -> None:
    tests = [
        GeneratedTestRecord(trust=1.0, decided=True, right=True),
        GeneratedTestRecord(trust=1.0, decided=True, right=False),
        GeneratedTestRecord(trust=0.5, decided=True, right=None),
        GeneratedTestRecord(trust=0.0, decided=False, right=False),
    ]
    rows = [row("a", 0, tests=tuple(tests[:2])), row("a", 1, tests=tuple(tests[2:])), row("a", 2)]
    found = compute_arm_metrics("a", rows).tests
    assert found is not None
    assert (found.decided, found.others, found.unknown) == (Ratio(count=1, of=2), Ratio(count=0, of=1), 1)
    assert found.calibration is not None
    assert found.calibration.brier == pytest.approx(1 / 3)
    assert compute_arm_metrics("a", [row("a", 2)]).tests is None
