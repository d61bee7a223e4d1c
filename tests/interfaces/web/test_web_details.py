"""Routes of the page: candidates, diffs, the graph, steps, comparisons, benchmarks and the caller."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from bench.made_rows import make_benchmark_rows, write_rows
from interfaces.web.real_server import TASK, Server, read_events, write_scripted_model
from interfaces.web.uploaded_projects import BROKEN_PROJECT, write_project
from suture.core.ledger import CATALOGUE, read_ledger
from suture.core.ledger.kinds import SearchSkipped
from suture.interfaces.narrative.graph_progress import visited_nodes
from suture.loop.graph import graph_edges

WRONG_REPLY = "```python\ndef double(n):\n    return 4 * n\n```"
CORRECT_REPLY = "```python\ndef double(n):\n    return 2 * n\n```"
UNKNOWN_CANDIDATE = "0" * 64


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    """Start a server with a broken project and a model that is right in its second reply."""
    write_project(folder / "projects" / "cart", BROKEN_PROJECT)
    (folder / "projects" / "out").symlink_to(folder)
    root = str(folder / "projects")
    with Server(
        folder, "--root", root, "--model", write_scripted_model(folder, WRONG_REPLY, CORRECT_REPLY)
    ) as started_server:
        yield started_server


@pytest.fixture(scope="module")
def healed_run(server: Server) -> str:
    """Return the id of a run that has healed the project without a model."""
    run = server.run(kind="heal", path=str(server.folder / "projects" / "cart"), model="none")
    assert server.wait_for_state(run, "ended")["outcome"] == "healed"
    return run


@pytest.mark.heavy
def test_candidates_are_listed_with_their_verdicts(server: Server, written_run: str) -> None:
    wrong_candidate, correct_candidate = server.get(f"/v1/runs/{written_run}/candidates").json()
    assert (wrong_candidate["passed"], wrong_candidate["failed"], wrong_candidate["best"]) == (0, 1, False)
    assert (correct_candidate["passed"], correct_candidate["failed"], correct_candidate["best"]) == (
        1,
        0,
        True,
    )

    candidate = server.get(f"/v1/runs/{written_run}/candidates/{wrong_candidate['candidate']}").json()
    assert candidate["files"] == {"solution.py": "def double(n):\n    return 4 * n\n"}

    counterexample = candidate["verdict"]["outcomes"][0]["counterexample"]
    assert (counterexample["call"], counterexample["expected"], counterexample["actual"]) == (
        "double(4)",
        "8",
        "16",
    )

    missing = server.get(f"/v1/runs/{written_run}/candidates/{UNKNOWN_CANDIDATE}")
    assert missing.status_code == 404
    assert "no candidate" in missing.json()["detail"]


@pytest.mark.heavy
def test_the_diff_between_two_candidates_is_served(server: Server, written_run: str, healed_run: str) -> None:
    wrong_candidate, correct_candidate = (
        candidate["candidate"] for candidate in server.get(f"/v1/runs/{written_run}/candidates").json()
    )
    forward_diff = server.get(
        f"/v1/runs/{written_run}/diff", params={"from": wrong_candidate, "to": correct_candidate}
    ).text
    assert "-    return 4 * n\n+    return 2 * n\n" in forward_diff

    backward_diff = server.get(
        f"/v1/runs/{written_run}/diff", params={"from": correct_candidate, "to": wrong_candidate}
    ).text
    assert "-    return 2 * n\n+    return 4 * n\n" in backward_diff

    healed_candidates = server.get(f"/v1/runs/{healed_run}/candidates").json()
    original, fixed = (candidate["candidate"] for candidate in healed_candidates)
    result_diff = server.get(f"/v1/runs/{healed_run}/diff", params={"to": fixed}).text
    assert result_diff == server.get(f"/v1/runs/{healed_run}/diff").text
    assert (
        result_diff == server.get(f"/v1/runs/{healed_run}/diff", params={"from": original, "to": fixed}).text
    )
    assert server.get(f"/v1/runs/{healed_run}/diff", params={"from": fixed, "to": fixed}).text == ""
    assert server.get(f"/v1/runs/{healed_run}/diff", params={"to": "nothing"}).status_code == 400


def test_the_graph_shows_visited_and_active_nodes(server: Server, written_run: str, healed_run: str) -> None:
    graph = server.get(f"/v1/runs/{written_run}/graph").json()
    visits = {node["name"]: node["visits"] for node in graph["nodes"]}
    assert graph["active"] is None
    assert visits["propose"] == visits["check"] == visits["reflect"] == 2
    assert visits["mutate"] == 0
    assert {"from": "decide", "to": "review", "visits": 0} in graph["edges"]
    assert {"from": "propose", "to": "check", "visits": 2} in graph["edges"]

    healed_graph = server.get(f"/v1/runs/{healed_run}/graph").json()
    visits = {node["name"]: node["visits"] for node in healed_graph["nodes"]}
    assert (visits["mutate"], visits["try_repairs"], visits["propose"]) == (1, 1, 0)

    baseline = server.run(kind="write", task=TASK, recipe="greedy", autonomy="review_all")
    server.wait_for_state(baseline, "waiting")
    graph = server.get(f"/v1/runs/{baseline}/graph").json()
    possible = {node["name"]: node["possible"] for node in graph["nodes"]}
    assert graph["active"] == "review"
    assert (possible["mutate"], possible["propose"]) == (False, True)


def test_a_run_follows_the_edges_of_its_graph(server: Server, written_run: str, healed_run: str) -> None:
    for run in (written_run, healed_run):
        nodes = visited_nodes(read_ledger(server.home / "runs" / run / "ledger.jsonl").events)
        assert nodes[0] == "prepare"
        assert nodes[-1] == "finish"
        assert set(pairwise(nodes)) <= set(graph_edges())


def test_an_earlier_step_is_served(server: Server, written_run: str) -> None:
    step = server.get(f"/v1/runs/{written_run}/steps/1").json()
    assert (step["passed"], step["failed"]) == (0, 1)
    assert "return 4 * n" in step["files"]["solution.py"]
    assert server.get(f"/v1/runs/{written_run}/steps/99").status_code == 404


@pytest.mark.heavy
def test_two_runs_can_be_compared(server: Server, written_run: str, healed_run: str) -> None:
    comparison = server.get(f"/v1/runs/{written_run}/compare/{healed_run}").json()
    assert comparison["difference"]["kind"] == "run.started"
    assert "-    return 2 * n" in comparison["diff"]

    replay = server.post(f"/v1/runs/{written_run}/replay").json()["run"]
    server.wait_for_state(replay, "ended")
    comparison_with_replay = server.get(f"/v1/runs/{written_run}/compare/{replay}").json()
    assert (comparison_with_replay["difference"], comparison_with_replay["diff"]) == (None, "")


def test_events_can_include_their_text(server: Server, written_run: str) -> None:
    events = [json.loads(line) for line in _read_event_data(server, f"/v1/runs/{written_run}/events")]
    described_events = [
        json.loads(line) for line in _read_event_data(server, f"/v1/runs/{written_run}/events?text=true")
    ]
    assert [
        {key: value for key, value in event.items() if key != "text"} for event in described_events
    ] == events
    assert events == read_events(server.home, written_run)

    texts = {event["kind"]: event["text"] for event in described_events}
    assert texts["run.finished"].startswith("done: every trusted check passes; confidence 0.")
    assert texts["budget.settled"] is None


def _read_event_data(server: Server, path: str) -> list[str]:
    """Return the data lines of an event stream."""
    lines = server.get(path).text.splitlines()
    return [line.removeprefix("data: ") for line in lines if line.startswith('data: {"')]


def test_the_caller_and_the_allowed_projects_are_served(server: Server) -> None:
    caller = server.get("/v1/caller").json()
    assert (caller["name"], caller["role"], caller["needs_token"]) == ("local", "admin", False)
    assert caller["budget"]["tokens"] == 60000

    root = server.folder / "projects"
    assert server.get("/v1/projects").json() == {
        "roots": [str(root)],
        "folders": [str(root / "cart")],
        "git": [],
    }


@pytest.mark.heavy
def test_a_question_contains_the_editable_files(server: Server) -> None:
    path = str(server.folder / "projects" / "cart")
    run = server.run(kind="heal", path=path, model="none", autonomy="review_all")
    question = server.wait_for_state(run, "waiting")["question"]
    assert question["texts"] == {"cart.py": BROKEN_PROJECT["cart.py"]}
    assert question["key"]
    server.post(f"/v1/runs/{run}/review", {"choice": "abort"})


def test_the_page_loads_nothing_from_other_servers(server: Server) -> None:
    page = server.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"

    policy = page.headers.get_list("content-security-policy", split_commas=False)
    assert len(policy) == 1
    assert "script-src 'self'" in policy[0]
    assert "unsafe" not in policy[0]

    script = server.get("/page/app.js")
    assert script.headers["content-type"].startswith("text/javascript")
    for name in ("nothing.js", "..%2fapp.py", "%2e%2e/app.py", "__init__.py", ".", "%00"):
        assert server.get(f"/page/{name}").status_code == 404, name

    folder = Path(__file__).parents[3] / "src" / "suture" / "interfaces" / "web" / "page"
    for file in folder.iterdir():
        text = file.read_text()
        assert "innerHTML" not in text, file.name
        # The address of SVG is the name of an XML namespace; nothing is requested from there.
        urls = text.replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in urls, file.name
        assert "https://" not in urls, file.name


def test_an_event_kind_that_belongs_to_no_node_is_ignored() -> None:
    assert SearchSkipped.event_kind in CATALOGUE
    assert visited_nodes(()) == ()


def test_a_benchmark_report_is_served(server: Server) -> None:
    assert server.get("/v1/benchmarks").json() == []
    assert server.get("/v1/benchmarks/nothing").status_code == 404

    write_rows(server.home / "benchmarks" / "small", make_benchmark_rows(tasks=6))
    assert server.get("/v1/benchmarks").json() == ["small"]

    report = server.get("/v1/benchmarks/small").json()
    captions = [table["caption"] for section in report["sections"] for table in section["tables"]]
    assert "Paired tests" in captions
    assert any("adaptive" in row[0] for row in report["sections"][0]["tables"][0]["rows"])
