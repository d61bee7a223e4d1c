"""A run belongs to the token that started it: other tokens cannot continue, stop or fork it, except admins."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import httpx
import pytest
from sqlalchemy import insert

from interfaces.web.real_server import CORRECT_REPLY, TASK, Server, write_scripted_model
from suture.interfaces.jobs.ray_backend.ray_cluster import RayCluster
from suture.interfaces.jobs.ray_backend.ray_job_pool import RayJobPool
from suture.storage.database.store import open_store
from suture.storage.database.tables import jobs
from suture.storage.postgresql.shared_jobs import SharedJobs

CALLERS = {"ada": "runner", "bob": "runner", "eve": "reviewer", "root": "admin"}
COMMAND_LINE_RUN = "20200101-000000000-abcdef"
FORK = {"at": 0}


@dataclass(frozen=True, kw_only=True)
class OwnedRun:
    """An ended run that `ada` has started, and the tokens of all callers."""

    server: Server
    run: str
    tokens: Mapping[str, str]

    def post(self, caller: str, action: str, content: object = None, run: str = "") -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.tokens[caller]}"}
        return self.server.post(f"/v1/runs/{run or self.run}/{action}", content, headers=headers)

    def get_owner(self, run: str) -> object:
        headers = {"Authorization": f"Bearer {self.tokens['root']}"}
        return self.server.get(f"/v1/runs/{run}", headers=headers).json()["caller"]


def add_token(server: Server, name: str, role: str) -> str:
    return server.command("token", "add", name, "--role", role).stdout.strip()


@pytest.fixture(scope="module")
def owned(folder: Path) -> Iterator[OwnedRun]:
    server = Server(folder, "--model", write_scripted_model(folder, *[CORRECT_REPLY] * 3))
    tokens = {name: add_token(server, name, role) for name, role in CALLERS.items()}
    headers = {"Authorization": f"Bearer {tokens['ada']}"}
    with server:
        request = {"kind": "write", "task": TASK}
        run = server.post("/v1/runs", request, headers=headers).json()["run"]
        with httpx.stream("GET", f"{server.url}/v1/runs/{run}/events", headers=headers, timeout=60) as stream:
            stream.read()  # the stream ends with the run
        shutil.copytree(server.home / "runs" / run, server.home / "runs" / COMMAND_LINE_RUN)
        yield OwnedRun(server=server, run=run, tokens=tokens)


@pytest.mark.parametrize("caller", ["bob", "eve"])
@pytest.mark.parametrize(("action", "content"), [("resume", None), ("fork", FORK)])
def test_another_caller_cannot_continue_or_fork_a_run(
    owned: OwnedRun, caller: str, action: str, content: object
) -> None:
    response = owned.post(caller, action, content)
    assert response.status_code == 403, response.text
    assert "belongs to another caller" in response.json()["detail"]


@pytest.mark.parametrize("caller", ["ada", "root"])
@pytest.mark.parametrize(("action", "content"), [("resume", None), ("fork", FORK)])
def test_the_owner_and_an_admin_can_continue_and_fork_a_run(
    owned: OwnedRun, caller: str, action: str, content: object
) -> None:
    response = owned.post(caller, action, content)
    # 409: the run is still being continued for the caller before this one.
    assert response.status_code in ((202, 409) if action == "resume" else (202,)), response.text
    if action == "fork":
        assert owned.get_owner(response.json()["run"]) == caller
    assert owned.get_owner(owned.run) == "ada"


def test_a_runner_cannot_answer_the_question_of_any_run(owned: OwnedRun) -> None:
    assert owned.post("bob", "review", {"choice": "approve"}).status_code == 403


def test_a_run_of_the_command_line_belongs_to_admins(owned: OwnedRun) -> None:
    for action, content in (("resume", None), ("fork", FORK)):
        assert owned.post("ada", action, content, run=COMMAND_LINE_RUN).status_code == 403
    assert owned.post("root", "fork", FORK, run=COMMAND_LINE_RUN).status_code == 202


def test_a_run_keeps_its_owner_when_the_server_starts_again(owned: OwnedRun) -> None:
    owned.server.stop()
    owned.server.start()
    assert owned.post("bob", "resume").status_code == 403
    assert owned.post("ada", "fork", FORK).status_code == 202


class OlderJobs:
    """A database with a job that ended before the server started."""

    store = None

    def find_caller(self, job: str) -> str:
        return "ada" if job == "older" else ""


def test_a_shared_run_keeps_its_owner_on_every_server(tmp_path: Path) -> None:
    older_jobs, cluster = cast(SharedJobs, OlderJobs()), cast(RayCluster, None)
    pool = RayJobPool(older_jobs, cluster, tmp_path, {}, queue=1)
    assert pool.find_owner("older") == "ada"
    assert pool.find_owner("unknown") == ""


def test_the_database_knows_who_requested_a_job(tmp_path: Path) -> None:
    row = {
        "id": "one",
        "run_id": "one",
        "kind": "write",
        "request_key": "",
        "request": "{}",
        "changed_s": 1.0,
    }
    with open_store(None, tmp_path) as store, open_store(None, tmp_path, namespace="other") as other:
        with store.write_transaction() as connection:
            connection.execute(insert(jobs).values(**row, namespace=store.namespace, caller="ada"))
        assert SharedJobs(store).find_caller("one") == "ada"
        assert SharedJobs(store).find_caller("two") == ""
        assert SharedJobs(other).find_caller("one") == ""
