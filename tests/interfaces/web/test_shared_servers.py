"""Two servers share one PostgreSQL and a Ray cluster of two nodes, one of which is killed during a run."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from interfaces.web.real_server import PATIENCE_S, Server, read_events
from interfaces.web.two_nodes import CountingModel, TwoNodes, make_task
from requirements import Require

pytestmark = [pytest.mark.heavy, pytest.mark.usefixtures("sandbox"), pytest.mark.timeout(400)]
RUNS = 2


@pytest.fixture
def cluster(
    require: Require, postgres_with_tables: str, tmp_path: Path
) -> Iterator[tuple[CountingModel, TwoNodes]]:
    """Start a cluster of two nodes and the model that its runs call."""
    require("ray", importlib.util.find_spec("ray") is not None, "the extra `ray` is not installed")
    with CountingModel(0) as model, TwoNodes(tmp_path, postgres_with_tables, model, cpus=1) as nodes:
        yield model, nodes


def wait_until(condition: Callable[[], bool], model: CountingModel) -> None:
    """Wait until a condition holds, or fail with the counts of the model."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, (model.disconnects, model.request_counts)
        time.sleep(0.1)


def test_runs_of_a_killed_node_continue_and_every_server_reports_them(
    cluster: tuple[CountingModel, TwoNodes],
) -> None:
    model, nodes = cluster
    with (
        nodes.server("one", "--set", f"serve.queue={RUNS + 1}") as first_server,
        nodes.server("two") as second_server,
    ):
        runs = [
            (first_server, second_server)[number % 2].run(kind="write", task=make_task(number))
            for number in range(RUNS)
        ]
        wait_until(lambda: len(model.request_counts) == 2 * RUNS, model)
        assert any((nodes.second.home / "runs").iterdir()), "the second node has no run"

        cancelled_run = cancel_from_other_server(first_server, second_server)
        nodes.second.kill()
        wait_until(lambda: model.disconnects > 0, model)  # the connection closes shortly after the kill
        model.second_replies_allowed.set()
        first_server.stop()  # a run does not depend on the server that accepted it
        for run in runs:
            events = list(second_server.events(run))
            assert events[-1]["event"] == "end"
            assert [event["data"].get("seq") for event in events[:-1]] == list(range(len(events) - 1))
            assert second_server.wait_for_state(run, "ended")["outcome"] == "healed"
            assert second_server.get(f"/v1/runs/{run}/diff").status_code == 200
        first_server.start()
        assert {run["run"] for run in first_server.get("/v1/runs").json()["runs"]} >= set(runs)
        assert first_server.get_run(runs[0])["outcome"] == "healed"
        assert first_server.get_run(cancelled_run)["outcome"] is None

        kinds = [[event["kind"] for event in read_events(second_server.home, run)] for run in runs]

    assert model.repeated_prompts == {}
    assert all(run_kinds.count("run.started") == 1 for run_kinds in kinds)
    assert any("run.resumed" in run_kinds for run_kinds in kinds), "no run was on the killed node"


def cancel_from_other_server(first_server: Server, second_server: Server) -> str:
    """Queue a run at both servers under one idempotency key, cancel it at the second, and return its id."""
    request, key = {"kind": "write", "task": make_task(99)}, {"Idempotency-Key": "again"}
    first_response, second_response = (
        server.post("/v1/runs", request, headers=key).json() for server in (first_server, second_server)
    )
    assert first_response == {"run": second_response["run"], "state": "queued"}
    assert second_server.post(f"/v1/runs/{second_response['run']}/cancel").status_code == 202
    assert first_server.wait_for_state(second_response["run"], "refused")["error"]["fault"] == "Cancelled"
    return str(second_response["run"])
