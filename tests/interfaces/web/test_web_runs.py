"""Runs over HTTP, from the request to the certificate, with a real server, sandboxes and a scripted model."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bare_pytest import BARE_PYTEST
from interfaces.web.real_server import CORRECT_REPLY, TASK, Server, read_events, write_scripted_model
from interfaces.web.uploaded_projects import (
    BROKEN_PROJECT,
    HANGING_PROJECT,
    tar_project,
    write_project,
    zip_project,
)

pytestmark = pytest.mark.timeout(300)
TEST_COMMAND = BARE_PYTEST


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    """Start a server that runs one job at a time and queues two."""
    write_project(folder / "projects" / "hanging", HANGING_PROJECT)
    options = ("--model", write_scripted_model(folder, CORRECT_REPLY), "--root", str(folder / "projects"))
    with Server(
        folder, *options, "--set", "serve.max_concurrent_runs=1", "--set", "serve.queue=2"
    ) as started_server:
        yield started_server


@pytest.fixture(scope="module")
def healed_run(server: Server) -> str:
    """Return the id of a run that has healed an archive without a model."""
    upload = server.post("/v1/archives", content=zip_project(BROKEN_PROJECT))
    assert upload.status_code == 201, upload.text
    run = server.run(kind="heal", archive=upload.json()["archive"], test=TEST_COMMAND, model="none")
    description = server.wait_for_state(run, "ended", "refused")
    assert description["outcome"] == "healed", description
    return run


def test_a_write_run_provides_its_files(server: Server, written_run: str) -> None:
    files = server.get(f"/v1/runs/{written_run}/files").json()["files"]
    assert files == {"solution.py": "def double(n):\n    return 2 * n\n"}
    assert server.get_run(written_run)["spend"]["model_calls"] == 1
    assert len(list((server.home / "runs").glob(f"{written_run}*"))) == 1


def test_nothing_above_the_named_folder_is_read(server: Server, folder: Path) -> None:
    above = folder / "projects" / "above"
    write_project(above / "shop", BROKEN_PROJECT)
    (above / ".git").mkdir()
    (above / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (above / "pytest.ini").write_text("[pytest]\n")
    run = server.run(kind="heal", path=str(above / "shop"), test=TEST_COMMAND, model="none")
    assert server.wait_for_state(run, "ended", "refused")["outcome"] == "healed"
    assert "shop/" not in server.get(f"/v1/runs/{run}/diff").text


def test_a_healed_archive_has_a_diff_and_a_verifiable_certificate(server: Server, healed_run: str) -> None:
    diff = server.get(f"/v1/runs/{healed_run}/diff")
    assert diff.headers["content-type"].startswith("text/x-diff")
    assert "-    return sum(prices) + 1" in diff.text

    certificate = server.get(f"/v1/runs/{healed_run}/certificate").json()
    assert healed_run in str(certificate)

    verification = server.post(f"/v1/runs/{healed_run}/verify").json()
    assert verification["ok"] is True
    assert len(verification["findings"]) > 3


def test_a_damaged_certificate_is_not_verified(server: Server, healed_run: str) -> None:
    path = server.home / "runs" / healed_run / "certificate.json"
    original = path.read_text()
    path.write_text(original.replace("sum(prices)", "sum(prizes)"))

    try:
        response = server.post(f"/v1/runs/{healed_run}/verify")
    finally:
        path.write_text(original)

    assert response.status_code == 409 or response.json()["ok"] is False


def test_the_same_archive_is_stored_once(server: Server) -> None:
    names = {
        server.post("/v1/archives", content=tar_project(BROKEN_PROJECT, "w")).json()["archive"]
        for _ in range(2)
    }
    assert len(names) == 1


def test_runs_can_be_listed_searched_and_paged(server: Server, written_run: str, healed_run: str) -> None:
    all_runs = server.get("/v1/runs").json()
    listed_runs = [run["run"] for run in all_runs["runs"]]
    assert {written_run, healed_run} <= set(listed_runs)
    assert listed_runs == sorted(listed_runs, reverse=True)

    second_page = server.get("/v1/runs", params={"limit": 1, "offset": 1}).json()
    assert [run["run"] for run in second_page["runs"]] == listed_runs[1:2]

    matches = server.get("/v1/runs", params={"search": "doubles", "kind": "write"}).json()
    assert written_run in [run["run"] for run in matches["runs"]]
    assert healed_run not in [run["run"] for run in matches["runs"]]


def test_every_listener_receives_each_event_once(server: Server) -> None:
    run = server.run(kind="write", task=TASK)

    def listen(number: int) -> list[int]:
        """Collect event ids; odd listeners disconnect after three events and resume after the last one."""
        seen_ids: list[int] = []
        while True:
            for count, event in enumerate(server.events(run, seen_ids[-1] if seen_ids else None), 1):
                if event["event"] == "end":
                    return seen_ids
                seen_ids.append(int(event["id"]))
                if number % 2 and count == 3:
                    break

    with ThreadPoolExecutor(8) as threads:
        ids_by_listener = list(threads.map(listen, range(8)))

    expected = [event["seq"] for event in read_events(server.home, run)]

    assert len(expected) > 5
    assert ids_by_listener == [expected] * 8


def test_a_listener_with_all_events_of_an_ended_run_gets_no_content(server: Server, written_run: str) -> None:
    last = read_events(server.home, written_run)[-1]["seq"]
    response = server.get(f"/v1/runs/{written_run}/events", headers={"Last-Event-ID": str(last)})
    assert response.status_code == 204


@pytest.mark.heavy
def test_a_run_continues_after_its_questions_are_answered(server: Server) -> None:
    run = server.run(kind="write", task=TASK, autonomy="review_all")
    question_count = 0
    while (description := server.wait_for_state(run, "waiting", "ended"))["state"] == "waiting":
        question_count += 1
        assert description["question"]["question"]
        invalid = server.post(f"/v1/runs/{run}/review", {"choice": "first"})
        assert invalid.status_code == 400
        assert "give one of" in invalid.json()["remedy"]
        other_response = server.post(f"/v1/runs/{run}/review", {"choice": "approve", "key": "0" * 64})
        assert (other_response.status_code, "a different question" in other_response.json()["detail"]) == (
            409,
            True,
        )
        assert server.post(f"/v1/runs/{run}/review", {"choice": "approve"}).status_code == 202
    assert question_count >= 2
    assert description["outcome"] == "healed"

    repeated_answer = server.post(f"/v1/runs/{run}/review", {"choice": "approve"})
    assert repeated_answer.status_code == 409


def test_a_run_can_be_forked_and_replayed(server: Server, written_run: str) -> None:
    fork = server.post(f"/v1/runs/{written_run}/fork", {"at": 0, "hint": "think", "recipe": "greedy"})
    assert fork.status_code == 202, fork.text
    assert server.wait_for_state(fork.json()["run"], "ended")["outcome"] == "healed"

    replay = server.post(f"/v1/runs/{written_run}/replay").json()["run"]
    assert server.wait_for_state(replay, "ended")["outcome"] == "healed"

    origins = {
        run["run"]: (run["fork_of"], run["replay_of"]) for run in server.get("/v1/runs").json()["runs"]
    }
    assert origins[fork.json()["run"]] == (written_run, None)
    assert origins[replay] == (None, written_run)


def test_forking_a_missing_step_reports_the_error_of_the_command_line(
    server: Server, written_run: str
) -> None:
    run = server.post(f"/v1/runs/{written_run}/fork", {"at": 77}).json()["run"]
    description = server.wait_for_state(run, "refused", "ended")
    assert description["error"]["exit_code"] == 2
    assert "step" in description["error"]["detail"]


def test_an_idempotency_key_starts_one_run(server: Server) -> None:
    key = {"Idempotency-Key": "once"}
    request = {"kind": "write", "task": TASK}
    runs = {server.post("/v1/runs", request, headers=key).json()["run"] for _ in range(3)}
    assert len(runs) == 1

    other_response = server.post("/v1/runs", {**request, "task": "something else"}, headers=key)
    assert other_response.status_code == 409

    server.wait_for_state(runs.pop(), "ended")


def test_a_full_queue_asks_to_retry_later_and_keeps_its_order(server: Server) -> None:
    hanging_request: dict[str, Any] = {
        "kind": "heal",
        "path": str(server.folder / "projects" / "hanging"),
        "test": TEST_COMMAND,
        "model": "none",
    }
    blocking_run = server.run(**hanging_request)
    queued_runs = [server.run(kind="write", task=TASK) for _ in range(2)]
    refusal = server.post("/v1/runs", hanging_request)

    assert refusal.status_code == 429
    assert int(refusal.headers["retry-after"]) >= 1
    assert "serve.queue" in refusal.json()["remedy"]
    unstarted_runs = server.get("/v1/runs").json()["queued"]
    assert [run["run"] for run in unstarted_runs if run["state"] == "queued"] == queued_runs
    assert unstarted_runs[-1]["title"].startswith("Write a function double(n)")
    assert server.get_run(queued_runs[0])["state"] == "queued"
    cancelled = server.post(f"/v1/runs/{queued_runs[1]}/cancel")
    assert cancelled.status_code == 202
    assert server.get_run(queued_runs[1])["error"]["exit_code"] == 130
    assert server.post(f"/v1/runs/{blocking_run}/cancel").status_code == 202
    assert server.wait_for_state(queued_runs[0], "ended")["outcome"] == "healed"
    assert server.wait_for_state(blocking_run, "ended", "refused")["error"]["exit_code"] == 130
    assert server.post(f"/v1/runs/{blocking_run}/cancel").status_code == 409


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"recipe": "nowhere.toml"}, "no recipe"),
        ({"model": "scripted:/etc/passwd"}, "not offered"),
        ({"model": "openai:gpt-4"}, "not offered"),
    ],
)
def test_a_model_or_recipe_that_is_not_offered_is_refused(
    server: Server, options: dict[str, str], message: str
) -> None:
    response = server.post("/v1/runs", {"kind": "write", "task": TASK, **options})
    assert response.status_code == 400
    assert message in response.json()["detail"]


def test_a_request_cannot_exceed_the_budget_of_the_server(server: Server) -> None:
    run = server.run(kind="write", task=TASK, tokens=10**9, attempts=9999, seconds=10**5)
    server.wait_for_state(run, "ended")
    limits = next(event["data"] for event in read_events(server.home, run) if event["kind"] == "run.started")
    assert '"tokens": 60000' in str(limits).replace("'", '"')


def test_metrics_and_status_routes_describe_the_server(server: Server, written_run: str) -> None:
    text = server.get("/metrics").text

    assert "suture_jobs_running" in text
    assert 'suture_jobs_ended_total{exit_code="0",kind="write"}' in text
    assert 'route="/v1/runs/{run}"' in text
    assert written_run not in text
    assert server.get("/v1/metrics").json()["runs"] >= 1
    assert "adaptive" in [recipe["name"] for recipe in server.get("/v1/recipes").json()]
    assert "none" in server.get("/v1/models").json()["choices"]
    assert any(row["name"] == "python" for row in server.get("/v1/doctor").json())
    assert server.get("/healthz").json()["ok"] is True
    assert server.get("/readyz").json()["ok"] is True


@pytest.mark.heavy
def test_a_caller_cannot_exceed_the_tokens_per_day(tmp_path: Path) -> None:
    with Server(tmp_path, "--model", "none", "--set", "serve.tokens_per_day=100") as server:
        refusal = server.post("/v1/runs", {"kind": "write", "task": TASK})
        assert refusal.status_code == 429
        assert "tokens" in refusal.json()["detail"]
        assert server.post("/v1/runs", {"kind": "write", "task": TASK, "tokens": 60}).status_code == 202
        assert server.post("/v1/runs", {"kind": "write", "task": TASK, "tokens": 60}).status_code == 429
