"""Rows that no run made: one line for each, with only what a test is about."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from suture.bench.grading.hidden_checks import Grade
from suture.bench.rows import BenchmarkRow, CandidateStep
from suture.core.records import Origin, Outcome, encode_record

RIGHT = Grade(status="right")
WRONG = Grade(status="wrong", reason="f(1): expected 2, got 3")
INFRA = Grade(status="infra", reason="the wall fell")


def step(
    grade: Grade | bool | None,
    *,
    completion_tokens: int = 100,
    origin: Origin = "sample",
    round: int = 0,
    is_best_so_far: bool = True,
    claimed: bool | None = None,
    error: str = "",
) -> CandidateStep:
    """A candidate: right, wrong, or with any grade."""
    given = (RIGHT if grade else WRONG) if isinstance(grade, bool) else grade
    return CandidateStep(
        candidate=f"{origin}{round}{completion_tokens}",
        origin=origin,
        round=round,
        completion_tokens=completion_tokens,
        prompt_tokens=3 * completion_tokens,
        calls=round + 1,
        seconds=1.0 + round,
        is_best_so_far=is_best_so_far,
        claimed=given == RIGHT if claimed is None else claimed,
        error=error,
        grade=given,
    )


def row(
    arm: str = "greedy",
    problem: int | str = 0,
    *steps: CandidateStep,
    right: bool = True,
    seed: int = 0,
    outcome: Outcome | None = None,
    **changes: object,
) -> BenchmarkRow:
    """A run; one right or wrong first candidate where no steps are given."""
    made = steps or (step(right, error="" if right else "AssertionError"),)
    ends_right = made[-1].grade == RIGHT
    plain = BenchmarkRow(
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
        steps=made,
        completion_tokens=max(s.completion_tokens for s in made),
        prompt_tokens=max(s.prompt_tokens for s in made),
        calls=len(made),
        cost_usd=0.001,
        seconds=10.0,
        model_s=6.0,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]  # a test may change any field


def arm_rows(arm: str, rights: Sequence[bool], *, seed: int = 0, **changes: object) -> list[BenchmarkRow]:
    """One run for each task, right or wrong."""
    return [row(arm, n, right=right, seed=seed, **changes) for n, right in enumerate(rights)]  # type: ignore[arg-type]  # as above


def write_rows(folder: Path, rows: Sequence[BenchmarkRow]) -> Path:
    """A run's folder with these rows."""
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(encode_record(one)) + "\n" for one in rows)
    (folder / "rows.jsonl").write_text(text, "utf-8")
    return folder


RATES: Mapping[str, tuple[float, float]] = {
    "greedy": (0.5, 0.0),
    "best_of_k": (0.5, 0.3),
    "always_repair": (0.5, 0.1),
    "reflexion": (0.5, 0.15),
    "adaptive": (0.5, 0.4),
}
"""Arm -> how often the first candidate is right, and how often a later one mends a wrong one."""
ERRORS = ("AssertionError", "AssertionError", "TypeError", "IndexError", "timeout", "")


def benchmark_rows(
    tasks: int = 40, seeds: int = 1, arms: Mapping[str, tuple[float, float]] = RATES
) -> list[BenchmarkRow]:
    """A benchmark as it may really come out: shared first candidates, repairs, harm, wrong claims."""
    rows = []
    for seed in range(seeds):
        for task in range(tasks):
            chance = random.Random(1000 * seed + task)
            first_right, error = chance.random() < 0.5, chance.choice(ERRORS)
            length = chance.randrange(60, 400)
            for arm, (_, mending) in arms.items():
                rows.append(_run(arm, task, seed, first_right, error, length, mending, chance))
    return rows


def _run(
    arm: str,
    task: int,
    seed: int,
    first_right: bool,
    error: str,
    length: int,
    mending: float,
    chance: random.Random,
) -> BenchmarkRow:
    steps = [step(first_right, completion_tokens=length, error="" if first_right else error)]
    claimed = first_right or not error
    steps[0] = replace(steps[0], claimed=claimed)
    while not claimed and mending and steps[-1].completion_tokens + length < 2000:
        again = chance.random() < mending
        origin: Origin = "sample" if arm == "best_of_k" else "repair"
        spent = steps[-1].completion_tokens + length
        steps.append(
            step(
                again, completion_tokens=spent, origin=origin, round=len(steps), error="" if again else error
            )
        )
        claimed = again
    confidence = (0.85 if claimed else 0.15) + chance.uniform(-0.1, 0.1)
    outcome: Outcome = "healed" if claimed else "budget_exhausted"
    return row(arm, task, *steps, seed=seed, outcome=outcome, confidence=confidence)
