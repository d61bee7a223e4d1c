"""Each metric is computed from rows whose value can be counted by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.made_rows import INFRA_GRADE, RIGHT_GRADE, make_arm_rows, make_benchmark_rows, make_row, make_step
from suture.bench.grading.hidden_checks import Grade
from suture.bench.measures.arm_metrics import Ratio, compute_arm_metrics, estimate_task_share
from suture.bench.rows import BenchmarkRow


def test_solved_counts_the_best_candidate_within_the_cap() -> None:
    rows = [
        make_row(
            "a", 0, make_step(False, completion_tokens=200), make_step(True, completion_tokens=900, round=1)
        ),
        make_row("a", 1, make_step(True, completion_tokens=300)),
        make_row(
            "a", 2, make_step(True, completion_tokens=100), make_step(False, completion_tokens=1500, round=1)
        ),
        # The last candidate of this run is beyond the cap.
        make_row(
            "a", 3, make_step(False, completion_tokens=100), make_step(True, completion_tokens=2100, round=1)
        ),
    ]
    metrics = compute_arm_metrics("a", rows).solved

    assert (metrics.tokens, metrics.runs, metrics.tasks) == (2000, Ratio(count=2, of=4), 4)
    assert metrics.completion_tokens == pytest.approx((900 + 300 + 1500 + 2100) / 4)
    assert metrics.prompt_tokens == pytest.approx(3 * metrics.completion_tokens)


def test_a_candidate_that_leads_again_is_the_best_one() -> None:
    """Search steps cost no tokens and may take no time, so two of them can be equal."""
    first, second = make_step(True, completion_tokens=0), make_step(False, completion_tokens=0, round=1)
    assert make_row("a", 0, first, second, replace(first)).solved() is True


def test_claims_are_compared_with_the_grades() -> None:
    rows = [
        make_row("a", 0),
        make_row("a", 1, make_step(False, claimed=True), outcome="healed", forged=True),
        make_row("a", 2, make_step(True, claimed=False), outcome="not_healed"),
        make_row("a", 3, right=False),
    ]
    metrics = compute_arm_metrics("a", rows)

    assert metrics.claimed == Ratio(count=2, of=4)
    assert metrics.forged == Ratio(count=1, of=1)
    assert metrics.false_claims == Ratio(count=1, of=2)
    assert metrics.unclaimed_right == Ratio(count=1, of=2)


def test_harm_is_a_right_first_and_a_wrong_last_candidate() -> None:
    given_code = make_step(True, origin="user", round=-1, completion_tokens=0)
    rows = [
        make_row("a", 0, make_step(True), make_step(False, completion_tokens=200, round=1)),
        make_row("a", 1, make_step(True)),
        make_row("a", 2, make_step(False), make_step(True, completion_tokens=200, round=1)),
        make_row("a", 3, given_code, make_step(False, completion_tokens=200)),
        # The wrong candidate of this run never was the best one.
        make_row(
            "a", 4, make_step(True), make_step(False, completion_tokens=200, round=1, is_best_so_far=False)
        ),
    ]

    metrics = compute_arm_metrics("a", rows)

    assert metrics.harmed == Ratio(count=2, of=4)
    assert metrics.first_pass == Ratio(count=3, of=5)
    assert metrics.healed == Ratio(count=1, of=2)


def test_given_code_does_not_count_as_the_first_candidate() -> None:
    given_code = make_step(False, origin="user", round=-1, completion_tokens=0)
    metrics = compute_arm_metrics("a", [make_row("a", 0, given_code, make_step(True, completion_tokens=200))])
    assert metrics.first_pass == Ratio(count=1, of=1)
    assert [(group.rounds, group.runs) for group in metrics.rounds] == [(1, Ratio(count=1, of=1))]


def test_given_code_that_needs_no_fix_counts_as_a_first_pass() -> None:
    given_code = make_step(True, origin="user", round=-1, completion_tokens=0)
    metrics = compute_arm_metrics("a", [make_row("a", 0, given_code, outcome="nothing_to_heal")])
    assert metrics.first_pass == Ratio(count=1, of=1)
    assert metrics.healed == Ratio(count=0, of=0)


def test_code_that_breaks_the_sandbox_is_wrong_and_named() -> None:
    rows = [
        make_row("a", 0),
        make_row("a", 1, sandbox_failure="SandboxBroken: it lives", outcome="infra_error"),
        make_row("a", 2, make_step(Grade(status="broke_sandbox"))),
    ]
    metrics = compute_arm_metrics("a", rows)

    assert metrics.solved.runs == Ratio(count=1, of=3)
    assert metrics.sandbox_breakers == ("Set/1", "Set/2")
    assert metrics.unknown == Ratio(count=0, of=3)


def test_success_is_counted_by_rounds() -> None:
    rows = [
        make_row("a", 0, make_step(False), make_step(True, completion_tokens=200, round=1)),
        make_row("a", 1, make_step(False), make_step(False, completion_tokens=200, round=1)),
        make_row("a", 2, make_step(False, claimed=True)),
        make_row("a", 3),
    ]
    metrics = compute_arm_metrics("a", rows)

    assert [(group.rounds, group.runs.count, group.runs.of) for group in metrics.rounds] == [
        (1, 1, 2),
        (2, 1, 2),
    ]


def test_faults_and_missing_grades_are_counted_separately() -> None:
    rows = [
        make_row("a", 0),
        make_row("a", 1, fault="the sandbox failed", completion_tokens=9999),
        make_row("a", 2, make_step(INFRA_GRADE)),
        make_row("a", 3, make_step(None)),
    ]
    metrics = compute_arm_metrics("a", rows)

    assert (metrics.runs, metrics.faults, metrics.ungraded) == (4, 2, 1)
    assert metrics.unknown == Ratio(count=3, of=4)
    assert metrics.solved.runs == metrics.claimed == Ratio(count=1, of=1)
    assert metrics.spent.completion_tokens == 100


def test_an_arm_with_only_faults_has_no_numbers() -> None:
    metrics = compute_arm_metrics("a", [make_row("a", n, fault="no sandbox") for n in range(3)])

    assert metrics.faults == 3
    assert metrics.solved.share is None
    assert metrics.calibration is None
    assert metrics.pass_at == ()
    assert metrics.spent.per_solved(metrics.spent.seconds) is None
    assert metrics.claimed.share is None


def test_a_run_without_a_candidate_is_unsolved() -> None:
    empty_run = replace(make_row("a"), steps=(), outcome="budget_exhausted", completion_tokens=50)
    metrics = compute_arm_metrics("a", [empty_run])
    assert metrics.solved.runs == Ratio(count=0, of=1)
    assert metrics.first_pass == metrics.healed == Ratio(count=0, of=1)
    assert [(group.rounds, group.runs.of) for group in metrics.rounds] == [(0, 1)]


def test_the_total_cost_is_unknown_if_one_cost_is() -> None:
    assert compute_arm_metrics("a", [make_row("a", 0), make_row("a", 1)]).spent.cost_usd == pytest.approx(
        0.002
    )
    assert (
        compute_arm_metrics("a", [make_row("a", 0), make_row("a", 1, cost_usd=None)]).spent.cost_usd is None
    )


def test_the_cost_per_solved_run_includes_failed_runs() -> None:
    spending = compute_arm_metrics("a", make_arm_rows("a", [True, False, False, True])).spent
    assert spending.per_solved(spending.completion_tokens) == pytest.approx(200)
    assert spending.per_solved(spending.seconds) == pytest.approx(20)


def test_timeouts_are_wrong_and_named() -> None:
    rows = [make_row("a", 0, make_step(Grade(status="timeout"))), make_row("a", 1)]
    metrics = compute_arm_metrics("a", rows)
    assert metrics.timeouts == ("Set/0",)
    assert metrics.solved.runs == Ratio(count=1, of=2)


def test_verdicts_are_counted_by_evidence() -> None:
    weak_grade = replace(RIGHT_GRADE, evidence="nonce")
    metrics = compute_arm_metrics("a", [make_row("a", 0), make_row("a", 1, make_step(weak_grade))])
    assert metrics.evidence == {"split": 1, "nonce": 1}


def test_pass_at_k_is_computed_over_seeds() -> None:
    rows = [make_row("a", 0, seed=seed, right=seed == 0) for seed in range(3)] + [
        make_row("a", 1, right=False)
    ]
    metrics = compute_arm_metrics("a", rows)
    assert [(estimate.k, estimate.tasks) for estimate in metrics.pass_at] == [(1, 2), (2, 1), (3, 1)]
    assert [estimate.share for estimate in metrics.pass_at] == pytest.approx([(1 / 3 + 0) / 2, 2 / 3, 1.0])


def test_a_task_with_more_seeds_has_the_same_weight() -> None:
    rows = [make_row("a", 0, seed=seed) for seed in range(9)] + [make_row("a", 1, right=False)]
    share = compute_arm_metrics("a", rows).solved.share
    assert share is not None
    assert share.estimate == pytest.approx(0.5)


@pytest.mark.parametrize("score", [0.0, 1.0])
def test_an_interval_always_has_a_width(score: float) -> None:
    share = estimate_task_share([[score] * 3] * 8)
    assert share is not None
    assert share.estimate == score
    assert share.high - share.low > 0.3
    assert estimate_task_share([]) is None


def test_the_confidence_is_compared_with_the_grades() -> None:
    metrics = compute_arm_metrics(
        "a", [make_row("a", 0, confidence=1.0), make_row("a", 1, right=False, confidence=1.0)]
    )
    assert metrics.calibration is not None
    assert metrics.calibration.brier == pytest.approx(0.5)


def test_counts_agree_on_a_whole_benchmark() -> None:
    rows = make_benchmark_rows(40, seeds=2)
    for arm in {row.arm for row in rows}:
        arm_rows: list[BenchmarkRow] = [row for row in rows if row.arm == arm]
        metrics = compute_arm_metrics(arm, arm_rows)
        assert metrics.runs == sum(group.runs.of for group in metrics.rounds) == 80
        assert (
            sum(group.runs.count for group in metrics.rounds)
            == metrics.spent.solved
            == metrics.solved.runs.count
        )
        assert metrics.first_pass.of - metrics.first_pass.count == metrics.healed.of
        right_count = metrics.claimed.count - metrics.false_claims.count + metrics.unclaimed_right.count
        assert right_count == metrics.spent.solved
