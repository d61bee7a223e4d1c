"""Runs over HTTP, from the request to the certificate: a real server, real sandboxes, a scripted model."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bare_pytest import BARE_PYTEST
from interfaces.web.real_server import RIGHT, TASK, Server, ledger_of, scripted
from interfaces.web.uploaded_projects import BROKEN, HANGING, laid, tarred, zipped

pytestmark = pytest.mark.timeout(300)
PYTEST = BARE_PYTEST


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    laid(folder / "projects" / "hanging", HANGING)
    options = ("--model", scripted(folder, RIGHT), "--root", str(folder / "projects"))
    with Server(
        folder, *options, "--set", "serve.max_concurrent_runs=1", "--set", "serve.queue=2"
    ) as running:
        yield running


@pytest.fixture(scope="module")
def healed(server: Server) -> str:
    """A run that has healed an archive without a model."""
    kept = server.post("/v1/archives", content=zipped(BROKEN))
    assert kept.status_code == 201, kept.text
    run = server.run(kind="heal", archive=kept.json()["archive"], test=PYTEST, model="none")
    shown = server.until(run, "ended", "refused")
    assert shown["outcome"] == "healed", shown
    return run


def test_new_code_is_written_and_its_files_are_told(server: Server, written: str) -> None:
    files = server.get(f"/v1/runs/{written}/files").json()["files"]
    assert files == {"solution.py": "def double(n):\n    return 2 * n\n"}
    assert server.shown(written)["spend"]["model_calls"] == 1
    assert len(list((server.home / "runs").glob(f"{written}*"))) == 1


def test_an_archive_is_healed_proved_and_verified_again(server: Server, healed: str) -> None:
    diff = server.get(f"/v1/runs/{healed}/diff")
    assert diff.headers["content-type"].startswith("text/x-diff")
    assert "-    return sum(prices) + 1" in diff.text
    certificate = server.get(f"/v1/runs/{healed}/certificate").json()
    assert healed in str(certificate)
    again = server.post(f"/v1/runs/{healed}/verify").json()
    assert again["ok"] is True
    assert len(again["findings"]) > 3


def test_a_damaged_certificate_is_not_verified(server: Server, healed: str) -> None:
    path = server.home / "runs" / healed / "certificate.json"
    whole = path.read_text()
    path.write_text(whole.replace("sum(prices)", "sum(prizes)"))
    try:
        answer = server.post(f"/v1/runs/{healed}/verify")
    finally:
        path.write_text(whole)
    assert answer.status_code == 409 or answer.json()["ok"] is False


def test_the_same_archive_is_kept_once(server: Server) -> None:
    names = {server.post("/v1/archives", content=tarred(BROKEN, "w")).json()["archive"] for _ in range(2)}
    assert len(names) == 1


def test_runs_are_listed_found_and_paged(server: Server, written: str, healed: str) -> None:
    everything = server.get("/v1/runs").json()
    listed = [run["run"] for run in everything["runs"]]
    assert {written, healed} <= set(listed)
    assert listed == sorted(listed, reverse=True)
    second = server.get("/v1/runs", params={"limit": 1, "offset": 1}).json()
    assert [run["run"] for run in second["runs"]] == listed[1:2]
    found = server.get("/v1/runs", params={"search": "doubles", "kind": "write"}).json()
    assert written in [run["run"] for run in found["runs"]]
    assert healed not in [run["run"] for run in found["runs"]]


def test_many_listeners_each_get_every_event_once(server: Server) -> None:
    run = server.run(kind="write", task=TASK)

    def listen(number: int) -> list[int]:
        """Every other listener goes away after three events, and comes back with the last it has seen."""
        seen: list[int] = []
        while True:
            for told, event in enumerate(server.events(run, seen[-1] if seen else None), 1):
                if event["event"] == "end":
                    return seen
                seen.append(int(event["id"]))
                if number % 2 and told == 3:
                    break

    with ThreadPoolExecutor(8) as threads:
        heard = list(threads.map(listen, range(8)))
    wanted = [event["seq"] for event in ledger_of(server.home, run)]
    assert len(wanted) > 5
    assert heard == [wanted] * 8


def test_whoever_has_seen_the_last_event_of_an_ended_run_is_told_so(server: Server, written: str) -> None:
    last = ledger_of(server.home, written)[-1]["seq"]
    answer = server.get(f"/v1/runs/{written}/events", headers={"Last-Event-ID": str(last)})
    assert answer.status_code == 204


@pytest.mark.heavy
def test_a_question_is_answered_and_the_run_continues(server: Server) -> None:
    run = server.run(kind="write", task=TASK, autonomy="review_all")
    asked = 0
    while (shown := server.until(run, "waiting", "ended"))["state"] == "waiting":
        asked += 1
        assert shown["question"]["question"]
        wrong = server.post(f"/v1/runs/{run}/review", {"choice": "first"})
        assert wrong.status_code == 400
        assert "give one of" in wrong.json()["remedy"]
        other = server.post(f"/v1/runs/{run}/review", {"choice": "approve", "key": "0" * 64})
        assert (other.status_code, "a different question" in other.json()["detail"]) == (409, True)
        assert server.post(f"/v1/runs/{run}/review", {"choice": "approve"}).status_code == 202
    assert asked >= 2
    assert shown["outcome"] == "healed"
    late = server.post(f"/v1/runs/{run}/review", {"choice": "approve"})
    assert late.status_code == 409


def test_a_run_is_forked_and_replayed(server: Server, written: str) -> None:
    forked = server.post(f"/v1/runs/{written}/fork", {"at": 0, "hint": "think", "recipe": "greedy"})
    assert forked.status_code == 202, forked.text
    assert server.until(forked.json()["run"], "ended")["outcome"] == "healed"
    again = server.post(f"/v1/runs/{written}/replay").json()["run"]
    assert server.until(again, "ended")["outcome"] == "healed"
    origins = {
        run["run"]: (run["fork_of"], run["replay_of"]) for run in server.get("/v1/runs").json()["runs"]
    }
    assert origins[forked.json()["run"]] == (written, None)
    assert origins[again] == (None, written)


def test_a_step_that_is_not_there_is_told_in_the_command_lines_words(server: Server, written: str) -> None:
    run = server.post(f"/v1/runs/{written}/fork", {"at": 77}).json()["run"]
    shown = server.until(run, "refused", "ended")
    assert shown["error"]["exit_code"] == 2
    assert "step" in shown["error"]["detail"]


def test_the_same_request_under_one_key_is_done_once(server: Server) -> None:
    key = {"Idempotency-Key": "once"}
    asked = {"kind": "write", "task": TASK}
    runs = {server.post("/v1/runs", asked, headers=key).json()["run"] for _ in range(3)}
    assert len(runs) == 1
    other = server.post("/v1/runs", {**asked, "task": "something else"}, headers=key)
    assert other.status_code == 409
    server.until(runs.pop(), "ended")


def test_a_full_queue_says_when_to_come_back_and_keeps_its_order(server: Server) -> None:
    hanging: dict[str, Any] = {
        "kind": "heal",
        "path": str(server.folder / "projects" / "hanging"),
        "test": PYTEST,
        "model": "none",
    }
    held = server.run(**hanging)
    queued = [server.run(kind="write", task=TASK) for _ in range(2)]
    refused = server.post("/v1/runs", hanging)
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) >= 1
    assert "serve.queue" in refused.json()["remedy"]
    assert [run["run"] for run in server.get("/v1/runs").json()["queued"]] == queued
    assert server.shown(queued[0])["state"] == "queued"
    cancelled = server.post(f"/v1/runs/{queued[1]}/cancel")
    assert cancelled.status_code == 202
    assert server.shown(queued[1])["error"]["exit_code"] == 130
    assert server.post(f"/v1/runs/{held}/cancel").status_code == 202
    assert server.until(queued[0], "ended")["outcome"] == "healed"
    assert server.until(held, "ended", "refused")["error"]["exit_code"] == 130
    assert server.post(f"/v1/runs/{held}/cancel").status_code == 409


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"recipe": "nowhere.toml"}, "no recipe"),
        ({"model": "scripted:/etc/passwd"}, "not offered"),
        ({"model": "openai:gpt-4"}, "not offered"),
    ],
)
def test_what_is_not_offered_cannot_be_chosen(server: Server, asked: dict[str, str], says: str) -> None:
    answer = server.post("/v1/runs", {"kind": "write", "task": TASK, **asked})
    assert answer.status_code == 400
    assert says in answer.json()["detail"]


def test_nobody_gets_more_than_the_server_allows(server: Server) -> None:
    run = server.run(kind="write", task=TASK, tokens=10**9, attempts=9999, seconds=10**5)
    server.until(run, "ended")
    limits = next(event["data"] for event in ledger_of(server.home, run) if event["kind"] == "run.started")
    assert '"tokens": 60000' in str(limits).replace("'", '"')


def test_what_prometheus_and_people_are_told(server: Server, written: str) -> None:
    text = server.get("/metrics").text
    assert "suture_jobs_running" in text
    assert 'suture_jobs_ended_total{exit_code="0",kind="write"}' in text
    assert 'route="/v1/runs/{run}"' in text
    assert written not in text
    assert server.get("/v1/metrics").json()["runs"] >= 1
    assert "adaptive" in [recipe["name"] for recipe in server.get("/v1/recipes").json()]
    assert "none" in server.get("/v1/models").json()["choices"]
    assert any(row["name"] == "python" for row in server.get("/v1/doctor").json())
    assert server.get("/healthz").json()["ok"] is True
    assert server.get("/readyz").json()["ok"] is True


@pytest.mark.heavy
def test_a_share_of_a_day_is_kept_to(tmp_path: Path) -> None:
    with Server(tmp_path, "--model", "none", "--set", "serve.tokens_per_day=100") as server:
        refused = server.post("/v1/runs", {"kind": "write", "task": TASK})
        assert refused.status_code == 429
        assert "tokens" in refused.json()["detail"]
        assert server.post("/v1/runs", {"kind": "write", "task": TASK, "tokens": 60}).status_code == 202
        assert server.post("/v1/runs", {"kind": "write", "task": TASK, "tokens": 60}).status_code == 429
