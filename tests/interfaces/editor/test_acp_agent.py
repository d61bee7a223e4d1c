"""`suture acp`, driven over stdio by the client of the SDK."""

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
from interfaces.web.real_server import (
    CORRECT_REPLY,
    TASK,
    job_processes,
    make_environ,
    read_events,
    write_scripted_model,
)
from interfaces.web.uploaded_projects import BROKEN_PROJECT, HANGING_PROJECT, write_project

pytestmark = [pytest.mark.usefixtures("sandbox"), pytest.mark.timeout(300)]

TEST_OPTIONS = ("--test", BARE_PYTEST)


class Editor:
    """An editor that records updates and answers permission requests.

    Args:
        choose_option: A function from the title of a request to the id of an option; "" cancels the request.
    """

    def __init__(self, choose_option: Callable[[str], str] = lambda _: "") -> None:
        self.choose_option = choose_option
        self.updates: list[Any] = []
        self.permission_requests: list[ToolCallUpdate] = []
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
        self.permission_requests.append(tool_call)
        chosen_id = self.choose_option(tool_call.title or "")
        assert not chosen_id or chosen_id in {option.option_id for option in options}
        if not chosen_id:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen_id))

    async def read_text_file(self, session_id: str, path: str, **_: Any) -> ReadTextFileResponse:
        return ReadTextFileResponse(content=self.unsaved.get(path, "") or Path(path).read_text())

    def updates_of_kind(self, kind: str) -> list[Any]:
        """Return the received updates of one kind."""
        return [update for update in self.updates if update.session_update == kind]

    @property
    def messages(self) -> str:
        """Return the text of all messages of the agent."""
        return "".join(update.content.text for update in self.updates_of_kind("agent_message_chunk"))


@asynccontextmanager
async def start_agent(folder: Path, editor: Editor, *options: str) -> AsyncIterator[ClientSideConnection]:
    """Start an agent in its own process and initialise it with an editor."""
    command = [sys.executable, "-m", "suture.interfaces.cli", "acp", *options]
    limits = {"limit": 2**24, "stderr": None, "shutdown_timeout": 60.0}
    async with spawn_agent_process(
        cast(Client, editor), *command, env=make_environ(folder), cwd=folder, transport_kwargs=limits
    ) as (agent, process):
        editor.process = process
        capabilities = ClientCapabilities(fs=FileSystemCapabilities(read_text_file=True))
        initialization = await agent.initialize(PROTOCOL_VERSION, client_capabilities=capabilities)
        assert initialization.agent_capabilities is not None
        assert initialization.agent_capabilities.load_session
        yield agent


async def wait_for_run(folder: Path, count: int, kind: str = "run.started") -> str:
    """Wait until there are `count` runs and the newest has an event of a kind; return its id."""
    while True:
        runs = sorted((folder / "home" / "runs").glob("*/ledger.jsonl"))
        if len(runs) == count and kind in runs[-1].read_text():
            return runs[-1].parent.name
        await asyncio.sleep(0.05)


async def test_a_project_can_be_healed_applied_verified_and_undone(tmp_path: Path) -> None:
    project = write_project(tmp_path / "cart", BROKEN_PROJECT)
    code = project / "cart.py"
    editor = Editor(lambda _: "apply")
    async with start_agent(tmp_path, editor, "--model", "none", *TEST_OPTIONS) as agent:
        session = (await agent.new_session(str(project))).session_id
        editor.unsaved[str(code)] = "def total(prices):\n    return None  # being written\n"
        with pytest.raises(RequestError, match="has unsaved changes"):
            await agent.prompt(session, [text_block("Make it pass")])
        assert code.read_text() == BROKEN_PROJECT["cart.py"]
        assert "your text is ignored" in editor.messages
        assert "Healed, but your tests do not decide: the only test passes" in editor.messages
        plans = editor.updates_of_kind("plan")
        assert [entry.status for entry in plans[0].entries] == ["in_progress", "pending", "pending"]
        assert [entry.status for entry in plans[-1].entries] == ["completed"] * 3
        file_edit = editor.updates_of_kind("tool_call")[0]
        assert file_edit.content[0].path == str(code)
        assert file_edit.content[0].old_text == BROKEN_PROJECT["cart.py"]
        assert "sum(prices)\n" in file_edit.content[0].new_text
        assert editor.updates_of_kind("tool_call_update")[0].status == "completed"

        editor.unsaved.clear()
        assert (await agent.prompt(session, [text_block("/apply")])).stop_reason == "end_turn"
        assert code.read_text() == "def total(prices):\n    return sum(prices)\n"
        assert editor.permission_requests[-1].content[0].new_text == code.read_text()  # type: ignore[index]  # the content is always a diff
        await agent.prompt(session, [text_block("/verify")])
        assert "verified: " in editor.messages
        assert "FALSE" not in editor.messages
        await agent.prompt(session, [text_block("/undo")])
        assert code.read_text() == BROKEN_PROJECT["cart.py"]
        offered_commands = {
            command.name
            for command in editor.updates_of_kind("available_commands_update")[0].available_commands
        }
        assert {"heal", "write", "resume", "apply", "undo", "verify"} == offered_commands


@pytest.mark.heavy
async def test_permissions_answer_reviews_and_prompts_are_hints(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    folder.mkdir()
    editor = Editor()
    async with start_agent(
        tmp_path, editor, "--model", write_scripted_model(tmp_path, CORRECT_REPLY, CORRECT_REPLY)
    ) as agent:
        new_session = await agent.new_session(str(folder))
        assert new_session.modes is not None
        assert new_session.modes.current_mode_id == "full_auto"

        session = new_session.session_id
        await agent.set_session_mode(session_id=session, mode_id="review_all")
        await agent.prompt(session, [text_block(f"/write {TASK}")])
        assert "waits for your answer" in editor.messages

        editor.choose_option = lambda _: "approve"
        await agent.prompt(session, [text_block("Keep it <b>short</b>")])
        assert len(editor.permission_requests) >= 2
        assert "Done: the only check passes" in editor.messages
        assert (folder / "solution.py").read_text() == "def double(n):\n    return 2 * n\n"
    events = read_events(tmp_path / "home", await wait_for_run(tmp_path, 1))

    answers = [event["data"] for event in events if event["kind"] == "review.answered"]

    assert answers[0]["choice"] == "redirect"
    assert answers[0]["hint"] == "Keep it <b>short</b>"


@pytest.mark.heavy
async def test_a_cancelled_run_is_recorded_and_a_crash_is_reported(tmp_path: Path) -> None:
    project = write_project(tmp_path / "hanging", HANGING_PROJECT)
    async with start_agent(tmp_path, Editor(), "--model", "none", *TEST_OPTIONS) as agent:
        session = (await agent.new_session(str(project))).session_id
        prompt = asyncio.create_task(agent.prompt(session, [text_block("/heal")]))
        run = await wait_for_run(tmp_path, 1)
        with pytest.raises(RequestError, match="another prompt"):
            await agent.prompt(session, [text_block("/heal")])
        await agent.cancel(session)
        await agent.cancel(session)
        assert (await prompt).stop_reason == "cancelled"
        assert read_events(tmp_path / "home", run)[-1]["data"]["outcome"] == "cancelled"

        prompt = asyncio.create_task(agent.prompt(session, [text_block("/heal")]))
        await wait_for_run(tmp_path, 2)
        for pid in job_processes():
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(RequestError, match="process died"):
            await prompt
        assert (await agent.list_sessions()).sessions[0].session_id == session


@pytest.mark.heavy
async def test_a_session_continues_with_a_new_agent(tmp_path: Path) -> None:
    project = write_project(tmp_path / "cart", BROKEN_PROJECT)
    editor = Editor(lambda _: "leave")
    async with start_agent(tmp_path, editor, "--model", "none", *TEST_OPTIONS) as agent:
        session = (await agent.new_session(str(project))).session_id
        prompt = asyncio.create_task(agent.prompt(session, [text_block("/heal")]))
        await wait_for_run(tmp_path, 1, "search.started")
        editor.process.kill()
        with pytest.raises((ConnectionError, RequestError)):
            await prompt
    editor = Editor(lambda _: "leave")

    async with start_agent(tmp_path, editor, "--model", "none", *TEST_OPTIONS) as agent:
        assert [
            session_info.session_id for session_info in (await agent.list_sessions(str(project))).sessions
        ] == [session]

        await agent.load_session(str(project), session)
        assert "the only test fails" in editor.messages
        assert "/resume continues it" in editor.messages

        await agent.prompt(session, [text_block("/resume")])
        assert "Healed" in editor.messages
        assert "Your files were not changed" in editor.messages
        assert (project / "cart.py").read_text() == BROKEN_PROJECT["cart.py"]
        with pytest.raises(RequestError, match="belongs to"):
            await agent.fork_session(session, str(tmp_path))

        fork = (await agent.fork_session(session, str(project))).session_id
        await agent.close_session(fork)
        with pytest.raises(RequestError, match="no session"):
            await agent.prompt(fork, [text_block("/resume")])

        healed_count = editor.messages.count("Healed")
        await agent.load_session(str(project), fork)
        assert editor.messages.count("Healed") == healed_count + 1, (
            "the fork does not know the run of its origin"
        )

    assert len(list((tmp_path / "home" / "runs").iterdir())) == 1


@pytest.mark.heavy
async def test_bad_input_is_reported_and_the_agent_continues(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    async with start_agent(tmp_path, Editor(), "--model", "none") as agent:
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
        for prompt, message in (
            (text_block("/dance"), "no command"),
            (text_block("/resume"), "no run yet"),
            (text_block("/write"), "task is empty"),
            (text_block("/write a function"), "written by a model"),
            (text_block("/heal"), "no code to heal"),
            (image_block("AAAA", "image/png"), "a prompt can only contain text"),
        ):
            with pytest.raises(RequestError, match=message):
                await agent.prompt(session, [prompt])
        with pytest.raises(RequestError, match="not found"):
            await agent.ext_method("suture/anything", {})
