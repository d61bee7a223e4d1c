"""`suture mcp` driven over stdio by the SDK's own client, in both versions of the protocol."""

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
from interfaces.web.real_server import PATIENCE_S, RIGHT, TASK, environ_of, job_processes, ledger_of, scripted
from interfaces.web.uploaded_projects import BROKEN, HANGING, laid
from suture.api import Review
from suture.core.records import Task
from suture.interfaces.narrative.review_text import MAX_QUESTION_CHARS, review_as_text

pytestmark = [pytest.mark.usefixtures("sandbox"), pytest.mark.timeout(300)]

PYTEST = BARE_PYTEST
Mode = Literal["legacy", "auto"]


@asynccontextmanager
async def client_of(
    folder: Path, *options: str, mode: Mode = "auto", roots: tuple[Path, ...] = (), answers: Any = None
) -> AsyncIterator[Client]:
    """A client of a server in a process of its own.

    Args:
        folder: Where the server works.
        options: Of its command line.
        mode: Which versions of the protocol the client speaks.
        roots: What the client says are its own folders; it knows of no roots where there are none.
        answers: Called with what its user is asked; it cannot ask where not given.
    """

    async def list_roots(context: ClientRequestContext) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=FileUrl(root.as_uri())) for root in roots])

    async def elicit(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        result: ElicitResult = answers(params)
        return result

    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "suture.interfaces.cli", "mcp", *options],
        env=environ_of(folder),
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


def said(result: CallToolResult) -> dict[str, Any]:
    """What a tool answers."""
    assert not result.is_error, words(result)
    assert result.structured_content is not None
    return dict(result.structured_content)


def words(result: CallToolResult) -> str:
    return "\n".join(part.text for part in result.content if isinstance(part, TextContent))


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_project_is_healed_told_and_proved_again(tmp_path: Path, mode: Mode) -> None:
    project = laid(tmp_path / "projects" / "cart", BROKEN)
    told: list[str] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        told.append(message or "")

    async with client_of(tmp_path, "--model", "none", mode=mode, roots=(tmp_path / "projects",)) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert names == {"heal", "write", "verify", "show"}
        asked = {"path": str(project), "test": PYTEST}
        healed = said(await client.call_tool("heal", asked, progress_callback=on_progress))
        assert healed["outcome"] == "healed", healed
        assert "-    return sum(prices) + 1" in healed["diff"]
        assert healed["evidence"]
        assert any("healed" in line for line in told), told
        assert (project / "cart.py").read_text() == BROKEN["cart.py"]
        if mode == "legacy":
            return
        run = healed["run"]
        shown = said(await client.call_tool("show", {"run": "last"}))
        assert shown["run"] == run
        assert len(shown["steps"]) >= 3
        proof: Any = (await client.read_resource(healed["certificate"])).contents[0]
        assert run in proof.text
        listed: Any = (await client.read_resource("suture://runs")).contents[0]
        assert [row["run"] for row in json.loads(listed.text)] == [run]
        whole: Any = (await client.read_resource(f"suture://runs/{run}")).contents[0]
        assert json.loads(whole.text)["outcome"] == "healed"
        verified = said(await client.call_tool("verify", {"run": run}))
        assert verified["ok"] is True


@pytest.mark.heavy
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_users_answers_decide_a_review(tmp_path: Path, mode: Mode) -> None:
    questions: list[str] = []

    def answers(params: ElicitRequestParams) -> ElicitResult:
        questions.append(params.message)
        return ElicitResult(action="accept", content={"choice": "approve"})

    model = scripted(tmp_path, RIGHT)
    async with client_of(tmp_path, "--model", model, mode=mode, answers=answers) as client:
        asked = {"task": TASK, "autonomy": "review_all"}
        written = said(await client.call_tool("write", asked))
    assert written["outcome"] == "healed", written
    assert written["files"] == {"solution.py": "def double(n):\n    return 2 * n\n"}
    assert len(questions) >= 2
    assert len(list((tmp_path / "home" / "runs").iterdir())) == 1


@pytest.mark.heavy
async def test_a_user_who_declines_leaves_the_run_waiting(tmp_path: Path) -> None:
    def answers(_: ElicitRequestParams) -> ElicitResult:
        return ElicitResult(action="decline")

    async with client_of(tmp_path, "--model", scripted(tmp_path, RIGHT), answers=answers) as client:
        told = said(await client.call_tool("write", {"task": TASK, "autonomy": "review_all"}))
    assert told["state"] == "waiting"
    assert told["question"]


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
    ("show", {"run": "../../etc"}, "'../../etc' is not a run id; try: use `last`"),
    ("show", {"run": "last"}, "there are no runs under"),
    ("show", {"run": "20260101-000000000-abcdef"}, "there are no runs under"),
    ("verify", {"run": "20260101-000000000-abcdef"}, "there are no runs under"),
    ("fix", {}, "there is no tool 'fix'; try: heal, write, verify, show"),
)


async def test_bad_input_is_reported_and_the_server_continues(tmp_path: Path) -> None:
    outside = laid(tmp_path / "outside", BROKEN)
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "link").symlink_to(outside)
    async with client_of(tmp_path, "--model", "none", roots=(tmp_path / "inside",)) as client:
        for path in (
            str(outside),
            str(tmp_path / "inside" / "link"),
            "relative",
            "/",
            f"{tmp_path}/inside/..",
        ):
            refused = await client.call_tool("heal", {"path": path})
            assert refused.is_error
            assert "is not a folder below an allowed root; try: an absolute path below one of: " in words(
                refused
            )
        no_such = await client.call_tool("heal", {"path": str(tmp_path / "inside")})
        assert "no Python code" in words(no_such)
        for name, asked, line in BAD_CALLS:
            refused = await client.call_tool(name, asked)
            assert refused.is_error, (name, asked)
            assert line in words(refused)
            assert "\n" not in words(refused)
            assert "pydantic" not in words(refused)
        written = await client.call_tool("write", {"task": TASK})
        assert "code is written by a model" in words(written)
        for name in ("20260101-000000000-abcdef", "%2Fetc"):
            with pytest.raises(MCPError):
                await client.read_resource(f"suture://runs/{name}/certificate")
        assert len((await client.list_tools()).tools) == 4


async def test_without_client_roots_only_the_servers_roots_count(tmp_path: Path) -> None:
    project = laid(tmp_path / "own" / "cart", BROKEN)
    async with client_of(tmp_path, "--model", "none") as client:
        refused = await client.call_tool("heal", {"path": str(project), "test": PYTEST})
        assert refused.is_error
        assert "start the server with `suture mcp --root FOLDER`" in words(refused)
        descriptions = {tool.name: tool.description or "" for tool in (await client.list_tools()).tools}
        assert not any("\n  " in text for text in descriptions.values())


@pytest.mark.heavy
async def test_a_cancelled_call_stops_its_run_and_a_crash_is_reported(tmp_path: Path) -> None:
    project = laid(tmp_path / "hanging", HANGING)
    asked = {"path": str(project), "test": PYTEST}
    async with client_of(tmp_path, "--model", "none", "--root", str(tmp_path)) as client:
        call = asyncio.create_task(client.call_tool("heal", asked))
        run = await _begun(tmp_path, 1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        while ledger_of(tmp_path / "home", run)[-1]["kind"] != "run.finished":
            await asyncio.sleep(0.1)
        assert ledger_of(tmp_path / "home", run)[-1]["data"]["outcome"] == "cancelled"

        call = asyncio.create_task(client.call_tool("heal", asked))
        await _begun(tmp_path, 2)
        for pid in job_processes():
            os.kill(pid, signal.SIGKILL)
        crashed = await call
        assert crashed.is_error
        assert "process died" in words(crashed)
        assert len((await client.list_tools()).tools) == 4


async def _begun(folder: Path, count: int) -> str:
    """The newest of so many runs, once it has begun."""
    while True:
        runs = sorted((folder / "home" / "runs").glob("*/ledger.jsonl"))
        if len(runs) == count and runs[-1].stat().st_size:
            return runs[-1].parent.name
        await asyncio.sleep(0.05)


@pytest.mark.heavy
async def test_the_same_over_http(tmp_path: Path) -> None:
    port = _free_port()
    command = [sys.executable, "-m", "suture.interfaces.cli", "mcp", "--http", "--port", str(port), "--model"]
    server = subprocess.Popen([*command, scripted(tmp_path, RIGHT)], cwd=tmp_path, env=environ_of(tmp_path))
    try:
        while not _listens(port):
            assert server.poll() is None
            await asyncio.sleep(0.1)
        async with Client(f"http://127.0.0.1:{port}/mcp", read_timeout_seconds=PATIENCE_S) as client:
            written = said(await client.call_tool("write", {"task": TASK}))
            assert written["outcome"] == "healed", written
            assert (await client.call_tool("heal", {"path": str(tmp_path)})).is_error
        rebound = httpx.post(f"http://127.0.0.1:{port}/mcp", json={}, headers={"Host": "evil.example"})
        assert rebound.status_code in (403, 421)
    finally:
        server.terminate()
        server.wait(PATIENCE_S)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as trying:
        return trying.connect_ex(("127.0.0.1", port)) == 0


def test_a_question_that_is_cut_says_so_and_where_the_whole_is() -> None:
    short = Review(
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
    assert review_as_text(short).endswith("+x\n")
    long = review_as_text(replace(short, diff="+x\n" * 4000))
    assert long.endswith("characters: `suture review run-1`)")
    assert len(long) < MAX_QUESTION_CHARS + 200
