"""Two servers share one PostgreSQL and a Ray cluster of two nodes, one of which is killed during a run."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from interfaces.web.real_server import PATIENCE_S, Server, ledger_of
from interfaces.web.two_nodes import CountingModel, TwoNodes, task
from requirements import Require

pytestmark = [pytest.mark.heavy, pytest.mark.usefixtures("sandbox"), pytest.mark.timeout(400)]
RUNS = 2


@pytest.fixture
def cluster(
    require: Require, postgres_with_tables: str, tmp_path: Path
) -> Iterator[tuple[CountingModel, TwoNodes]]:
    require("ray", importlib.util.find_spec("ray") is not None, "the extra `ray` is not installed")
    with CountingModel(0) as model, TwoNodes(tmp_path, postgres_with_tables, model, cpus=1) as nodes:
        yield model, nodes


def wait_until(holds: Callable[[], bool], model: CountingModel) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until_s, (model.gone, model.asked)
        time.sleep(0.1)


def test_a_killed_nodes_runs_go_on_elsewhere_and_any_server_tells_of_them(
    cluster: tuple[CountingModel, TwoNodes],
) -> None:
    model, nodes = cluster
    with nodes.server("one", "--set", f"serve.queue={RUNS + 1}") as one, nodes.server("two") as two:
        runs = [(one, two)[number % 2].run(kind="write", task=task(number)) for number in range(RUNS)]
        wait_until(lambda: len(model.asked) == 2 * RUNS, model)
        assert any((nodes.second.home / "runs").iterdir()), "the second node has one of them"
        waiting = cancelled_from_the_other(one, two)
        nodes.second.kill()
        wait_until(lambda: model.gone > 0, model)  # it hangs up a little after its death
        model.open.set()
        one.stop()  # whoever was asked for a run need not be there for its end
        for run in runs:
            events = list(two.events(run))
            assert events[-1]["event"] == "end"
            assert [event["data"].get("seq") for event in events[:-1]] == list(range(len(events) - 1))
            assert two.until(run, "ended")["outcome"] == "healed"
            assert two.get(f"/v1/runs/{run}/diff").status_code == 200
        one.start()
        assert {run["run"] for run in one.get("/v1/runs").json()["runs"]} >= set(runs)
        assert one.shown(runs[0])["outcome"] == "healed"
        assert one.shown(waiting)["outcome"] is None
        kinds = [[event["kind"] for event in ledger_of(two.home, run)] for run in runs]
    assert model.repeated == {}
    assert all(of_a_run.count("run.started") == 1 for of_a_run in kinds)
    assert any("run.resumed" in of_a_run for of_a_run in kinds), "one was on the node that died"


def cancelled_from_the_other(one: Server, two: Server) -> str:
    """A run that waits for a CPU; the same key elsewhere is the same run, and either may take it back."""
    asked, key = {"kind": "write", "task": task(99)}, {"Idempotency-Key": "again"}
    first, again = (server.post("/v1/runs", asked, headers=key).json() for server in (one, two))
    assert first == {"run": again["run"], "state": "queued"}
    assert two.post(f"/v1/runs/{again['run']}/cancel").status_code == 202
    assert one.until(again["run"], "refused")["error"]["fault"] == "Cancelled"
    return str(again["run"])
