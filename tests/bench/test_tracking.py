"""A benchmark is tracked in a real MLflow, with a server and with a database file."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from socket import socket
from typing import Any

import httpx
import pytest

import suture
from requirements import Require
from suture.api import WriteOptions
from suture.bench.grading.hidden_checks import Grade
from suture.bench.mlflow_tracking import track_benchmark
from suture.bench.mlflow_tracking.mlflow_runs import describe_benchmark, describe_row
from suture.bench.rows import BenchmarkRow, CandidateStep
from suture.bench.running.bench_folder import BenchFolder
from suture.bench.running.benchmark_plan import BenchmarkPlan
from suture.core.installation import format_install_command
from suture.core.records import encode_record
from suture.errors import PrerequisiteError, StorageError, UsageError
from suture.sandbox import Requirement

pytestmark = pytest.mark.heavy

TASK = "Write a function double(n) that doubles a number: double(2) == 4"
REPLY = "```python\ndef double(n):\n    return 2 * n\n```"
PLAN = BenchmarkPlan(
    ids={"made": ("made/1", "made/2")}, arms=("greedy",), models=("scripted:x",), caps=(100,),
    sessions=({"os": "this"},),
)  # fmt: skip
STEP = CandidateStep(
    candidate="c", origin="sample", round=0, completion_tokens=9, prompt_tokens=20, calls=1, seconds=1.0,
    is_best_so_far=True, claimed=True, grade=Grade(status="right"),
)  # fmt: skip
IGNORE_MLFLOW_WARNINGS = pytest.mark.filterwarnings(
    "ignore"
)  # MLflow's packages cause warnings that Suture cannot avoid
HAS_MLFLOW = importlib.util.find_spec("mlflow") is not None


def make_row(number: int, run: str, **changes: Any) -> BenchmarkRow:
    defaults = {
        "steps": (STEP,),
        "completion_tokens": 9,
        "prompt_tokens": 20,
        "calls": 1,
        "prompts": {"coder": "f" * 64},
    }
    return BenchmarkRow(
        problem=f"made/{number}", problem_hash="0" * 64, dataset="made", regime="visible", arm="greedy",
        model="scripted:x", cap=100, run=run, outcome="healed", confidence=0.5, **{**defaults, **changes},
    )  # fmt: skip


@pytest.fixture
def bench(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox_requirement: Requirement, require: Require
) -> BenchFolder:
    """Make a benchmark with one real run, and with a row that has no run."""
    require("mlflow", HAS_MLFLOW, "the extra `mlflow` is not installed")
    require("bubblewrap", sandbox_requirement.ok, sandbox_requirement.detail)
    folder = BenchFolder(tmp_path / "first")
    folder.path.mkdir()
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"text": REPLY, "repeat": True}]), "utf-8")
    monkeypatch.setenv("SUTURE_HOME", str(folder.path))
    result = suture.run_sync(suture.solve(TASK, WriteOptions(model=f"scripted:{script}")))
    folder.write_plan(PLAN)
    folder.write_rows([make_row(1, result.run_id), make_row(2, "", steps=(), fault="the sandbox failed")])
    return folder


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, require: Require) -> Iterator[str]:
    """Start an MLflow server, and yield its address."""
    require("mlflow", HAS_MLFLOW, "the extra `mlflow` is not installed")
    require(
        "mlflow-server", importlib.util.find_spec("flask") is not None, "it needs more than mlflow-skinny"
    )
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    arguments = ["server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    arguments += ["--backend-store-uri", f"sqlite:///{tmp_path}/server.db"]
    arguments += ["--artifacts-destination", str(tmp_path / "kept")]
    mlflow_settings = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    with (tmp_path / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "mlflow", *arguments],
            env={**os.environ, **mlflow_settings},
            stdout=log,
            stderr=log,
        )
    try:
        wait_for_server(f"http://127.0.0.1:{port}/health", process, tmp_path / "server.log")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(20)


def wait_for_server(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the server answers, or fail with its log."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(address).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    pytest.fail(f"the server did not start: {log.read_text()[-2000:]}")


def find_runs(uri: str) -> tuple[Any, list[Any], str]:
    """Return a client, the runs in MLflow, and the id of their experiment."""
    import mlflow

    client = mlflow.MlflowClient(uri)
    experiment = client.get_experiment_by_name("suture")
    return client, list(client.search_runs([experiment.experiment_id])), experiment.experiment_id


def assert_tracked(bench: BenchFolder, uri: str) -> None:
    """Track a benchmark twice, and assert that MLflow has each of its runs once."""
    first = track_benchmark(bench, uri=uri)
    assert (first.rows, first.known) == (2, 0)
    second_tracking = track_benchmark(bench, uri=uri)
    assert (second_tracking.rows, second_tracking.known, second_tracking.run) == (0, 2, first.run)
    client, runs, experiment_id = find_runs(uri)
    scores_by_task = {run.data.params.get("task"): run for run in runs}
    benchmark_run, good_run, failed_run = (
        scores_by_task[None],
        scores_by_task["made/1"],
        scores_by_task["made/2"],
    )
    assert len(runs) == 3
    assert {run.data.tags["mlflow.parentRunId"] for run in (good_run, failed_run)} == {
        benchmark_run.info.run_id
    }
    assert benchmark_run.data.metrics["solved.greedy"] == 1
    assert benchmark_run.data.params["made.os"] == "this"
    assert good_run.data.params["prompt.coder"] == "f" * 64
    assert (
        good_run.data.metrics["success"],
        good_run.data.metrics["tokens"],
        good_run.data.metrics["retries"],
    ) == (
        1,
        29,
        0,
    )
    assert (good_run.info.status, failed_run.info.status) == ("FINISHED", "FAILED")
    assert "success" not in failed_run.data.metrics
    assert {entry.path for entry in client.list_artifacts(good_run.info.run_id)} >= {
        "ledger.jsonl",
        "replies",
    }
    assert client.list_artifacts(good_run.info.run_id, "replies")
    (trace,) = client.search_traces([experiment_id])
    spans = trace.data.spans
    assert [span.name for span in spans if span.parent_id is None] == ["run"]
    kinds = {span.span_type for span in spans}
    assert kinds == {"AGENT", "CHAIN", "LLM", "EVALUATOR"}
    assert all(span.start_time_ns <= span.end_time_ns for span in spans)
    assert trace.info.trace_metadata["mlflow.sourceRun"] == good_run.info.run_id


@pytest.mark.timeout(400)  # the server may take minutes to start
@IGNORE_MLFLOW_WARNINGS
def test_a_server_receives_nested_runs_with_artifacts_and_traces(bench: BenchFolder, server: str) -> None:
    assert_tracked(bench, server)


@IGNORE_MLFLOW_WARNINGS
def test_a_database_file_receives_the_same_data(bench: BenchFolder, tmp_path: Path) -> None:
    assert_tracked(bench, f"sqlite:///{tmp_path}/own.db")
    assert (tmp_path / "mlflow-artifacts").is_dir()
    bench.add_row(make_row(3, ""))
    assert track_benchmark(bench, uri=f"sqlite:///{tmp_path}/own.db").rows == 1


@IGNORE_MLFLOW_WARNINGS
def test_folders_with_the_same_name_are_different_benchmarks(bench: BenchFolder, tmp_path: Path) -> None:
    same_name = BenchFolder(tmp_path / "elsewhere" / bench.path.name)
    same_name.path.mkdir(parents=True)
    same_name.write_plan(PLAN)
    same_name.write_rows([make_row(1, "")])
    uri = f"sqlite:///{tmp_path}/own.db"

    first, second = track_benchmark(bench, uri=uri), track_benchmark(same_name, uri=uri)

    assert first.run != second.run
    assert (second.rows, second.known) == (1, 0)


@IGNORE_MLFLOW_WARNINGS
def test_an_unreachable_server_is_named(bench: BenchFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(StorageError, match=r"http://127\.0\.0\.1:9"):
        track_benchmark(bench, uri="http://127.0.0.1:9")


def test_a_missing_mlflow_is_an_error_that_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)  # importing it fails now
    folder = BenchFolder(tmp_path)
    with pytest.raises(UsageError, match="no benchmark"):
        track_benchmark(folder, uri="sqlite:///x.db")

    folder.write_plan(PLAN)
    with pytest.raises(PrerequisiteError) as fault:
        track_benchmark(folder, uri="sqlite:///x.db")
    assert fault.value.remedy == format_install_command("mlflow")


def test_a_benchmark_keeps_its_id_when_its_folder_is_renamed(tmp_path: Path) -> None:
    first_bench, other_bench = BenchFolder(tmp_path / "a" / "same"), BenchFolder(tmp_path / "b" / "same")
    for folder in (first_bench, other_bench):
        folder.path.mkdir(parents=True)
        folder.write_plan(PLAN)
    assert first_bench.id != other_bench.id

    original_id = first_bench.id
    first_bench.write_plan(replace(PLAN, seeds=2))  # as extending a benchmark does
    assert first_bench.id == original_id
    assert BenchFolder(first_bench.path.rename(tmp_path / "moved")).id == original_id

    # The id of an old plan without an id is derived from its folder.
    (other_bench.path / "plan.json").write_text(json.dumps({**encode_record(PLAN), "id": ""}))
    assert len(other_bench.id) == 16
    assert other_bench.id == BenchFolder(other_bench.path).id

    description = describe_benchmark("same", other_bench.id, PLAN, [])
    assert (description.name, description.tags["suture.benchmark_id"]) == ("same", other_bench.id)


def test_rows_and_benchmarks_are_described_for_mlflow() -> None:
    description = describe_row("first", "17", make_row(1, "r1", cost_usd=0.25))
    assert description.metrics["success"] == description.metrics["claimed"] == 1
    assert description.metrics["money_usd"] == 0.25
    assert description.tags["suture.run"] == "r1"

    changed = describe_row("first", "17", make_row(1, "r1", cost_usd=0.26))
    assert changed.tags["suture.row"] != description.tags["suture.row"]

    faulty_run = describe_row("first", "17", make_row(2, "", steps=(), fault="x" * 900))
    assert "success" not in faulty_run.metrics
    assert len(faulty_run.tags["suture.fault"]) == 500

    # A candidate that leads again appears twice, and a claim is what the user was told.
    other_step = replace(STEP, candidate="d", completion_tokens=18)
    retried = replace(
        make_row(1, "r1", steps=(STEP, other_step, replace(STEP, completion_tokens=20))), outcome="not_healed"
    )
    assert describe_row("first", "17", retried).metrics["retries"] == 1
    assert describe_row("first", "17", retried).metrics["claimed"] == 0

    benchmark = describe_benchmark("first", "17", PLAN, [make_row(1, ""), make_row(2, "", steps=())])
    assert benchmark.metrics["solved.greedy"] == 0.5
    assert benchmark.metrics["faults.greedy"] == 0
    assert benchmark.params["sets"] == "made (2)"
