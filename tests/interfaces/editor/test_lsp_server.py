"""`suture lsp`, driven over stdio by the client of pygls."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.client import LanguageClient

from bare_pytest import BARE_PYTEST
from interfaces.editor.test_acp_agent import wait_for_run
from interfaces.web.real_server import job_processes, make_environ, read_events, write_scripted_model
from interfaces.web.uploaded_projects import BROKEN_PROJECT, HANGING_PROJECT, write_project

pytestmark = [pytest.mark.usefixtures("sandbox"), pytest.mark.timeout(300)]

TEST_OPTIONS = ("--test", BARE_PYTEST)
TWO_FAULTS = {
    "shop.py": (
        "def total(prices):\r\n    return sum(prices) + 1\r\n\r\n\r\n"
        "def label(name):\r\n    return unknowable(name)"
    ),
    "test_shop.py": (
        "from shop import label, total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n\n\n"
        "def test_label():\n    assert label('\N{GRINNING FACE}') == 'Q7#\N{GRINNING FACE}!'\n"
    ),
}
"""A file with two faults, with Windows line endings and no newline at the end."""


class Editor(LanguageClient):
    """An editor that records diagnostics and messages, and applies the edits that it receives."""

    def __init__(self) -> None:
        super().__init__("tests", "1")
        self.diagnostics: dict[str, list[types.Diagnostic]] = {}
        self.messages: list[str] = []
        self.progress_tokens: list[Any] = []
        self.texts: dict[str, str] = {}
        self.state_changed = asyncio.Event()

        register: Any = self.feature  # pygls has no types for it
        register(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda params: self.on_published(params))
        register(types.WINDOW_SHOW_MESSAGE)(lambda params: self.on_message(params))
        register(types.WINDOW_WORK_DONE_PROGRESS_CREATE)(lambda params: self.on_bar(params))
        register(types.WORKSPACE_APPLY_EDIT)(lambda params: self.on_edit(params))

    def on_published(self, params: types.PublishDiagnosticsParams) -> None:
        self.diagnostics[params.uri] = list(params.diagnostics)
        self.state_changed.set()

    def on_message(self, params: types.ShowMessageParams) -> None:
        self.messages.append(params.message)
        self.state_changed.set()

    def on_bar(self, params: types.WorkDoneProgressCreateParams) -> None:
        self.progress_tokens.append(params.token)

    def on_edit(self, params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        self.apply(params.edit)
        return types.ApplyWorkspaceEditResult(applied=True)

    def open(self, path: Path) -> str:
        """Open a file and tell the server."""
        uri, text = path.as_uri(), path.read_bytes().decode()
        self.texts[uri] = text
        item = types.TextDocumentItem(uri=uri, language_id="python", version=1, text=text)
        self.text_document_did_open(types.DidOpenTextDocumentParams(text_document=item))
        return uri

    def save(self, uri: str) -> None:
        """Tell the server that a file was saved."""
        identifier = types.TextDocumentIdentifier(uri=uri)
        self.text_document_did_save(types.DidSaveTextDocumentParams(text_document=identifier))

    def apply(self, edit: types.WorkspaceEdit | None) -> None:
        """Apply an edit to the open texts, from the end to the start, as the protocol requires."""
        assert edit is not None
        for change in edit.document_changes or ():
            assert isinstance(change, types.TextDocumentEdit)
            assert change.text_document.version == 1
            text = self.texts[change.text_document.uri]
            for text_edit in reversed(change.edits):
                assert isinstance(text_edit, types.TextEdit)
                start, end = find_offset(text, text_edit.range.start), find_offset(text, text_edit.range.end)
                text = text[:start] + text_edit.new_text + text[end:]
            self.texts[change.text_document.uri] = text

    async def actions(self, uri: str, line: int) -> list[types.CodeAction | types.Command]:
        """Return the actions that the server offers at a line."""
        position = types.Position(line=line, character=0)
        answer = await self.text_document_code_action_async(
            types.CodeActionParams(
                text_document=types.TextDocumentIdentifier(uri=uri),
                range=types.Range(start=position, end=position),
                context=types.CodeActionContext(diagnostics=[]),
            )
        )
        return list(answer or ())

    async def command(self, name: str, *arguments: Any) -> Any:
        """Execute a command of the server."""
        params = types.ExecuteCommandParams(command=name, arguments=list(arguments))
        return await self.workspace_execute_command_async(params)

    async def wait_until(self, condition: Any) -> None:
        """Wait until a condition on what the server has sent holds."""
        while not condition():
            self.state_changed.clear()
            await self.state_changed.wait()


def find_offset(text: str, position: types.Position) -> int:
    """Return the index in a text of a position in UTF-16 units."""
    lines = text.split("\n")
    before = sum(len(line) + 1 for line in lines[: position.line])
    units = lines[position.line].encode("utf-16-le")[: 2 * position.character]
    return before + len(units.decode("utf-16-le"))


@asynccontextmanager
async def start_editor(
    folder: Path, root: Path | None, *options: str, **options_of_client: Any
) -> AsyncIterator[Editor]:
    """Start a server in its own process and initialise it with an editor."""
    editor = Editor()
    command = [sys.executable, "-m", "suture.interfaces.cli", "lsp", *options]
    await editor.start_io(command[0], *command[1:], env=make_environ(folder), cwd=folder, limit=2**24)
    try:
        await initialize_editor(editor, root, options_of_client)
        yield editor
    finally:
        await editor.shutdown_async(None)
        editor.exit(None)
        stop: Any = editor.stop
        await stop()


async def initialize_editor(editor: Editor, root: Path | None, options_of_client: dict[str, Any]) -> None:
    """Exchange the initialisation messages of the protocol."""
    folders = [types.WorkspaceFolder(uri=root.as_uri(), name=root.name)] if root else None
    able = types.ClientCapabilities(
        window=types.WindowClientCapabilities(work_done_progress=True),
        workspace=types.WorkspaceClientCapabilities(
            workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True)
        ),
    )
    params = types.InitializeParams(
        capabilities=able, workspace_folders=folders, initialization_options=options_of_client or None
    )
    server_info = await editor.initialize_async(params)
    assert server_info.capabilities.execute_command_provider is not None
    editor.initialized(types.InitializedParams())


async def test_a_saved_file_shows_failing_tests_and_a_verified_fix(tmp_path: Path) -> None:
    project = write_project(tmp_path / "cart", BROKEN_PROJECT)
    async with start_editor(tmp_path, project, "--model", "none", test=BARE_PYTEST) as editor:
        uri = editor.open(project / "cart.py")
        editor.save(uri)
        await editor.wait_until(lambda: editor.diagnostics)
        tests = (project / "test_cart.py").as_uri()
        (early_diagnostic,) = editor.diagnostics[tests]
        # The failing test is shown at once, while the search continues.
        assert (early_diagnostic.range.start.line, "got: 4" in early_diagnostic.message) == (2, True)
        (run,) = (tmp_path / "home" / "runs").iterdir()
        assert read_events(tmp_path / "home", run.name)[-1]["kind"] != "run.finished"
        await editor.wait_until(lambda: uri in editor.diagnostics)
        assert editor.diagnostics[tests] == []
        (diagnostic,) = editor.diagnostics[uri]
        assert diagnostic.range.start == types.Position(line=1, character=4)
        assert "total([1, 2])" in diagnostic.message
        assert "expected: 3" in diagnostic.message
        assert "got: 4" in diagnostic.message
        assert diagnostic.related_information is not None
        assert diagnostic.related_information[0].location.uri == (project / "test_cart.py").as_uri()
        assert diagnostic.related_information[0].location.range.start.line == 2
        assert editor.progress_tokens

        heal, explain = await editor.actions(uri, 1)
        assert isinstance(heal, types.CodeAction)
        assert heal.title == "Heal test_cart.py::test_total (verified: the only test passes)"
        assert await editor.actions(uri, 0) == []
        editor.apply(heal.edit)
        assert editor.texts[uri] == "def total(prices):\n    return sum(prices)\n"
        assert (project / "cart.py").read_text() == BROKEN_PROJECT["cart.py"]
        assert isinstance(explain, types.Command)
        explanation = await editor.command(explain.command, *(explain.arguments or ()))
        assert "Confidence" in explanation
        assert editor.messages[-1] == explanation

        # The editor's text differs from the verified text now, so no action is offered.
        whole_text = types.TextDocumentContentChangeWholeDocument(text=editor.texts[uri])
        version = types.VersionedTextDocumentIdentifier(uri=uri, version=2)
        editor.text_document_did_change(
            types.DidChangeTextDocumentParams(text_document=version, content_changes=[whole_text])
        )
        assert await editor.actions(uri, 1) == []
        (project / "cart.py").write_text(editor.texts[uri])
        check = await editor.command("suture.check")
        assert check["failing"] == []
        await editor.wait_until(lambda: not editor.diagnostics[uri])


async def test_a_partial_fix_is_applied_when_not_all_tests_can_be_fixed(tmp_path: Path) -> None:
    project = write_project(tmp_path / "shop", {})
    for name, text in TWO_FAULTS.items():
        (project / name).write_bytes(text.encode())
    reply = TWO_FAULTS["shop.py"].replace(" + 1", "").replace("\r\n", "\n")
    model = write_scripted_model(tmp_path, f"```python\n{reply}\n```")
    limits = ("--set", "budget.attempts=1", "--set", "repair.enabled=false")
    async with start_editor(tmp_path, project, "--model", model, *TEST_OPTIONS, *limits) as editor:
        uri = editor.open(project / "shop.py")
        result = await editor.command("suture.heal", uri)
        assert sorted(result["failing"]) == ["test_shop.py::test_label", "test_shop.py::test_total"]
        assert result["fixed"] == ["test_shop.py::test_total"]
        assert result["applied"] is True
        assert editor.texts[uri] == TWO_FAULTS["shop.py"].replace(" + 1", "") + "\r\n"


@pytest.mark.heavy
async def test_a_run_can_be_stopped_from_the_editor_and_a_crash_is_reported(tmp_path: Path) -> None:
    project = write_project(tmp_path / "hanging", HANGING_PROJECT)
    async with start_editor(tmp_path, project, "--model", "none", *TEST_OPTIONS) as editor:
        uri = editor.open(project / "a.py")
        editor.save(uri)
        run = await wait_for_run(tmp_path, 1)
        cancel = types.WorkDoneProgressCancelParams(token=editor.progress_tokens[-1])
        editor.window_work_done_progress_cancel(cancel)
        while read_events(tmp_path / "home", run)[-1]["kind"] != "run.finished":
            await asyncio.sleep(0.1)
        assert read_events(tmp_path / "home", run)[-1]["data"]["outcome"] == "cancelled"

        editor.save(uri)
        older_run = await wait_for_run(tmp_path, 2)
        editor.save(uri)  # a save during a run starts the run again
        await wait_for_run(tmp_path, 3)
        assert read_events(tmp_path / "home", older_run)[-1]["data"]["outcome"] == "cancelled"
        for pid in job_processes():
            os.kill(pid, signal.SIGKILL)
        await editor.wait_until(lambda: editor.messages)
        assert "process died" in editor.messages[-1]
        assert await editor.command("suture.stop", uri) is None


async def test_bad_input_is_reported_and_the_server_continues(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    async with start_editor(tmp_path, empty, "--model", "none", onSave=False) as editor:
        for name, arguments, message in (
            ("suture.check", ["file:///etc/passwd"], "is in no folder"),
            ("suture.check", [17], "is in no folder"),
            ("suture.check", [empty.as_uri()], "no code to heal"),
            ("suture.heal", ["https://example.org/"], "is in no folder"),
            ("suture.explain", ["../../etc"], "no run"),
            ("suture.explain", [], "no run"),
            ("suture.dance", [], "dance"),
        ):
            with pytest.raises(JsonRpcException, match=message):
                await editor.command(name, *arguments)
        assert await editor.actions((empty / "a.py").as_uri(), 0) == []

        editor.save((empty / "a.py").as_uri())  # onSave is off
        assert not list((tmp_path / "home").glob("runs/*"))
    async with start_editor(tmp_path, None, "--model", "none") as editor:
        with pytest.raises(JsonRpcException, match="no folder"):
            await editor.command("suture.check")
