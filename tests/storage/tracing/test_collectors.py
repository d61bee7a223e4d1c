"""Traces of real runs, as they arrive at a collector that the standard variables name."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import suture
from requirements import Require
from storage.tracing.receiver import Receiver, run_receiver
from suture.api import WriteOptions
from suture.core.ledger import RunFolder
from suture.core.records import Result
from suture.sandbox import Requirement, RunRequest, Sandbox
from suture.storage.tracing import export_run_trace, is_tracing_enabled

TASK = "Write a function double(n) that doubles a number: double(2) == 4"
SOLVE_PROGRAM = """
import suture
print(suture.run_sync(suture.solve({task!r}, suture.WriteOptions(model={model!r}))).outcome)
"""


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A running receiver."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with run_receiver() as server:
        yield server


@pytest.fixture
def model_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox_requirement: Requirement, require: Require
) -> str:
    """The name of a scripted model whose first reply is wrong and whose second reply is correct."""
    require("bubblewrap", sandbox_requirement.ok, sandbox_requirement.detail)
    monkeypatch.setenv("SUTURE_HOME", str(tmp_path / "home"))
    script = tmp_path / "script.json"
    wrong, correct = (f"```python\ndef double(n):\n    return n * {factor}\n```" for factor in (3, 2))
    script.write_text(json.dumps([wrong, {"text": correct, "repeat": True}]), "utf-8")
    return f"scripted:{script}"


def parse_spans(body: bytes) -> list[Any]:
    """Return the spans of an export request."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    request = ExportTraceServiceRequest.FromString(body)
    return [span for group in request.resource_spans for scope in group.scope_spans for span in scope.spans]


def solve_task(model_name: str) -> Result:
    """Solve the task with a scripted model."""
    return suture.run_sync(suture.solve(TASK, WriteOptions(model=model_name)))


def test_a_run_is_exported_to_the_collector(
    receiver: Receiver, model_name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("opentelemetry.sdk", reason="the extra `otel` is not installed")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.address)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=blue")
    result = solve_task(model_name)

    assert result.outcome == "healed"

    ((path, headers, body),) = receiver.requests
    assert (path, headers["x-team"]) == ("/v1/traces", "blue")

    spans = parse_spans(body)
    by_id = {span.span_id: span for span in spans}
    edges = [(by_id[span.parent_span_id].name if span.parent_span_id else "", span.name) for span in spans]

    assert edges[:4] == [
        ("", "run"),
        ("run", "round 0"),
        ("round 0", f"chat {model_name}"),
        ("round 0", "check"),
    ]
    assert ("round 1", "check") in edges
    assert all(span.start_time_unix_nano <= span.end_time_unix_nano for span in spans)
    assert b"def double" not in body
    assert b"suture" in body

    folder = next((tmp_path / "home" / "runs").iterdir())
    assert export_run_trace(RunFolder(folder)) == len(spans)
    assert [span.span_id for span in parse_spans(receiver.requests[1][2])] == [span.span_id for span in spans]


def test_a_refusing_collector_does_not_fail_the_run(
    receiver: Receiver, model_name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("opentelemetry.sdk", reason="the extra `otel` is not installed")
    receiver.status = 400
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", receiver.address)

    with caplog.at_level(logging.ERROR):
        assert solve_task(model_name).outcome == "healed"
    assert receiver.requests
    assert "400" in caplog.text or "Bad Request" in caplog.text


def test_only_the_standard_variables_enable_tracing() -> None:
    address = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}
    assert is_tracing_enabled(address)
    assert not is_tracing_enabled({})
    assert not is_tracing_enabled({**address, "OTEL_SDK_DISABLED": "true"})
    assert not is_tracing_enabled({**address, "OTEL_TRACES_EXPORTER": "none"})


def test_langsmith_is_configured_by_its_own_variables(receiver: Receiver, model_name: str) -> None:
    variables = {
        "LANGSMITH_TRACING": "true",
        "LANGSMITH_ENDPOINT": receiver.address,
        "LANGSMITH_API_KEY": "none",
        "LANGSMITH_PROJECT": "here",
    }
    child = subprocess.run(
        [sys.executable, "-c", SOLVE_PROGRAM.format(task=TASK, model=model_name)],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )

    assert child.stdout.splitlines()[-1] == "healed", child.stderr

    request_bodies = b"".join(body for path, _, body in receiver.requests if "/runs" in path)
    assert b"propose" in request_bodies
    assert b"decide" in request_bodies


async def test_untrusted_code_does_not_see_these_variables(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS", "LANGSMITH_API_KEY"):
        monkeypatch.setenv(name, "for the host alone")
    code = "import os; print(sorted(n for n in os.environ if n.startswith(('OTEL', 'LANGSMITH', 'MLFLOW'))))"
    result = await sandbox.run(RunRequest(python=code))
    assert (result.exit_code, result.stdout.strip()) == (0, b"[]")
