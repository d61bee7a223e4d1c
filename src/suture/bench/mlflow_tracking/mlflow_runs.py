"""Write a benchmark to an MLflow server or database as nested runs with artifacts and traces."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from suture.bench.measures.arm_metrics import claims_success
from suture.bench.rows import BenchmarkRow
from suture.bench.running.bench_folder import BenchFolder
from suture.bench.running.benchmark_plan import BenchmarkPlan
from suture.core.installation import format_install_command
from suture.core.ledger import RunFolder, read_ledger
from suture.core.records import content_hash, encode_record
from suture.core.settings.rendering import format_value
from suture.errors import PrerequisiteError, StorageError
from suture.storage.tracing import Span, build_spans

EXPERIMENT = "suture"
"""The default name of the experiment that contains the runs in MLflow."""
NS_PER_S = 1_000_000_000
"""MLflow stores the times of a trace in nanoseconds."""
SPAN_TYPES = {"run": "AGENT", "round": "CHAIN", "model": "LLM", "search": "TOOL", "check": "EVALUATOR"}
"""Kind of a span of the run -> the type that MLflow shows for it."""
ARTIFACTS = ("ledger.jsonl", "result.diff")
"""Files of a run folder that are stored with its row, besides the replies."""


@dataclass(frozen=True, kw_only=True)
class TrackingResult:
    """What was written to MLflow.

    Attributes:
        uri: The tracking server or database, without its password.
        run: MLflow's id of the benchmark's run.
        rows: Number of rows that were written now.
        known: Number of rows that were already there.
    """

    uri: str
    experiment: str
    run: str
    rows: int
    known: int


def track_benchmark(folder: BenchFolder, *, uri: str, experiment: str = EXPERIMENT) -> TrackingResult:
    """Write a benchmark to MLflow; unchanged rows that are already there are not written again.

    Args:
        folder: The benchmark, ended or not. It is only read.
        uri: Any tracking URI. Artifacts of an SQLite database are stored next to it.
        experiment: The experiment of the runs; created if it does not exist.

    Raises:
        PrerequisiteError: MLflow is not installed.
        UsageError: There is no benchmark in the folder.
        StorageError: The folder is damaged, or MLflow refused or could not be reached.
    """
    plan, rows = folder.plan(), folder.rows()
    masked_uri = format_value(uri)  # without its password
    with _client(uri) as (client, mlflow_error):
        try:
            experiment_id = _open_experiment(client, uri, experiment)
            benchmark = describe_benchmark(folder.path.name, folder.id, plan, rows)
            parent = _find_benchmark_run(client, experiment_id, folder.id)
            if parent is None:
                parent = _create_run(client, experiment_id, benchmark)
            _log_run(client, parent, benchmark)
            if folder.rows_path.is_file():
                client.log_artifact(parent, str(folder.rows_path))
            known_rows = _load_known_rows(client, experiment_id, folder.id)
            written = 0
            for row in rows:
                description = describe_row(folder.path.name, folder.id, row)
                if description.tags["suture.row"] not in known_rows:
                    run_folder = folder.path / "runs" / row.run
                    _write_row(client, experiment_id, parent, description, row, run_folder)
                    written += 1
            client.set_terminated(parent)
        except mlflow_error as fault:
            reason = str(fault).replace(uri, masked_uri)
            raise StorageError(f"MLflow at {masked_uri!r} did not take the benchmark: {reason}") from fault
    return TrackingResult(
        uri=masked_uri, experiment=experiment, run=parent, rows=written, known=len(rows) - written
    )


@contextmanager
def _client(uri: str) -> Iterator[tuple[Any, type[Exception]]]:
    """Yield (a client, MLflow's exception class); the process's tracking URI is restored afterwards.

    MLflow's usage statistics are off unless the environment says otherwise.
    """
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    try:
        import mlflow
        from mlflow.exceptions import MlflowException
    except ImportError as fault:
        raise PrerequisiteError("MLflow is not installed", remedy=format_install_command("mlflow")) from fault
    original_uri = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(uri)
    try:
        yield mlflow.MlflowClient(uri), MlflowException
        mlflow.flush_trace_async_logging()
    finally:
        mlflow.set_tracking_uri(original_uri)


def _open_experiment(client: Any, uri: str, name: str) -> str:
    """Return the id of an experiment, which is created if it does not exist."""
    experiment = client.get_experiment_by_name(name)
    if experiment is not None:
        return str(experiment.experiment_id)
    location = None
    if uri.startswith("sqlite:///"):
        # Otherwise MLflow would create a folder in the current directory.
        location = (Path(uri.removeprefix("sqlite:///")).resolve().parent / "mlflow-artifacts").as_uri()
    return str(client.create_experiment(name, artifact_location=location))


def _find_benchmark_run(client: Any, experiment_id: str, benchmark: str) -> str | None:
    query = f"tags.`suture.benchmark_id` = '{benchmark}' and tags.`suture.what` = 'benchmark'"
    runs = client.search_runs([experiment_id], filter_string=query, max_results=1)
    return str(runs[0].info.run_id) if runs else None


def _load_known_rows(client: Any, experiment_id: str, benchmark: str) -> set[str]:
    """Return the keys of rows that were written completely; a row whose writing was interrupted is RUNNING."""
    query = (
        f"tags.`suture.benchmark_id` = '{benchmark}' and tags.`suture.what` = 'row' "
        "and attributes.status != 'RUNNING'"
    )
    keys: set[str] = set()
    token = None
    while True:
        runs = client.search_runs([experiment_id], filter_string=query, max_results=1000, page_token=token)
        keys.update(run.data.tags["suture.row"] for run in runs)
        token = runs.token
        if not token:
            return keys


def _create_run(client: Any, experiment_id: str, description: RunDescription, parent: str = "") -> str:
    tags = {**description.tags, "mlflow.parentRunId": parent} if parent else dict(description.tags)
    run = client.create_run(experiment_id, run_name=description.name, tags=tags)
    return str(run.info.run_id)


def _log_run(client: Any, run: str, description: RunDescription) -> None:
    from mlflow.entities import Metric, Param

    now_ms = int(time.time() * 1000)
    metrics = [Metric(key, float(value), now_ms, 0) for key, value in description.metrics.items()]
    # MLflow refuses another value for an existing parameter.
    existing_params = client.get_run(run).data.params
    params = [Param(key, value) for key, value in description.params.items() if key not in existing_params]
    client.log_batch(run, metrics=metrics, params=params)


def _write_row(
    client: Any, experiment_id: str, parent: str, description: RunDescription, row: BenchmarkRow, folder: Path
) -> None:
    run = _create_run(client, experiment_id, description, parent)
    _log_run(client, run, description)
    if row.run and folder.is_dir():
        for name in ARTIFACTS:
            if (folder / name).is_file():
                client.log_artifact(run, str(folder / name))
        if (folder / "replies").is_dir():  # with their prompts
            client.log_artifacts(run, str(folder / "replies"), "replies")
        events = read_ledger(RunFolder(folder).ledger_path).events
        _write_trace(client, experiment_id, run, build_spans(events, row.run))
    client.set_terminated(run, "FAILED" if row.fault else "FINISHED")


def _write_trace(client: Any, experiment_id: str, run: str, spans: tuple[Span, ...]) -> None:
    if not spans:
        return
    root, *descendants = spans
    trace = client.start_trace(
        root.name,
        span_type=SPAN_TYPES[root.kind],
        attributes=dict(root.attributes),
        experiment_id=experiment_id,
        start_time_ns=int(root.start_s * NS_PER_S),
        run_id=run,
    )
    open_spans = [trace]
    for span in descendants:
        assert span.parent is not None  # only the run has none
        open_spans.append(
            client.start_span(
                span.name,
                trace_id=trace.trace_id,
                parent_id=open_spans[span.parent].span_id,
                span_type=SPAN_TYPES[span.kind],
                attributes=dict(span.attributes),
                start_time_ns=int(span.start_s * NS_PER_S),
            )
        )
    # Children end before their parents; the root ends with the trace.
    for span, open_span in list(zip(spans, open_spans, strict=True))[:0:-1]:
        client.end_span(trace.trace_id, open_span.span_id, end_time_ns=int(span.end_s * NS_PER_S))
    client.end_trace(trace.trace_id, end_time_ns=int(root.end_s * NS_PER_S))


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
