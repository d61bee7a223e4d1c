"""`suture acp` driven over stdio by the SDK's own client."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from acp import PROTOCOL_VERSION, RequestError, spawn_agent_process, text_block
from acp.client.connection import ClientSideConnection
from acp.helpers import image_block
from acp.interfaces import Client
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    FileSystemCapabilities,
    PermissionOption,
    ReadTextFileResponse,
    RequestPermissionResponse,
    ToolCallUpdate,
)

from bare_pytest import BARE_PYTEST
from interfaces.web.real_server import RIGHT, TASK, environ_of, job_processes, ledger_of, scripted
from interfaces.web.uploaded_projects import BROKEN, HANGING, laid

pytestmark = [pytest.mark.usefixtures("sandbox"), pytest.mark.timeout(300)]

TEST = ("--test", BARE_PYTEST)


class Editor:
    """An editor: it keeps what it is told, and answers what it is asked.

    Args:
        picks: Titles what is asked -> the option to pick; empty for none.
    """

    def __init__(self, picks: Callable[[str], str] = lambda _: "") -> None:
        self.picks = picks
        self.updates: list[Any] = []
        self.asked: list[ToolCallUpdate] = []
        self.unsaved: dict[str, str] = {}
        self.agent: Any = None
        self.process: Any = None

    def on_connect(self, conn: Any) -> None:
        pass

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        self.asked.append(tool_call)
        pick = self.picks(tool_call.title or "")
        assert not pick or pick in {option.option_id for option in options}
        if not pick:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=pick))

    async def read_text_file(self, session_id: str, path: str, **_: Any) -> ReadTextFileResponse:
        return ReadTextFileResponse(content=self.unsaved.get(path, "") or Path(path).read_text())

    def kinds(self, kind: str) -> list[Any]:
        return [update for update in self.updates if update.session_update == kind]

    @property
    def said(self) -> str:
        return "".join(update.content.text for update in self.kinds("agent_message_chunk"))


@asynccontextmanager
async def opened(folder: Path, editor: Editor, *options: str) -> AsyncIterator[ClientSideConnection]:
    """An agent in a process of its own, introduced to an editor."""
    command = [sys.executable, "-m", "suture.interfaces.cli", "acp", *options]
    limits = {"limit": 2**24, "stderr": None, "shutdown_timeout": 60.0}
    async with spawn_agent_process(
        cast(Client, editor), *command, env=environ_of(folder), cwd=folder, transport_kwargs=limits
    ) as (agent, process):
        editor.process = process
        able = ClientCapabilities(fs=FileSystemCapabilities(read_text_file=True))
        about = await agent.initialize(PROTOCOL_VERSION, client_capabilities=able)
        assert about.agent_capabilities is not None
        assert about.agent_capabilities.load_session
        yield agent


async def begun(folder: Path, count: int, kind: str = "run.started") -> str:
    """The newest of so many runs, once this has happened in it."""
    while True:
        runs = sorted((folder / "home" / "runs").glob("*/ledger.jsonl"))
        if len(runs) == count and kind in runs[-1].read_text():
            return runs[-1].parent.name
        await asyncio.sleep(0.05)


async def test_a_project_is_healed_shown_applied_and_reverted(tmp_path: Path) -> None:
    project = laid(tmp_path / "cart", BROKEN)
    code = project / "cart.py"
    editor = Editor(lambda _: "apply")
    async with opened(tmp_path, editor, "--model", "none", *TEST) as agent:
        session = (await agent.new_session(str(project))).session_id
        editor.unsaved[str(code)] = "def total(prices):\n    return None  # being written\n"
        with pytest.raises(RequestError, match="has unsaved changes"):
            await agent.prompt(session, [text_block("Make it pass")])
        assert code.read_text() == BROKEN["cart.py"]
        assert "your text is ignored" in editor.said
        assert "Healed: the one test passes" in editor.said
        plans = editor.kinds("plan")
        assert [entry.status for entry in plans[0].entries] == ["in_progress", "pending", "pending"]
        assert [entry.status for entry in plans[-1].entries] == ["completed"] * 3
        shown = editor.kinds("tool_call")[0]
        assert shown.content[0].path == str(code)
        assert shown.content[0].old_text == BROKEN["cart.py"]
        assert "sum(prices)\n" in shown.content[0].new_text
        assert editor.kinds("tool_call_update")[0].status == "completed"

        editor.unsaved.clear()
        assert (await agent.prompt(session, [text_block("/apply")])).stop_reason == "end_turn"
        assert code.read_text() == "def total(prices):\n    return sum(prices)\n"
        assert editor.asked[-1].content[0].new_text == code.read_text()  # type: ignore[index]  # a diff is all that is shown
        await agent.prompt(session, [text_block("/verify")])
        assert "verified: " in editor.said
        assert "FALSE" not in editor.said
        await agent.prompt(session, [text_block("/undo")])
        assert code.read_text() == BROKEN["cart.py"]
        offered = {
            command.name for command in editor.kinds("available_commands_update")[0].available_commands
        }
        assert {"heal", "write", "resume", "apply", "undo", "verify"} == offered


@pytest.mark.heavy
async def test_the_users_picks_decide_reviews_and_words_are_hints(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    folder.mkdir()
    editor = Editor()
    async with opened(tmp_path, editor, "--model", scripted(tmp_path, RIGHT, RIGHT)) as agent:
        begun_here = await agent.new_session(str(folder))
        assert begun_here.modes is not None
        assert begun_here.modes.current_mode_id == "full_auto"
        session = begun_here.session_id
        await agent.set_session_mode(session_id=session, mode_id="review_all")
        await agent.prompt(session, [text_block(f"/write {TASK}")])
        assert "waits for your answer" in editor.said
        editor.picks = lambda _: "approve"
        await agent.prompt(session, [text_block("Keep it <b>short</b>")])
        assert len(editor.asked) >= 2
        assert "Done: the one check passes" in editor.said
        assert (folder / "solution.py").read_text() == "def double(n):\n    return 2 * n\n"
    events = ledger_of(tmp_path / "home", await begun(tmp_path, 1))
    answered = [event["data"] for event in events if event["kind"] == "review.answered"]
    assert answered[0]["choice"] == "redirect"
    assert answered[0]["hint"] == "Keep it <b>short</b>"


@pytest.mark.heavy
async def test_what_is_cancelled_is_written_down_and_a_crash_is_told(tmp_path: Path) -> None:
    project = laid(tmp_path / "hanging", HANGING)
    async with opened(tmp_path, Editor(), "--model", "none", *TEST) as agent:
        session = (await agent.new_session(str(project))).session_id
        prompt = asyncio.create_task(agent.prompt(session, [text_block("/heal")]))
        run = await begun(tmp_path, 1)
        with pytest.raises(RequestError, match="another prompt"):
            await agent.prompt(session, [text_block("/heal")])
        await agent.cancel(session)
        await agent.cancel(session)
        assert (await prompt).stop_reason == "cancelled"
        assert ledger_of(tmp_path / "home", run)[-1]["data"]["outcome"] == "cancelled"

        prompt = asyncio.create_task(agent.prompt(session, [text_block("/heal")]))
        await begun(tmp_path, 2)
        for pid in job_processes():
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(RequestError, match="process died"):
            await prompt
        assert (await agent.list_sessions()).sessions[0].session_id == session


@pytest.mark.heavy
async def test_a_session_outlives_its_agent(tmp_path: Path) -> None:
    project = laid(tmp_path / "cart", BROKEN)
    editor = Editor(lambda _: "leave")
    async with opened(tmp_path, editor, "--model", "none", *TEST) as agent:
        session = (await agent.new_session(str(project))).session_id
        prompt = asyncio.create_task(agent.prompt(session, [text_block("/heal")]))
        await begun(tmp_path, 1, "search.started")
        editor.process.kill()
        with pytest.raises((ConnectionError, RequestError)):
            await prompt
    editor = Editor(lambda _: "leave")
    async with opened(tmp_path, editor, "--model", "none", *TEST) as agent:
        assert [one.session_id for one in (await agent.list_sessions(str(project))).sessions] == [session]
        await agent.load_session(str(project), session)
        assert "1 of 1 fail" in editor.said
        assert "/resume continues it" in editor.said
        await agent.prompt(session, [text_block("/resume")])
        assert "Healed" in editor.said
        assert "Your files were not changed" in editor.said
        assert (project / "cart.py").read_text() == BROKEN["cart.py"]
        with pytest.raises(RequestError, match="belongs to"):
            await agent.fork_session(session, str(tmp_path))
        fork = (await agent.fork_session(session, str(project))).session_id
        await agent.close_session(fork)
        with pytest.raises(RequestError, match="no session"):
            await agent.prompt(fork, [text_block("/resume")])
        told = editor.said.count("Healed")
        await agent.load_session(str(project), fork)
        assert editor.said.count("Healed") == told + 1, "it knows the run of the session that it came from"
    assert len(list((tmp_path / "home" / "runs").iterdir())) == 1


@pytest.mark.heavy
async def test_bad_input_is_reported_and_the_agent_continues(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    async with opened(tmp_path, Editor(), "--model", "none") as agent:
        for cwd in ("relative", str(tmp_path / "nowhere"), "/\0"):
            with pytest.raises(RequestError, match="is not a folder"):
                await agent.new_session(cwd)
        session = (await agent.new_session(str(empty))).session_id
        for name in ("../../etc", "20260101-000000000-abcdef"):
            with pytest.raises(RequestError, match="no session"):
                await agent.load_session(str(empty), name)
            with pytest.raises(RequestError, match="no session"):
                await agent.prompt(name, [text_block("hello")])
        with pytest.raises(RequestError, match="no mode"):
            await agent.set_session_mode(session_id=session, mode_id="never")
        for prompt, says in (
            (text_block("/dance"), "no command"),
            (text_block("/resume"), "no run yet"),
            (text_block("/write"), "task is empty"),
            (text_block("/write a function"), "written by a model"),
            (text_block("/heal"), "no Python code"),
            (image_block("AAAA", "image/png"), "a prompt can only contain text"),
        ):
            with pytest.raises(RequestError, match=says):
                await agent.prompt(session, [prompt])
        with pytest.raises(RequestError, match="not found"):
            await agent.ext_method("suture/anything", {})
