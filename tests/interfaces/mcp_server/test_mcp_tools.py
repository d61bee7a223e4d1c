"""`suture mcp`, driven over stdio by the client of the SDK, in both versions of the protocol."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.context import ClientRequestContext
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult, ListRootsResult, Root, TextContent
from pydantic import FileUrl

from bare_pytest import BARE_PYTEST
from interfaces.web.real_server import (
    CORRECT_REPLY,
    PATIENCE_S,
    TASK,
    job_processes,
    make_environ,
    read_events,
    write_scripted_model,
)
from interfaces.web.uploaded_projects import BROKEN_PROJECT, HANGING_PROJECT, write_project
from suture.api import Review
from suture.core.records import Task
from suture.core.settings import Settings
from suture.interfaces.mcp.mcp_tools import find_requested_run
from suture.interfaces.mcp.server_context import ServerContext
from suture.interfaces.narrative.review_text import MAX_QUESTION_CHARS, review_as_text

pytestmark = [pytest.mark.usefixtures("sandbox"), pytest.mark.timeout(300)]

TEST_COMMAND = BARE_PYTEST
Mode = Literal["legacy", "auto"]


@asynccontextmanager
async def start_client(
    folder: Path, *options: str, mode: Mode = "auto", roots: tuple[Path, ...] = (), answers: Any = None
) -> AsyncIterator[Client]:
    """Start a server in its own process, and yield a client of it.

    Args:
        folder: The current folder of the server.
        options: The options of its command line.
        mode: The versions of the protocol that the client speaks.
        roots: The folders that the client names as roots; without any it does not support roots.
        answers: A function that answers questions to the user; without it the client cannot ask.
    """

    async def list_roots(context: ClientRequestContext) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=FileUrl(root.as_uri())) for root in roots])

    async def elicit(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        result: ElicitResult = answers(params)
        return result

    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "suture.interfaces.cli", "mcp", *options],
        env=make_environ(folder),
        cwd=folder,
    )
    async with Client(
        server,
        mode=mode,
        read_timeout_seconds=PATIENCE_S,
        list_roots_callback=list_roots if roots else None,
        elicitation_callback=elicit if answers is not None else None,
    ) as client:
        yield client


def read_content(result: CallToolResult) -> dict[str, Any]:
    """Return the structured content of a successful tool call."""
    assert not result.is_error, read_text(result)
    assert result.structured_content is not None
    return dict(result.structured_content)


def read_text(result: CallToolResult) -> str:
    """Return the text content of a tool call."""
    return "\n".join(part.text for part in result.content if isinstance(part, TextContent))


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_project_can_be_healed_shown_and_verified(tmp_path: Path, mode: Mode) -> None:
    project = write_project(tmp_path / "projects" / "cart", BROKEN_PROJECT)
    progress_messages: list[str] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        progress_messages.append(message or "")

    async with start_client(tmp_path, "--model", "none", mode=mode, roots=(tmp_path / "projects",)) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert names == {"heal", "write", "judge", "verify", "show"}

        arguments = {"path": str(project), "test": TEST_COMMAND}
        heal_result = read_content(await client.call_tool("heal", arguments, progress_callback=on_progress))
        assert heal_result["outcome"] == "healed", heal_result
        assert "-    return sum(prices) + 1" in heal_result["diff"]
        assert heal_result["evidence"]
        assert any("healed" in line for line in progress_messages), progress_messages
        assert (project / "cart.py").read_text() == BROKEN_PROJECT["cart.py"]

        if mode == "legacy":
            return
        run = heal_result["run"]
        run_details = read_content(await client.call_tool("show", {"run": "last"}))
        assert run_details["run"] == run
        assert len(run_details["steps"]) >= 3

        certificate: Any = (await client.read_resource(heal_result["certificate"])).contents[0]
        assert run in certificate.text

        run_list: Any = (await client.read_resource("suture://runs")).contents[0]
        assert [row["run"] for row in json.loads(run_list.text)] == [run]

        run_resource: Any = (await client.read_resource(f"suture://runs/{run}")).contents[0]
        assert json.loads(run_resource.text)["outcome"] == "healed"

        verification = read_content(await client.call_tool("verify", {"run": run}))
        assert verification["ok"] is True


def test_the_last_run_is_the_newest_wherever_the_server_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, project in (("20261101-120000000-aaaaaa", tmp_path), ("20261102-120000000-bbbbbb", "/other")):
        folder = tmp_path / "home" / "runs" / name
        folder.mkdir(parents=True)
        event = {"seq": 0, "time_s": 1.0, "kind": "run.started", "data": {"project": str(project)}}
        (folder / "ledger.jsonl").write_text(json.dumps(event) + "\n")
    monkeypatch.chdir(tmp_path)
    settings = Settings.model_validate({"paths": {"home": tmp_path / "home"}})

    found = find_requested_run(ServerContext(settings=settings, flags={}), "last")

    assert found.id == "20261102-120000000-bbbbbb"


@pytest.mark.heavy
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_change_can_be_judged(tmp_path: Path, mode: Mode) -> None:
    project = write_project(tmp_path / "projects" / "cart", BROKEN_PROJECT)
    commit_all(project)
    progress_messages: list[str] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        progress_messages.append(message or "")

    async with start_client(tmp_path, "--model", "none", mode=mode, roots=(tmp_path / "projects",)) as client:
        arguments = {"path": str(project), "test": TEST_COMMAND}
        (project / "cart.py").write_text(BROKEN_PROJECT["cart.py"].replace(" + 1", ""))
        accepted = read_content(await client.call_tool("judge", arguments, progress_callback=on_progress))
        assert accepted["ok"] is True, accepted
        assert (accepted["files"], len(accepted["tests"]["fixed"])) == (["cart.py"], 1)
        assert "running the tests with the change" in progress_messages, progress_messages
        if mode == "legacy":
            return
        patch = (
            "--- a/cart.py\n+++ b/cart.py\n@@ -1,2 +1,2 @@\n def total(prices):\n"
            "-    return sum(prices)\n+    return max(prices)\n"
        )
        rejected = read_content(await client.call_tool("judge", {**arguments, "patch": patch}))
        assert (rejected["ok"], rejected["outcome"]) == (False, "rejected")
        assert "fails with the change and passed without it" in rejected["reasons"][0]
        assert rejected["findings"][0]["code"] == "test_newly_fails"
        late = await client.call_tool("judge", {**arguments, "seconds": 0.01})
        assert "the judgement was not done after 0.01 s" in read_text(late)
        assert not list((tmp_path / "home").glob("runs/*")), "a judgement is no run"


@pytest.mark.heavy
async def test_a_judgement_can_be_verified_by_its_certificate(tmp_path: Path) -> None:
    project = write_project(tmp_path / "projects" / "cart", BROKEN_PROJECT)
    commit_all(project)
    (project / "cart.py").write_text(BROKEN_PROJECT["cart.py"].replace(" + 1", ""))
    async with start_client(tmp_path, "--model", "none", roots=(tmp_path / "projects",)) as client:
        arguments = {"path": str(project), "test": TEST_COMMAND, "certificate": True}
        report = read_content(await client.call_tool("judge", arguments))
        _, _, _, judgement, _ = report["certificate"].split("/")
        certificate: Any = (await client.read_resource(report["certificate"])).contents[0]
        kept = tmp_path / "home" / "judgements" / f"{judgement}.json"
        assert kept.read_text() == certificate.text

        verification = read_content(await client.call_tool("verify", {"run": judgement}))
        assert verification["ok"] is True, verification
        assert verification["findings"][-1] == {"name": "verdict", "ok": True, "detail": "accepted"}

        kept.write_text(kept.read_text().replace('"accepted"', '"rejected"'))
        forged = read_content(await client.call_tool("verify", {"run": judgement}))
        assert (forged["ok"], forged["findings"][0]["name"]) == (False, "certificate")


def commit_all(project: Path) -> None:
    author = ("-c", "user.name=Test", "-c", "user.email=test@example.org")
    for arguments in (("init", "-q"), ("add", "-A"), (*author, "commit", "-q", "-m", "The cart")):
        subprocess.run(["git", *arguments], cwd=project, check=True)


@pytest.mark.heavy
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_elicited_answers_decide_a_review(tmp_path: Path, mode: Mode) -> None:
    questions: list[str] = []

    def answers(params: ElicitRequestParams) -> ElicitResult:
        questions.append(params.message)
        return ElicitResult(action="accept", content={"choice": "approve"})

    model = write_scripted_model(tmp_path, CORRECT_REPLY)

    async with start_client(tmp_path, "--model", model, mode=mode, answers=answers) as client:
        arguments = {"task": TASK, "autonomy": "review_all"}
        write_result = read_content(await client.call_tool("write", arguments))

    assert write_result["outcome"] == "healed", write_result
    assert write_result["files"] == {"solution.py": "def double(n):\n    return 2 * n\n"}
    assert len(questions) >= 2
    assert len(list((tmp_path / "home" / "runs").iterdir())) == 1


@pytest.mark.heavy
async def test_the_user_writes_an_example_where_no_result_can_be_shown(tmp_path: Path) -> None:
    code = "```python\ndef initials(person):\n    return person['first'][0] + person['last'][0]\n```"
    questions: list[str] = []

    def answers(params: ElicitRequestParams) -> ElicitResult:
        questions.append(params.message)
        example = "initials({'first': 'Ada', 'last': 'Lovelace'}) == 'AL'"
        return ElicitResult(action="accept", content={"example": example})

    model = write_scripted_model(tmp_path, code, code)
    async with start_client(tmp_path, "--model", model, answers=answers) as client:
        result = read_content(await client.call_tool("write", {"task": "Return a person's initials."}))

    assert result["outcome"] == "healed", result
    (question,) = questions
    assert "initials(person) == ..." in question


@pytest.mark.heavy
async def test_a_user_who_declines_leaves_the_run_waiting(tmp_path: Path) -> None:
    def answers(_: ElicitRequestParams) -> ElicitResult:
        return ElicitResult(action="decline")

    async with start_client(
        tmp_path, "--model", write_scripted_model(tmp_path, CORRECT_REPLY), answers=answers
    ) as client:
        arguments = {"task": TASK, "autonomy": "review_all"}
        write_result = read_content(await client.call_tool("write", arguments))

    assert write_result["state"] == "waiting"
    assert write_result["question"]


BAD_CALLS: tuple[tuple[str, dict[str, Any], str], ...] = (
    (
        "heal",
        {},
        "heal: the argument 'path' is missing; try: path: The absolute path of the project's folder",
    ),
    ("heal", {"path": 3}, "path must be text, not 3"),
    ("heal", {"path": "/", "only": "*.py"}, "only must be a list, not '*.py'; try: only: Globs"),
    ("heal", {"path": "/", "test_command": "make"}, "heal has no argument 'test_command'; try: "),
    ("heal", {"path": "/", "seconds": -1}, "seconds must be more than 0, not -1"),
    ("write", {"task": ""}, "task must be text that is not empty, not ''"),
    ("write", {"task": TASK, "recipe": "mine.toml"}, "there is no recipe 'mine.toml'"),
    ("write", {"task": TASK, "autonomy": "never"}, "autonomy must be one of 'full_auto', "),
    ("judge", {"path": "/", "staged": True, "base": "main"}, "use at most one of base, patch and staged"),
    ("show", {"run": "../../etc"}, "'../../etc' is not a run id; try: use `last`"),
    ("show", {"run": "last"}, "there are no runs under"),
    ("show", {"run": "20260101-000000000-abcdef"}, "there are no runs under"),
    ("verify", {"run": "20260101-000000000-abcdef"}, "there are no runs under"),
    ("fix", {}, "there is no tool 'fix'; try: heal, write, judge, verify, show"),
)


async def test_bad_input_is_reported_and_the_server_continues(tmp_path: Path) -> None:
    outside_project = write_project(tmp_path / "outside", BROKEN_PROJECT)
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "link").symlink_to(outside_project)
    async with start_client(tmp_path, "--model", "none", roots=(tmp_path / "inside",)) as client:
        for path in (
            str(outside_project),
            str(tmp_path / "inside" / "link"),
            "relative",
            "/",
            f"{tmp_path}/inside/..",
        ):
            refusal = await client.call_tool("heal", {"path": path})
            assert refusal.is_error
            assert "is not a folder below an allowed root; try: an absolute path below one of: " in read_text(
                refusal
            )
            assert "is not a folder below an allowed root" in read_text(
                await client.call_tool("judge", {"path": path})
            )
        empty_project = await client.call_tool("heal", {"path": str(tmp_path / "inside")})
        assert "no code to heal" in read_text(empty_project)

        for name, arguments, line in BAD_CALLS:
            refusal = await client.call_tool(name, arguments)
            assert refusal.is_error, (name, arguments)
            assert line in read_text(refusal)
            assert "\n" not in read_text(refusal)
            assert "pydantic" not in read_text(refusal)
        write_result = await client.call_tool("write", {"task": TASK})
        assert "code is written by a model" in read_text(write_result)
        for name in ("20260101-000000000-abcdef", "%2Fetc"):
            with pytest.raises(MCPError):
                await client.read_resource(f"suture://runs/{name}/certificate")
        assert len((await client.list_tools()).tools) == 5


async def test_without_client_roots_only_the_servers_roots_count(tmp_path: Path) -> None:
    project = write_project(tmp_path / "own" / "cart", BROKEN_PROJECT)
    async with start_client(tmp_path, "--model", "none") as client:
        refusal = await client.call_tool("heal", {"path": str(project), "test": TEST_COMMAND})
        assert refusal.is_error
        assert "start the server with `suture mcp --root FOLDER`" in read_text(refusal)
        descriptions = {tool.name: tool.description or "" for tool in (await client.list_tools()).tools}
        assert not any("\n  " in text for text in descriptions.values())


@pytest.mark.heavy
async def test_a_cancelled_call_stops_its_run_and_a_crash_is_reported(tmp_path: Path) -> None:
    project = write_project(tmp_path / "hanging", HANGING_PROJECT)
    arguments = {"path": str(project), "test": TEST_COMMAND}
    async with start_client(tmp_path, "--model", "none", "--root", str(tmp_path)) as client:
        call = asyncio.create_task(client.call_tool("heal", arguments))
        run = await wait_for_run(tmp_path, 1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        while read_events(tmp_path / "home", run)[-1]["kind"] != "run.finished":
            await asyncio.sleep(0.1)
        assert read_events(tmp_path / "home", run)[-1]["data"]["outcome"] == "cancelled"

        call = asyncio.create_task(client.call_tool("heal", arguments))
        await wait_for_run(tmp_path, 2)
        for pid in job_processes():
            os.kill(pid, signal.SIGKILL)
        crash_result = await call
        assert crash_result.is_error
        assert "process died" in read_text(crash_result)
        assert len((await client.list_tools()).tools) == 5


async def wait_for_run(folder: Path, count: int) -> str:
    """Wait until there are `count` runs and the newest has begun; return its id."""
    while True:
        runs = sorted((folder / "home" / "runs").glob("*/ledger.jsonl"))
        if len(runs) == count and runs[-1].stat().st_size:
            return runs[-1].parent.name
        await asyncio.sleep(0.05)


@pytest.mark.heavy
async def test_tools_work_over_http(tmp_path: Path) -> None:
    port = find_free_port()
    command = [sys.executable, "-m", "suture.interfaces.cli", "mcp", "--http", "--port", str(port), "--model"]
    server = subprocess.Popen(
        [*command, write_scripted_model(tmp_path, CORRECT_REPLY)], cwd=tmp_path, env=make_environ(tmp_path)
    )
    try:
        while not is_listening(port):
            assert server.poll() is None
            await asyncio.sleep(0.1)
        async with Client(f"http://127.0.0.1:{port}/mcp", read_timeout_seconds=PATIENCE_S) as client:
            write_result = read_content(await client.call_tool("write", {"task": TASK}))
            assert write_result["outcome"] == "healed", write_result
            assert (await client.call_tool("heal", {"path": str(tmp_path)})).is_error

        response = httpx.post(f"http://127.0.0.1:{port}/mcp", json={}, headers={"Host": "evil.example"})

        assert response.status_code in (403, 421)
    finally:
        server.terminate()
        server.wait(PATIENCE_S)


def find_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_a_shortened_question_names_the_command_that_shows_all() -> None:
    review = Review(
        run_id="run-1",
        key="k",
        stage="delivery",
        moves=(),
        candidate=None,
        verdict=None,
        diagnosis=None,
        diff="+x\n",
        task=Task(statement="s"),
    )
    assert review_as_text(review).endswith("+x\n")

    long_text = review_as_text(replace(review, diff="+x\n" * 4000))
    assert long_text.endswith("characters: `suture review run-1`)")
    assert len(long_text) < MAX_QUESTION_CHARS + 200
