"""What the service says to the web page: advice for the page, titles of refused runs, and missing folders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from interfaces.web.real_server import TASK, Server
from interfaces.web.uploaded_projects import BROKEN_PROJECT, write_project

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("messages")
    write_project(folder / "projects" / "cart", BROKEN_PROJECT)
    with Server(folder, "--model", "none", "--root", str(folder / "projects")) as started_server:
        yield started_server


def test_a_refused_run_has_the_title_of_its_task(server: Server) -> None:
    run = server.run(kind="write", task=TASK)
    refused = server.wait_for_state(run, "refused")
    assert refused["title"] == "Write a function double(n) that doubles a number"
    assert refused["error"]["fault"] == "PrerequisiteError"
    assert "choose a model" in refused["error"]["advice"]
    assert not {"--", "model.name"} & set(refused["error"]["detail"].split())


def test_a_missing_folder_is_called_missing(server: Server) -> None:
    for missing in (server.folder / "projects" / "nothing", Path("/nowhere/at/all")):
        refusal = server.post("/v1/runs", {"kind": "heal", "path": str(missing)})
        problem = refusal.json()
        assert (refusal.status_code, problem["field"]) == (404, "path")
        assert problem["detail"] == f"there is no folder {str(missing)!r}"
        assert "whole path" in problem["advice"]
    elsewhere = server.post("/v1/runs", {"kind": "heal", "path": str(server.folder)}).json()
    assert "not a folder below an allowed root" in elsewhere["detail"]
    assert str(server.folder / "projects") in elsewhere["advice"]


def test_a_folder_without_tests_is_refused_with_advice_for_the_page(server: Server) -> None:
    (server.folder / "projects" / "untested").mkdir()
    (server.folder / "projects" / "untested" / "code.py").write_text("x = 1\n")
    run = server.run(kind="heal", path=str(server.folder / "projects" / "untested"))
    error = server.wait_for_state(run, "refused")["error"]
    assert "holds no tests" in error["detail"]
    assert "--test" in error["remedy"]
    assert f"  {error['fault']}: " in server.get("/page/api.js").text
    assert error["fault"] == "NoTestsFound"


def test_an_unknown_route_is_called_missing(server: Server) -> None:
    missing, unsupported = server.post("/v1/nothing", {}), server.call("DELETE", "/v1/runs")
    assert (missing.status_code, missing.json()["detail"]) == (404, "there is no route POST /v1/nothing")
    assert (unsupported.status_code, unsupported.json()["detail"]) == (
        405,
        "there is no route DELETE /v1/runs",
    )


def test_a_problem_names_the_field_that_is_wrong(server: Server) -> None:
    refused = server.post("/v1/runs", {"kind": "write", "task": TASK, "attempts": 0})
    assert (refused.status_code, refused.json()["field"]) == (422, "attempts")


def test_a_judgement_without_git_is_refused_before_it_is_queued(server: Server) -> None:
    cart = str(server.folder / "projects" / "cart")
    refusal = server.post("/v1/judgements", {"path": cart})
    problem = refusal.json()
    assert (refusal.status_code, problem["fault"]) == (409, "RequestRefused")
    assert "A patch" in problem["advice"]
    assert "--" not in problem["detail"] + problem["advice"]
    assert server.get("/metrics").text.count('suture_jobs_ended_total{exit_code="2",kind="judge"}') == 0


def test_a_problem_names_the_class_of_its_error(server: Server) -> None:
    refused = server.post("/v1/runs", {"kind": "heal", "archive": "0" * 64}).json()
    assert refused["fault"] == "UsageError"
    assert server.get("/v1/judgements/20260101-000000000-abcdef").status_code == 404
