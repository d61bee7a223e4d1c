"""Describe a benchmark and its rows for MLflow: parameters, metrics and tags."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from suture.bench.measures.arm_metrics import claims_success
from suture.bench.rows import BenchmarkRow
from suture.bench.running.benchmark_plan import BenchmarkPlan
from suture.core.records import content_hash, encode_record

MAX_PARAM_CHARS = 500
"""Characters of a parameter; older servers refuse longer ones."""


@dataclass(frozen=True, kw_only=True)
class RunDescription:
    """A run in MLflow's terms.

    Attributes:
        params: Name -> value of what was run.
        metrics: Name -> result; shares are in [0, 1].
    """

    name: str
    params: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)


def describe_benchmark(
    name: str, key: str, plan: BenchmarkPlan, rows: Sequence[BenchmarkRow]
) -> RunDescription:
    """Describe a whole benchmark as one MLflow run.

    Its caps are maximum reply tokens for each task. Its regime says which tests a run may see. A benchmark may
    be continued in several sessions, on other machines or with other versions. The parameters `made.*` describe
    the environment of the last session only, because an MLflow parameter has one value.

    Args:
        key: Id of the benchmark; folders of the same name are different benchmarks.
    """
    last_session = plan.sessions[-1] if plan.sessions else {}
    params = {
        "sets": ", ".join(f"{dataset} ({len(ids)})" for dataset, ids in plan.ids.items()),
        "arms": ", ".join(plan.arms),
        "models": ", ".join(plan.models),
        "seeds": str(plan.seeds),
        "caps": ", ".join(map(str, plan.caps)),
        "regime": plan.regime,
        **{f"made.{fact}": value for fact, value in last_session.items()},
    }
    metrics: dict[str, float] = {"rows": len(rows), "faults": sum(bool(row.fault) for row in rows)}
    for arm, cap in itertools.product(plan.arms, plan.caps):
        label = arm if len(plan.caps) == 1 else f"{arm}.{cap}"
        cell_rows = [row for row in rows if (row.arm, row.cap) == (arm, cap)]
        metrics[f"faults.{label}"] = sum(bool(row.fault) for row in cell_rows)
        results = [solved for row in cell_rows if (solved := row.solved()) is not None]
        if results:
            metrics[f"solved.{label}"] = sum(results) / len(results)
    metrics["tokens"] = sum(row.completion_tokens + row.prompt_tokens for row in rows)
    return RunDescription(
        name=name,
        params=_shorten(params),
        metrics=metrics,
        tags={"suture.benchmark": name, "suture.benchmark_id": key, "suture.what": "benchmark"},
    )


def describe_row(benchmark: str, key: str, row: BenchmarkRow) -> RunDescription:
    """Describe one row. Its content hash is its key, so a changed row is another MLflow run."""
    solved = row.solved()
    params = {
        "set": row.dataset,
        "task": row.problem,
        "task_hash": row.problem_hash,
        "arm": row.arm,
        "model": row.model,
        "seed": str(row.seed),
        "cap": str(row.cap),
        "regime": row.regime,
        "outcome": row.outcome,
        **{f"prompt.{role}": version for role, version in row.prompts.items()},
    }
    proposed = {step.candidate for step in row.steps if step.origin != "user"}
    metrics: dict[str, float] = {
        "retries": max(0, len(proposed) - 1),
        "claimed": claims_success(row),
        "confidence": row.confidence,
        "generated_tokens": row.completion_tokens,
        "prompt_tokens": row.prompt_tokens,
        "tokens": row.completion_tokens + row.prompt_tokens,
        "calls": row.calls,
        "seconds": row.seconds,
        "model_seconds": row.model_s,
        "checks_seconds": row.checks_s,
    }
    if solved is not None:
        metrics["success"] = solved
    if row.cost_usd is not None:
        metrics["money_usd"] = row.cost_usd
    tags = {
        "suture.benchmark": benchmark,
        "suture.benchmark_id": key,
        "suture.what": "row",
        "suture.row": content_hash(encode_record(row)),
        "suture.run": row.run,
    }
    if row.fault:
        tags["suture.fault"] = row.fault[:MAX_PARAM_CHARS]
    if row.sandbox_failure:
        tags["suture.sandbox_failure"] = row.sandbox_failure[:MAX_PARAM_CHARS]
    # Without repetitions every seed is 0, which would only lengthen the name. With repetitions, the name without
    # a seed is that of seed 0. The parameters always have it.
    name = f"{row.problem} {row.arm}" + (f" seed {row.seed}" if row.seed else "")
    return RunDescription(name=name, params=_shorten(params), metrics=metrics, tags=tags)


def _shorten(params: Mapping[str, str]) -> dict[str, str]:
    return {key: value[:MAX_PARAM_CHARS] for key, value in params.items()}
