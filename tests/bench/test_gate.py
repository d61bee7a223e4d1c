"""The gate: its error rates, checked exhaustively and by simulation, and its reading of rows."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import replace
from pathlib import Path

import pytest

from bench.made_rows import INFRA_GRADE, make_arm_rows, make_row, make_step
from suture.bench.gate.gate_decision import (
    GateBaseline,
    GateResult,
    decide_gate,
    read_baseline,
    record_baseline,
    write_baseline,
)
from suture.bench.gate.sequential_test import (
    SequentialDecision,
    SequentialDesign,
    compute_chances,
    decide,
    design_sequential_test,
)
from suture.bench.rows import BenchmarkRow
from suture.errors import StorageError, UsageError

DESIGNS = [
    (0.8, 0.15, 0.95, 40),
    (0.8, 0.15, 0.95, 80),
    (0.55, 0.2, 0.9, 30),
    (0.95, 0.3, 0.99, 25),
    (0.3, 0.1, 0.95, 60),
]


@pytest.mark.parametrize(("minimum_rate", "margin", "confidence", "tasks"), DESIGNS)
def test_error_rates_stay_below_their_limit_at_every_true_rate(
    minimum_rate: float, margin: float, confidence: float, tasks: int
) -> None:
    design = design_sequential_test(minimum_rate, margin, confidence, tasks)
    for rate in (minimum_rate, (minimum_rate + 1) / 2, 0.999, 1.0):
        assert compute_chances(design, rate).failed <= 1 - confidence + 1e-12
    for rate in (minimum_rate - margin, (minimum_rate - margin) / 2, 0.001, 0.0):
        assert compute_chances(design, rate).passed <= 1 - confidence + 1e-12


def test_the_chances_equal_those_of_all_possible_sequences() -> None:
    design = design_sequential_test(0.7, 0.3, 0.95, 9)
    for rate in (0.3, 0.5, 0.7):
        chances = dict.fromkeys(("passed", "failed", "undecided"), 0.0)
        length = 0.0
        for results in itertools.product([False, True], repeat=9):
            probability = math.prod(rate if right else 1 - rate for right in results)
            gate_decision = decide(design, results)
            chances[gate_decision.standing] += probability
            length += probability * gate_decision.tasks
        exact = compute_chances(design, rate)
        assert chances == pytest.approx(
            {"passed": exact.passed, "failed": exact.failed, "undecided": exact.undecided}
        )
        assert exact.tasks == pytest.approx(length)
        assert 0 < exact.undecided < 1


def test_the_chances_agree_with_a_simulation() -> None:
    design = design_sequential_test(0.8, 0.15, 0.95, 80)
    generator = random.Random(5)
    for rate in (0.65, 0.8):
        standings = [
            decide(design, (generator.random() < rate for _ in range(80))).standing for _ in range(3000)
        ]
        exact = compute_chances(design, rate)
        assert standings.count("failed") / 3000 == pytest.approx(exact.failed, abs=0.025)
        assert standings.count("passed") / 3000 == pytest.approx(exact.passed, abs=0.025)


def test_a_clear_result_stops_the_test_early() -> None:
    design = design_sequential_test(0.8, 0.15, 0.95, 80)
    for right, standing in ((True, "passed"), (False, "failed")):
        gate_decision = decide(design, itertools.repeat(right))
        assert gate_decision.standing == standing
        assert gate_decision.tasks < 20
    assert compute_chances(design, 0.8).tasks < 50


def test_the_last_task_decides_more_often_than_early_stops_alone() -> None:
    design = design_sequential_test(0.8, 0.15, 0.95, 40)
    early_stops_only = replace(design, fails=(*design.fails[:-1], -1), passes=(*design.passes[:-1], 41))
    assert compute_chances(design, 0.8).undecided < compute_chances(early_stops_only, 0.8).undecided - 0.1


def test_too_few_tasks_leave_the_test_undecided() -> None:
    design = design_sequential_test(0.8, 0.15, 0.95, 5)
    assert decide(design, [True] * 5).standing == "undecided"
    assert decide(design, []).standing == "undecided"


def test_sampling_without_replacement_has_a_lower_error_rate() -> None:
    """Over all orders, a list with exactly the good rate fails no more often than the design says."""
    design = design_sequential_test(0.8, 0.15, 0.95, 60)
    results = [True] * 48 + [False] * 12
    generator = random.Random(2)
    failed = sum(decide(design, generator.sample(results, 60)).standing == "failed" for _ in range(2000))
    assert failed / 2000 <= compute_chances(design, 0.8).failed + 0.01


@pytest.mark.parametrize(
    ("minimum_rate", "margin", "confidence", "tasks"),
    [
        (1.0, 0.1, 0.95, 9),
        (0.8, 0.8, 0.95, 9),
        (0.8, 0.0, 0.95, 9),
        (0.8, -0.1, 0.95, 9),
        (0.8, 0.1, 1.0, 9),
        (0.8, 0.1, 0.5, 9),
        (0.8, 0.1, 0.95, 0),
        (0.0, 0.1, 0.95, 9),
    ],
)
def test_an_impossible_design_is_refused(
    minimum_rate: float, margin: float, confidence: float, tasks: int
) -> None:
    with pytest.raises(UsageError):
        design_sequential_test(minimum_rate, margin, confidence, tasks)


def baseline_and_design(results: list[bool]) -> tuple[GateBaseline, SequentialDesign]:
    """Return a baseline with these results, and a test design for it."""
    return record_baseline(make_arm_rows("adaptive", results)), design_sequential_test(
        0.8, 0.3, 0.95, len(results)
    )


def test_rows_as_good_as_the_baseline_pass_and_worse_rows_fail() -> None:
    baseline, design = baseline_and_design([True] * 18 + [False] * 2)
    assert baseline.rate == pytest.approx(0.9)
    assert decide_gate(baseline, make_arm_rows("adaptive", [True] * 20), design).decision.standing == "passed"

    result = decide_gate(baseline, make_arm_rows("adaptive", [False] * 20), design)
    assert result.decision.standing == "failed"
    assert len(result.lost) + 1 >= result.decision.tasks - 2
    assert result.next == ()


def test_the_order_of_tasks_is_fixed_by_the_baseline() -> None:
    rows = make_arm_rows("adaptive", [True] * 20)
    names = [task.problem for task in record_baseline(rows).tasks]
    assert names == [task.problem for task in record_baseline(rows[::-1]).tasks]
    assert names != sorted(names)
    assert [task.problem for task in record_baseline(rows, tasks=5).tasks] == names[:5]

    first = make_arm_rows("adaptive", [True] * 20)
    baseline, design = baseline_and_design([True] * 20)
    assert decide_gate(baseline, first, design) == decide_gate(baseline, first[::-1], design)


def test_a_missing_task_stops_the_gate_so_that_hard_tasks_cannot_be_dropped() -> None:
    baseline, design = baseline_and_design([True] * 20)
    second_problem = baseline.tasks[1].problem
    rows = [row for row in make_arm_rows("adaptive", [True] * 20) if row.problem != second_problem]
    result = decide_gate(baseline, rows, design)
    assert (result.decision.standing, result.decision.tasks) == ("undecided", 1)
    assert result.next == (second_problem,)


def test_rows_with_faults_are_skipped_and_named() -> None:
    baseline, design = baseline_and_design([True] * 20)
    problems = [task.problem for task in baseline.tasks]
    rows = {row.problem: row for row in make_arm_rows("adaptive", [True] * 20)}
    rows[problems[0]] = replace(rows[problems[0]], fault="no sandbox")
    rows[problems[2]] = replace(rows[problems[2]], steps=(make_step(INFRA_GRADE),))

    result = decide_gate(baseline, list(rows.values()), design)

    assert result.decision.standing == "passed"
    assert result.skipped == (problems[0], problems[2])


def test_code_that_breaks_the_sandbox_is_not_skipped() -> None:
    baseline, design = baseline_and_design([True] * 20)
    rows = [make_row("adaptive", n, sandbox_failure="SandboxBroken: it lives") for n in range(20)]
    result = decide_gate(baseline, rows, design)
    assert (result.decision.standing, result.skipped) == ("failed", ())


def test_only_faults_decide_nothing() -> None:
    baseline, design = baseline_and_design([True] * 20)
    result = decide_gate(baseline, [make_row("adaptive", n, fault="no sandbox") for n in range(20)], design)
    assert (result.decision.standing, result.decision.tasks, len(result.skipped)) == ("undecided", 0, 20)
    assert result.standing == "broken"


@pytest.mark.parametrize(
    ("skipped", "decided_tasks", "standing"),
    [
        (0, 0, "undecided"),
        (0, 9, "passed"),
        (1, 0, "broken"),
        (1, 5, "passed"),
        (2, 18, "passed"),
        (2, 17, "broken"),
        (3, 27, "passed"),
        (3, 26, "broken"),
        (30, 1, "broken"),
    ],
)
def test_a_gate_that_skipped_too_many_tasks_is_broken(
    skipped: int, decided_tasks: int, standing: str
) -> None:
    gate_decision = SequentialDecision(
        standing="passed" if decided_tasks else "undecided", tasks=decided_tasks, solved=decided_tasks
    )
    names = tuple(f"Set/{n}" for n in range(skipped))
    assert GateResult(decision=gate_decision, next=(), skipped=names, lost=(), won=()).standing == standing


def test_a_changed_task_is_refused() -> None:
    baseline, design = baseline_and_design([True] * 20)
    with pytest.raises(UsageError, match="has changed"):
        decide_gate(
            baseline,
            [replace(row, problem_hash="new") for row in make_arm_rows("adaptive", [True] * 20)],
            design,
        )


@pytest.mark.parametrize(
    "change", [{"arm": "x"}, {"regime": "oracle"}, {"cap": 9}, {"seed": 1}, {"model": "x"}]
)
def test_rows_of_other_settings_do_not_count(change: dict[str, object]) -> None:
    baseline, design = baseline_and_design([True] * 20)
    rows: list[BenchmarkRow] = [replace(row, **change) for row in make_arm_rows("adaptive", [True] * 20)]  # type: ignore[arg-type]  # any field
    assert len(decide_gate(baseline, rows, design).next) == 20
    if "model" in change:
        assert decide_gate(baseline, rows, design, model="x").decision.standing == "passed"


def test_a_baseline_needs_rows_of_one_arm() -> None:
    rows = [*make_arm_rows("adaptive", [True]), *make_arm_rows("greedy", [True])]
    with pytest.raises(UsageError, match="a baseline is of one arm"):
        record_baseline(rows)
    assert record_baseline(rows, "greedy").arm == "greedy"
    with pytest.raises(UsageError, match="these rows are of none"):
        record_baseline([make_row("adaptive", fault="no sandbox")])


def test_a_baseline_can_be_written_and_read(tmp_path: Path) -> None:
    baseline = record_baseline(make_arm_rows("adaptive", [True, False]), environment={"date": "2026-11-22"})
    write_baseline(baseline, tmp_path / "b.json")
    assert read_baseline(tmp_path / "b.json") == baseline
    with pytest.raises(StorageError):
        write_baseline(baseline, tmp_path / "no" / "b.json")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"dataset": 3}'])
def test_an_invalid_baseline_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "b.json").write_text(text)
    with pytest.raises(UsageError, match="is not a baseline"):
        read_baseline(tmp_path / "b.json")
    with pytest.raises(UsageError, match="is not a baseline"):
        read_baseline(tmp_path / "nowhere.json")


def test_a_baseline_without_tasks_is_refused(tmp_path: Path) -> None:
    empty = replace(record_baseline(make_arm_rows("adaptive", [True])), tasks=())
    write_baseline(empty, tmp_path / "b.json")
    with pytest.raises(UsageError, match="no tasks"):
        read_baseline(tmp_path / "b.json")
