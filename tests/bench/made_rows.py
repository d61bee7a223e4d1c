"""Make benchmark rows without runs, with defaults for everything that a test does not set."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from suture.bench.grading.hidden_checks import Grade
from suture.bench.rows import BenchmarkRow, CandidateStep
from suture.core.records import Origin, Outcome, encode_record

RIGHT_GRADE = Grade(status="right")
WRONG_GRADE = Grade(status="wrong", reason="f(1): expected 2, got 3")
INFRA_GRADE = Grade(status="infra", reason="the sandbox failed")


def make_step(
    grade: Grade | bool | None,
    *,
    completion_tokens: int = 100,
    origin: Origin = "sample",
    round: int = 0,
    is_best_so_far: bool = True,
    claimed: bool | None = None,
) -> CandidateStep:
    """Make a candidate that is right, wrong, or has the given grade."""
    given_grade = (RIGHT_GRADE if grade else WRONG_GRADE) if isinstance(grade, bool) else grade
    return CandidateStep(
        candidate=f"{origin}{round}{completion_tokens}",
        origin=origin,
        round=round,
        completion_tokens=completion_tokens,
        prompt_tokens=3 * completion_tokens,
        calls=round + 1,
        seconds=1.0 + round,
        is_best_so_far=is_best_so_far,
        claimed=given_grade == RIGHT_GRADE if claimed is None else claimed,
        grade=given_grade,
    )


def make_row(
    arm: str = "greedy",
    problem: int | str = 0,
    *steps: CandidateStep,
    right: bool = True,
    seed: int = 0,
    outcome: Outcome | None = None,
    **changes: object,
) -> BenchmarkRow:
    """Make the row of a run; without steps it has one right or wrong candidate."""
    row_steps = steps or (make_step(right),)
    ends_right = row_steps[-1].grade == RIGHT_GRADE
    default_row = BenchmarkRow(
        problem=f"Set/{problem}",
        problem_hash=f"hash of {problem}",
        dataset="set",
        regime="visible",
        arm=arm,
        model="local:tiny",
        seed=seed,
        cap=2000,
        run=f"{arm}-{problem}-{seed}",
        outcome=outcome or ("healed" if ends_right else "not_healed"),
        confidence=0.9 if ends_right else 0.2,
        steps=row_steps,
        completion_tokens=max(step.completion_tokens for step in row_steps),
        prompt_tokens=max(step.prompt_tokens for step in row_steps),
        calls=len(row_steps),
        cost_usd=0.001,
        seconds=10.0,
        model_s=6.0,
    )
    return replace(default_row, **changes)  # type: ignore[arg-type]  # a test may change any field


def make_arm_rows(
    arm: str, results: Sequence[bool], *, seed: int = 0, **changes: object
) -> list[BenchmarkRow]:
    """Make one right or wrong row for each task."""
    return [make_row(arm, n, right=right, seed=seed, **changes) for n, right in enumerate(results)]  # type: ignore[arg-type]  # as above


def write_rows(folder: Path, rows: Sequence[BenchmarkRow]) -> Path:
    """Write rows into the folder of a benchmark, and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(encode_record(benchmark_row)) + "\n" for benchmark_row in rows)
    (folder / "rows.jsonl").write_text(text, "utf-8")
    return folder


RATES: Mapping[str, tuple[float, float]] = {
    "greedy": (0.5, 0.0),
    "best_of_k": (0.5, 0.3),
    "always_repair": (0.5, 0.1),
    "reflexion": (0.5, 0.15),
    "adaptive": (0.5, 0.4),
}
"""Arm -> the rate of right first candidates, and the rate of right later ones after a wrong one."""
FAILURES_ARE_VISIBLE = (True, True, True, True, True, False)
"""In one of six tasks, the visible checks pass on a wrong first candidate."""


def make_benchmark_rows(
    tasks: int = 40, seeds: int = 1, arms: Mapping[str, tuple[float, float]] = RATES
) -> list[BenchmarkRow]:
    """Make the rows of a realistic benchmark, with shared first candidates, repairs and wrong claims."""
    rows = []
    for seed in range(seeds):
        for task in range(tasks):
            generator = random.Random(1000 * seed + task)
            first_right, is_visible = generator.random() < 0.5, generator.choice(FAILURES_ARE_VISIBLE)
            length = generator.randrange(60, 400)
            for arm, (_, repair_rate) in arms.items():
                rows.append(
                    _make_run(arm, task, seed, first_right, is_visible, length, repair_rate, generator)
                )
    return rows


def _make_run(
    arm: str,
    task: int,
    seed: int,
    first_right: bool,
    is_visible: bool,
    length: int,
    repair_rate: float,
    generator: random.Random,
) -> BenchmarkRow:
    steps = [make_step(first_right, completion_tokens=length)]
    claimed = first_right or not is_visible
    steps[0] = replace(steps[0], claimed=claimed)
    while not claimed and repair_rate and steps[-1].completion_tokens + length < 2000:
        is_right = generator.random() < repair_rate
        origin: Origin = "sample" if arm == "best_of_k" else "repair"
        token_total = steps[-1].completion_tokens + length
        steps.append(make_step(is_right, completion_tokens=token_total, origin=origin, round=len(steps)))
        claimed = is_right
    confidence = (0.85 if claimed else 0.15) + generator.uniform(-0.1, 0.1)
    outcome: Outcome = "healed" if claimed else "budget_exhausted"
    return make_row(arm, task, *steps, seed=seed, outcome=outcome, confidence=confidence)
