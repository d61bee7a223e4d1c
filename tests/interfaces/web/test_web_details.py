"""Further requests of the page: candidates, diffs, the graph, steps, two runs, benchmarks, the caller."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from bench.made_rows import benchmark_rows, write_rows
from interfaces.web.real_server import TASK, Server, ledger_of, scripted
from interfaces.web.uploaded_projects import BROKEN, laid
from suture.core.ledger import CATALOGUE, read_ledger
from suture.core.ledger.kinds import SearchSkipped
from suture.interfaces.narrative.graph_progress import visited_nodes
from suture.loop.graph import graph_edges

WRONG = "```python\ndef double(n):\n    return 4 * n\n```"
RIGHT = "```python\ndef double(n):\n    return 2 * n\n```"
NONE = "0" * 64


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    laid(folder / "projects" / "cart", BROKEN)
    (folder / "projects" / "out").symlink_to(folder)
    root = str(folder / "projects")
    with Server(folder, "--root", root, "--model", scripted(folder, WRONG, RIGHT)) as running:
        yield running


@pytest.fixture(scope="module")
def healed(server: Server) -> str:
    run = server.run(kind="heal", path=str(server.folder / "projects" / "cart"), model="none")
    assert server.until(run, "ended")["outcome"] == "healed"
    return run


@pytest.mark.heavy
def test_candidates_and_their_verdicts(server: Server, written: str) -> None:
    wrong, right = server.get(f"/v1/runs/{written}/candidates").json()
    assert (wrong["passed"], wrong["failed"], wrong["best"]) == (0, 1, False)
    assert (right["passed"], right["failed"], right["best"]) == (1, 0, True)
    told = server.get(f"/v1/runs/{written}/candidates/{wrong['candidate']}").json()
    assert told["files"] == {"solution.py": "def double(n):\n    return 4 * n\n"}
    fact = told["verdict"]["outcomes"][0]["counterexample"]
    assert (fact["call"], fact["expected"], fact["actual"]) == ("double(4)", "8", "16")
    unknown = server.get(f"/v1/runs/{written}/candidates/{NONE}")
    assert unknown.status_code == 404
    assert "no candidate" in unknown.json()["detail"]


@pytest.mark.heavy
def test_what_changes_between_two_candidates(server: Server, written: str, healed: str) -> None:
    wrong, right = (one["candidate"] for one in server.get(f"/v1/runs/{written}/candidates").json())
    between = server.get(f"/v1/runs/{written}/diff", params={"from": wrong, "to": right}).text
    assert "-    return 4 * n\n+    return 2 * n\n" in between
    back = server.get(f"/v1/runs/{written}/diff", params={"from": right, "to": wrong}).text
    assert "-    return 2 * n\n+    return 4 * n\n" in back
    original, fixed = (one["candidate"] for one in server.get(f"/v1/runs/{healed}/candidates").json())
    own = server.get(f"/v1/runs/{healed}/diff", params={"to": fixed}).text
    assert own == server.get(f"/v1/runs/{healed}/diff").text
    assert own == server.get(f"/v1/runs/{healed}/diff", params={"from": original, "to": fixed}).text
    assert server.get(f"/v1/runs/{healed}/diff", params={"from": fixed, "to": fixed}).text == ""
    assert server.get(f"/v1/runs/{healed}/diff", params={"to": "nothing"}).status_code == 400


def test_the_graph_and_where_a_run_stands(server: Server, written: str, healed: str) -> None:
    graph = server.get(f"/v1/runs/{written}/graph").json()
    visits = {node["name"]: node["visits"] for node in graph["nodes"]}
    assert graph["active"] is None
    assert visits["propose"] == visits["check"] == visits["reflect"] == 2
    assert visits["mutate"] == 0
    assert {"from": "decide", "to": "review"} in graph["edges"]
    visits = {n["name"]: n["visits"] for n in server.get(f"/v1/runs/{healed}/graph").json()["nodes"]}
    assert (visits["mutate"], visits["try_repairs"], visits["propose"]) == (1, 1, 0)
    baseline = server.run(kind="write", task=TASK, recipe="greedy", autonomy="review_all")
    server.until(baseline, "waiting")
    graph = server.get(f"/v1/runs/{baseline}/graph").json()
    possible = {node["name"]: node["possible"] for node in graph["nodes"]}
    assert graph["active"] == "review"
    assert (possible["mutate"], possible["propose"]) == (False, True)


def test_a_run_goes_along_the_edges_of_its_graph(server: Server, written: str, healed: str) -> None:
    for run in (written, healed):
        way = visited_nodes(read_ledger(server.home / "runs" / run / "ledger.jsonl").events)
        assert way[0] == "prepare"
        assert way[-1] == "finish"
        assert set(pairwise(way)) <= set(graph_edges())


def test_a_step_as_it_was(server: Server, written: str) -> None:
    first = server.get(f"/v1/runs/{written}/steps/1").json()
    assert (first["passed"], first["failed"]) == (0, 1)
    assert "return 4 * n" in first["files"]["solution.py"]
    assert server.get(f"/v1/runs/{written}/steps/99").status_code == 404


@pytest.mark.heavy
def test_two_runs_side_by_side(server: Server, written: str, healed: str) -> None:
    told = server.get(f"/v1/runs/{written}/compare/{healed}").json()
    assert told["difference"]["kind"] == "run.started"
    assert "-    return 2 * n" in told["diff"]
    again = server.post(f"/v1/runs/{written}/replay").json()["run"]
    server.until(again, "ended")
    same = server.get(f"/v1/runs/{written}/compare/{again}").json()
    assert (same["difference"], same["diff"]) == (None, "")


def test_events_say_in_words_what_happened(server: Server, written: str) -> None:
    plain = [json.loads(line) for line in _data(server, f"/v1/runs/{written}/events")]
    described = [json.loads(line) for line in _data(server, f"/v1/runs/{written}/events?text=true")]
    assert [{k: v for k, v in one.items() if k != "text"} for one in described] == plain
    assert plain == ledger_of(server.home, written)
    texts = {one["kind"]: one["text"] for one in described}
    assert texts["run.finished"].startswith("healed: every trusted check passes; confidence 0.")
    assert texts["budget.settled"] is None


def _data(server: Server, path: str) -> list[str]:
    lines = server.get(path).text.splitlines()
    return [line.removeprefix("data: ") for line in lines if line.startswith('data: {"')]


def test_who_asks_and_for_what_they_may(server: Server) -> None:
    told = server.get("/v1/caller").json()
    assert (told["name"], told["role"], told["needs_token"]) == ("local", "admin", False)
    assert told["budget"]["tokens"] == 60000
    root = server.folder / "projects"
    assert server.get("/v1/projects").json() == {
        "roots": [str(root)],
        "folders": [str(root / "cart")],
        "git": [],
    }


@pytest.mark.heavy
def test_a_question_brings_the_texts_that_may_be_edited(server: Server) -> None:
    path = str(server.folder / "projects" / "cart")
    run = server.run(kind="heal", path=path, model="none", autonomy="review_all")
    question = server.until(run, "waiting")["question"]
    assert question["texts"] == {"cart.py": BROKEN["cart.py"]}
    assert question["key"]
    server.post(f"/v1/runs/{run}/review", {"choice": "abort"})


def test_the_page_loads_nothing_from_elsewhere(server: Server) -> None:
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
        outside = text.replace(
            "http://www.w3.org/2000/svg", ""
        )  # the name of a language; nothing is requested from there
        assert "http://" not in outside, file.name
        assert "https://" not in outside, file.name


def test_an_event_kind_that_belongs_to_no_node_is_ignored() -> None:
    assert SearchSkipped.event_kind in CATALOGUE
    assert visited_nodes(()) == ()


def test_a_benchmarks_report(server: Server) -> None:
    assert server.get("/v1/benchmarks").json() == []
    assert server.get("/v1/benchmarks/nothing").status_code == 404
    write_rows(server.home / "benchmarks" / "small", benchmark_rows(tasks=6))
    assert server.get("/v1/benchmarks").json() == ["small"]
    report = server.get("/v1/benchmarks/small").json()
    captions = [table["caption"] for section in report["sections"] for table in section["tables"]]
    assert "Paired tests" in captions
    assert any("adaptive" in row[0] for row in report["sections"][0]["tables"][0]["rows"])
