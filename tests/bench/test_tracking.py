"""A benchmark in a real MLflow: a server, and a database file."""

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
from suture.bench.mlflow_tracking.run_descriptions import describe_benchmark, describe_row
from suture.bench.rows import BenchmarkRow, CandidateStep
from suture.bench.running.bench_folder import BenchFolder
from suture.bench.running.benchmark_plan import BenchmarkPlan
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
OTHERS_WARNINGS = pytest.mark.filterwarnings("ignore")  # what MLflow's own packages warn of is not ours
HAS_MLFLOW = importlib.util.find_spec("mlflow") is not None


def row(number: int, run: str, **more: Any) -> BenchmarkRow:
    told = {
        "steps": (STEP,),
        "completion_tokens": 9,
        "prompt_tokens": 20,
        "calls": 1,
        "prompts": {"coder": "f" * 64},
    }
    return BenchmarkRow(
        problem=f"made/{number}", problem_hash="0" * 64, dataset="made", regime="visible", arm="greedy",
        model="scripted:x", cap=100, run=run, outcome="healed", confidence=0.5, **{**told, **more},
    )  # fmt: skip


@pytest.fixture
def bench(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox_requirement: Requirement, require: Require
) -> BenchFolder:
    """A benchmark with one real run, and a row that has none."""
    require("mlflow", HAS_MLFLOW, "the extra `mlflow` is not installed")
    require("bubblewrap", sandbox_requirement.ok, sandbox_requirement.detail)
    folder = BenchFolder(tmp_path / "first")
    folder.path.mkdir()
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"text": REPLY, "repeat": True}]), "utf-8")
    monkeypatch.setenv("SUTURE_HOME", str(folder.path))
    result = suture.run_sync(suture.solve(TASK, WriteOptions(model=f"scripted:{script}")))
    folder.write_plan(PLAN)
    folder.write_rows([row(1, result.run_id), row(2, "", steps=(), fault="the wall failed")])
    return folder


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, require: Require) -> Iterator[str]:
    require("mlflow", HAS_MLFLOW, "the extra `mlflow` is not installed")
    require(
        "mlflow-server", importlib.util.find_spec("flask") is not None, "it needs more than mlflow-skinny"
    )
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    words += ["--backend-store-uri", f"sqlite:///{tmp_path}/server.db"]
    words += ["--artifacts-destination", str(tmp_path / "kept")]
    quiet = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    with (tmp_path / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "mlflow", *words], env={**os.environ, **quiet}, stdout=log, stderr=log
        )
    try:
        _wait(f"http://127.0.0.1:{port}/health", process, tmp_path / "server.log")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(20)


def _wait(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(address).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    pytest.fail(f"the server did not start: {log.read_text()[-2000:]}")


def found(uri: str) -> tuple[Any, list[Any], str]:
    import mlflow

    client = mlflow.MlflowClient(uri)
    experiment = client.get_experiment_by_name("suture")
    return client, list(client.search_runs([experiment.experiment_id])), experiment.experiment_id


def assert_tracked(bench: BenchFolder, uri: str) -> None:
    first = track_benchmark(bench, uri=uri)
    assert (first.rows, first.known) == (2, 0)
    again = track_benchmark(bench, uri=uri)
    assert (again.rows, again.known, again.run) == (0, 2, first.run)
    client, runs, place = found(uri)
    scores_by_task = {run.data.params.get("task"): run for run in runs}
    whole, good, bad = scores_by_task[None], scores_by_task["made/1"], scores_by_task["made/2"]
    assert len(runs) == 3
    assert {run.data.tags["mlflow.parentRunId"] for run in (good, bad)} == {whole.info.run_id}
    assert whole.data.metrics["solved.greedy"] == 1
    assert whole.data.params["made.os"] == "this"
    assert good.data.params["prompt.coder"] == "f" * 64
    assert (good.data.metrics["success"], good.data.metrics["tokens"], good.data.metrics["retries"]) == (
        1,
        29,
        0,
    )
    assert (good.info.status, bad.info.status) == ("FINISHED", "FAILED")
    assert "success" not in bad.data.metrics
    assert {entry.path for entry in client.list_artifacts(good.info.run_id)} >= {"ledger.jsonl", "replies"}
    assert client.list_artifacts(good.info.run_id, "replies")
    (trace,) = client.search_traces([place])
    spans = trace.data.spans
    assert [span.name for span in spans if span.parent_id is None] == ["run"]
    kinds = {span.span_type for span in spans}
    assert kinds == {"AGENT", "CHAIN", "LLM", "EVALUATOR"}
    assert all(span.start_time_ns <= span.end_time_ns for span in spans)
    assert trace.info.trace_metadata["mlflow.sourceRun"] == good.info.run_id


@pytest.mark.timeout(400)  # the server may take minutes to start
@OTHERS_WARNINGS
def test_a_server_gets_nested_runs_with_artifacts_and_traces(bench: BenchFolder, server: str) -> None:
    assert_tracked(bench, server)


@OTHERS_WARNINGS
def test_a_database_file_gets_the_same(bench: BenchFolder, tmp_path: Path) -> None:
    assert_tracked(bench, f"sqlite:///{tmp_path}/own.db")
    assert (tmp_path / "mlflow-artifacts").is_dir()
    bench.add_row(row(3, ""))
    assert track_benchmark(bench, uri=f"sqlite:///{tmp_path}/own.db").rows == 1


@OTHERS_WARNINGS
def test_two_folders_of_one_name_are_two_benchmarks(bench: BenchFolder, tmp_path: Path) -> None:
    other = BenchFolder(tmp_path / "elsewhere" / bench.path.name)
    other.path.mkdir(parents=True)
    other.write_plan(PLAN)
    other.write_rows([row(1, "")])
    uri = f"sqlite:///{tmp_path}/own.db"
    first, second = track_benchmark(bench, uri=uri), track_benchmark(other, uri=uri)
    assert first.run != second.run
    assert (second.rows, second.known) == (1, 0)


@OTHERS_WARNINGS
def test_a_server_that_is_not_there_is_named(bench: BenchFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(StorageError, match=r"http://127\.0\.0\.1:9"):
        track_benchmark(bench, uri="http://127.0.0.1:9")


def test_without_mlflow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)  # as where it is not installed
    folder = BenchFolder(tmp_path)
    with pytest.raises(UsageError, match="no benchmark"):
        track_benchmark(folder, uri="sqlite:///x.db")
    folder.write_plan(PLAN)
    with pytest.raises(PrerequisiteError) as fault:
        track_benchmark(folder, uri="sqlite:///x.db")
    assert "suture[mlflow]" in fault.value.remedy


def test_a_benchmark_keeps_its_id_whatever_its_folder_is_called(tmp_path: Path) -> None:
    one, other = BenchFolder(tmp_path / "a" / "same"), BenchFolder(tmp_path / "b" / "same")
    for folder in (one, other):
        folder.path.mkdir(parents=True)
        folder.write_plan(PLAN)
    assert one.id != other.id
    begun = one.id
    one.write_plan(replace(PLAN, seeds=2))  # such as one that was extended
    assert one.id == begun
    assert BenchFolder(one.path.rename(tmp_path / "moved")).id == begun
    # A folder from before there were ids has one of its place.
    (other.path / "plan.json").write_text(json.dumps({**encode_record(PLAN), "id": ""}))
    assert len(other.id) == 16
    assert other.id == BenchFolder(other.path).id
    told = describe_benchmark("same", other.id, PLAN, [])
    assert (told.name, told.tags["suture.benchmark_id"]) == ("same", other.id)


def test_what_mlflow_is_told() -> None:
    told = describe_row("first", "17", row(1, "r1", cost_usd=0.25))
    assert told.metrics["success"] == told.metrics["claimed"] == 1
    assert told.metrics["money_usd"] == 0.25
    assert told.tags["suture.run"] == "r1"
    other = describe_row("first", "17", row(1, "r1", cost_usd=0.26))
    assert other.tags["suture.row"] != told.tags["suture.row"]
    faulty = describe_row("first", "17", row(2, "", steps=(), fault="x" * 900))
    assert "success" not in faulty.metrics
    assert len(faulty.tags["suture.fault"]) == 500
    # One that leads again stands there twice; and a claim is what the user was told.
    other_step = replace(STEP, candidate="d", completion_tokens=18)
    again = replace(
        row(1, "r1", steps=(STEP, other_step, replace(STEP, completion_tokens=20))), outcome="not_healed"
    )
    assert describe_row("first", "17", again).metrics["retries"] == 1
    assert describe_row("first", "17", again).metrics["claimed"] == 0
    whole = describe_benchmark("first", "17", PLAN, [row(1, ""), row(2, "", steps=())])
    assert whole.metrics["solved.greedy"] == 0.5
    assert whole.metrics["faults.greedy"] == 0
    assert whole.params["sets"] == "made (2)"
