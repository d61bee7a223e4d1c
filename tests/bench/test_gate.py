"""The gate: its error rates against every possible sequence and against chance, and its reading of rows."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import replace
from pathlib import Path

import pytest

from bench.made_rows import INFRA, arm_rows, row, step
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


@pytest.mark.parametrize(("least", "margin", "confidence", "tasks"), DESIGNS)
def test_neither_error_is_more_frequent_than_it_says_at_any_rate(
    least: float, margin: float, confidence: float, tasks: int
) -> None:
    design = design_sequential_test(least, margin, confidence, tasks)
    for rate in (least, (least + 1) / 2, 0.999, 1.0):
        assert compute_chances(design, rate).failed <= 1 - confidence + 1e-12
    for rate in (least - margin, (least - margin) / 2, 0.001, 0.0):
        assert compute_chances(design, rate).passed <= 1 - confidence + 1e-12


def test_the_chances_are_those_of_all_sequences_there_are() -> None:
    design = design_sequential_test(0.7, 0.3, 0.95, 9)
    for rate in (0.3, 0.5, 0.7):
        found = dict.fromkeys(("passed", "failed", "undecided"), 0.0)
        length = 0.0
        for results in itertools.product([False, True], repeat=9):
            chance = math.prod(rate if right else 1 - rate for right in results)
            made = decide(design, results)
            found[made.standing] += chance
            length += chance * made.tasks
        exact = compute_chances(design, rate)
        assert found == pytest.approx(
            {"passed": exact.passed, "failed": exact.failed, "undecided": exact.undecided}
        )
        assert exact.tasks == pytest.approx(length)
        assert 0 < exact.undecided < 1


def test_a_simulation_agrees() -> None:
    design = design_sequential_test(0.8, 0.15, 0.95, 80)
    chance = random.Random(5)
    for rate in (0.65, 0.8):
        ends = [decide(design, (chance.random() < rate for _ in range(80))).standing for _ in range(3000)]
        exact = compute_chances(design, rate)
        assert ends.count("failed") / 3000 == pytest.approx(exact.failed, abs=0.025)
        assert ends.count("passed") / 3000 == pytest.approx(exact.passed, abs=0.025)


def test_it_stops_early_where_the_matter_is_clear() -> None:
    design = design_sequential_test(0.8, 0.15, 0.95, 80)
    for right, standing in ((True, "passed"), (False, "failed")):
        made = decide(design, itertools.repeat(right))
        assert made.standing == standing
        assert made.tasks < 20
    assert compute_chances(design, 0.8).tasks < 50


def test_the_last_test_decides_more_than_the_early_stops_alone() -> None:
    design = design_sequential_test(0.8, 0.15, 0.95, 40)
    early = replace(design, fails=(*design.fails[:-1], -1), passes=(*design.passes[:-1], 41))
    assert compute_chances(design, 0.8).undecided < compute_chances(early, 0.8).undecided - 0.1


def test_too_few_tasks_leave_it_open() -> None:
    design = design_sequential_test(0.8, 0.15, 0.95, 5)
    assert decide(design, [True] * 5).standing == "undecided"
    assert decide(design, []).standing == "undecided"


def test_sampling_without_return_from_a_fixed_list_errs_less() -> None:
    """A list of which exactly the good rate is solved fails, over all its orders, no more than it says."""
    design = design_sequential_test(0.8, 0.15, 0.95, 60)
    results = [True] * 48 + [False] * 12
    chance = random.Random(2)
    failed = sum(decide(design, chance.sample(results, 60)).standing == "failed" for _ in range(2000))
    assert failed / 2000 <= compute_chances(design, 0.8).failed + 0.01


@pytest.mark.parametrize(
    ("least", "margin", "confidence", "tasks"),
    [
        *((1.0, 0.1, 0.95, 9), (0.8, 0.8, 0.95, 9), (0.8, 0.0, 0.95, 9), (0.8, -0.1, 0.95, 9)),
        *((0.8, 0.1, 1.0, 9), (0.8, 0.1, 0.5, 9), (0.8, 0.1, 0.95, 0), (0.0, 0.1, 0.95, 9)),
    ],
)
def test_what_cannot_be_tested_is_refused(least: float, margin: float, confidence: float, tasks: int) -> None:
    with pytest.raises(UsageError):
        design_sequential_test(least, margin, confidence, tasks)


def baseline_and_design(rights: list[bool]) -> tuple[GateBaseline, SequentialDesign]:
    return record_baseline(arm_rows("adaptive", rights)), design_sequential_test(0.8, 0.3, 0.95, len(rights))


def test_rows_as_good_as_the_baseline_pass_and_much_worse_ones_fail() -> None:
    baseline, design = baseline_and_design([True] * 18 + [False] * 2)
    assert baseline.rate == pytest.approx(0.9)
    assert decide_gate(baseline, arm_rows("adaptive", [True] * 20), design).decision.standing == "passed"
    found = decide_gate(baseline, arm_rows("adaptive", [False] * 20), design)
    assert found.decision.standing == "failed"
    assert len(found.lost) + 1 >= found.decision.tasks - 2
    assert found.next == ()


def test_the_order_is_the_baselines_and_follows_nobodys_choice() -> None:
    rows = arm_rows("adaptive", [True] * 20)
    names = [task.problem for task in record_baseline(rows).tasks]
    assert names == [task.problem for task in record_baseline(rows[::-1]).tasks]
    assert names != sorted(names)
    assert [task.problem for task in record_baseline(rows, tasks=5).tasks] == names[:5]
    first = arm_rows("adaptive", [True] * 20)
    baseline, design = baseline_and_design([True] * 20)
    assert decide_gate(baseline, first, design) == decide_gate(baseline, first[::-1], design)


def test_a_missing_task_stops_it_so_that_hard_ones_cannot_be_dropped() -> None:
    baseline, design = baseline_and_design([True] * 20)
    second = baseline.tasks[1].problem
    rows = [one for one in arm_rows("adaptive", [True] * 20) if one.problem != second]
    found = decide_gate(baseline, rows, design)
    assert (found.decision.standing, found.decision.tasks) == ("undecided", 1)
    assert found.next == (second,)


def test_faults_are_passed_over_and_named() -> None:
    baseline, design = baseline_and_design([True] * 20)
    place = [task.problem for task in baseline.tasks]
    rows = {one.problem: one for one in arm_rows("adaptive", [True] * 20)}
    rows[place[0]] = replace(rows[place[0]], fault="no wall")
    rows[place[2]] = replace(rows[place[2]], steps=(step(INFRA),))
    found = decide_gate(baseline, list(rows.values()), design)
    assert found.decision.standing == "passed"
    assert found.skipped == (place[0], place[2])


def test_what_fells_the_wall_is_not_passed_over() -> None:
    baseline, design = baseline_and_design([True] * 20)
    rows = [row("adaptive", n, sandbox_failure="SandboxBroken: it lives") for n in range(20)]
    found = decide_gate(baseline, rows, design)
    assert (found.decision.standing, found.skipped) == ("failed", ())


def test_faults_alone_decide_nothing() -> None:
    baseline, design = baseline_and_design([True] * 20)
    found = decide_gate(baseline, [row("adaptive", n, fault="no wall") for n in range(20)], design)
    assert (found.decision.standing, found.decision.tasks, len(found.skipped)) == ("undecided", 0, 20)
    assert found.standing == "broken"


@pytest.mark.parametrize(
    ("skipped", "tried", "standing"),
    [
        *((0, 0, "undecided"), (0, 9, "passed"), (1, 0, "broken"), (1, 5, "passed"), (2, 18, "passed")),
        *((2, 17, "broken"), (3, 27, "passed"), (3, 26, "broken"), (30, 1, "broken")),
    ],
)
def test_a_gate_that_passed_over_too_much_is_broken(skipped: int, tried: int, standing: str) -> None:
    made = SequentialDecision(standing="passed" if tried else "undecided", tasks=tried, solved=tried)
    names = tuple(f"Set/{n}" for n in range(skipped))
    assert GateResult(decision=made, next=(), skipped=names, lost=(), won=()).standing == standing


def test_a_changed_task_is_refused() -> None:
    baseline, design = baseline_and_design([True] * 20)
    with pytest.raises(UsageError, match="has changed"):
        decide_gate(
            baseline, [replace(r, problem_hash="new") for r in arm_rows("adaptive", [True] * 20)], design
        )


@pytest.mark.parametrize(
    "change", [{"arm": "x"}, {"regime": "oracle"}, {"cap": 9}, {"seed": 1}, {"model": "x"}]
)
def test_unlike_rows_do_not_count(change: dict[str, object]) -> None:
    baseline, design = baseline_and_design([True] * 20)
    rows: list[BenchmarkRow] = [replace(r, **change) for r in arm_rows("adaptive", [True] * 20)]  # type: ignore[arg-type]  # any field
    assert len(decide_gate(baseline, rows, design).next) == 20
    if "model" in change:
        assert decide_gate(baseline, rows, design, model="x").decision.standing == "passed"


def test_a_baseline_is_of_one_cell() -> None:
    rows = [*arm_rows("adaptive", [True]), *arm_rows("greedy", [True])]
    with pytest.raises(UsageError, match="a baseline is of one arm"):
        record_baseline(rows)
    assert record_baseline(rows, "greedy").arm == "greedy"
    with pytest.raises(UsageError, match="these rows are of none"):
        record_baseline([row("adaptive", fault="no wall")])


def test_a_baseline_survives_its_file(tmp_path: Path) -> None:
    baseline = record_baseline(arm_rows("adaptive", [True, False]), environment={"date": "2026-11-22"})
    write_baseline(baseline, tmp_path / "b.json")
    assert read_baseline(tmp_path / "b.json") == baseline
    with pytest.raises(StorageError):
        write_baseline(baseline, tmp_path / "no" / "b.json")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"dataset": 3}'])
def test_what_is_no_baseline_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "b.json").write_text(text)
    with pytest.raises(UsageError, match="is not a baseline"):
        read_baseline(tmp_path / "b.json")
    with pytest.raises(UsageError, match="is not a baseline"):
        read_baseline(tmp_path / "nowhere.json")


def test_a_baseline_without_tasks_is_refused(tmp_path: Path) -> None:
    empty = replace(record_baseline(arm_rows("adaptive", [True])), tasks=())
    write_baseline(empty, tmp_path / "b.json")
    with pytest.raises(UsageError, match="no tasks"):
        read_baseline(tmp_path / "b.json")
