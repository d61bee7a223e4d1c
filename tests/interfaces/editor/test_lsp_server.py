"""`suture lsp` driven over stdio by pygls' own client."""

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
from interfaces.editor.test_acp_agent import begun
from interfaces.web.real_server import environ_of, job_processes, ledger_of, scripted
from interfaces.web.uploaded_projects import BROKEN, HANGING, laid

pytestmark = [pytest.mark.usefixtures("sandbox"), pytest.mark.timeout(300)]

TEST = ("--test", BARE_PYTEST)
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
"""Two faults in a file with other line ends, and none at the end."""


class Editor(LanguageClient):
    """An editor: it keeps what it is told, and writes what it is handed."""

    def __init__(self) -> None:
        super().__init__("tests", "1")
        self.shown: dict[str, list[types.Diagnostic]] = {}
        self.told: list[str] = []
        self.bars: list[Any] = []
        self.texts: dict[str, str] = {}
        self.changed = asyncio.Event()

        register: Any = self.feature  # which has no types of its own
        register(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda params: self.on_published(params))
        register(types.WINDOW_SHOW_MESSAGE)(lambda params: self.on_message(params))
        register(types.WINDOW_WORK_DONE_PROGRESS_CREATE)(lambda params: self.on_bar(params))
        register(types.WORKSPACE_APPLY_EDIT)(lambda params: self.on_edit(params))

    def on_published(self, params: types.PublishDiagnosticsParams) -> None:
        self.shown[params.uri] = list(params.diagnostics)
        self.changed.set()

    def on_message(self, params: types.ShowMessageParams) -> None:
        self.told.append(params.message)
        self.changed.set()

    def on_bar(self, params: types.WorkDoneProgressCreateParams) -> None:
        self.bars.append(params.token)

    def on_edit(self, params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        self.apply(params.edit)
        return types.ApplyWorkspaceEditResult(applied=True)

    def open(self, path: Path) -> str:
        """Open a file, as a tab does."""
        uri, text = path.as_uri(), path.read_bytes().decode()
        self.texts[uri] = text
        item = types.TextDocumentItem(uri=uri, language_id="python", version=1, text=text)
        self.text_document_did_open(types.DidOpenTextDocumentParams(text_document=item))
        return uri

    def save(self, uri: str) -> None:
        """Say that a file was saved."""
        identifier = types.TextDocumentIdentifier(uri=uri)
        self.text_document_did_save(types.DidSaveTextDocumentParams(text_document=identifier))

    def apply(self, edit: types.WorkspaceEdit | None) -> None:
        """Carry out an edit on the texts that are open, from the end to the start, as the protocol has it."""
        assert edit is not None
        for change in edit.document_changes or ():
            assert isinstance(change, types.TextDocumentEdit)
            assert change.text_document.version == 1
            text = self.texts[change.text_document.uri]
            for one in reversed(change.edits):
                assert isinstance(one, types.TextEdit)
                start, end = offset_of(text, one.range.start), offset_of(text, one.range.end)
                text = text[:start] + one.new_text + text[end:]
            self.texts[change.text_document.uri] = text

    async def actions(self, uri: str, line: int) -> list[types.CodeAction | types.Command]:
        """What is offered at a line."""
        place = types.Position(line=line, character=0)
        answer = await self.text_document_code_action_async(
            types.CodeActionParams(
                text_document=types.TextDocumentIdentifier(uri=uri),
                range=types.Range(start=place, end=place),
                context=types.CodeActionContext(diagnostics=[]),
            )
        )
        return list(answer or ())

    async def command(self, name: str, *arguments: Any) -> Any:
        """Have the server do something."""
        params = types.ExecuteCommandParams(command=name, arguments=list(arguments))
        return await self.workspace_execute_command_async(params)

    async def until(self, wanted: Any) -> None:
        """Wait until something is so that the server tells."""
        while not wanted():
            self.changed.clear()
            await self.changed.wait()


def offset_of(text: str, place: types.Position) -> int:
    lines = text.split("\n")
    before = sum(len(line) + 1 for line in lines[: place.line])
    units = lines[place.line].encode("utf-16-le")[: 2 * place.character]
    return before + len(units.decode("utf-16-le"))


@asynccontextmanager
async def opened(folder: Path, root: Path | None, *options: str, **given: Any) -> AsyncIterator[Editor]:
    """A server in a process of its own, introduced to an editor."""
    editor = Editor()
    command = [sys.executable, "-m", "suture.interfaces.cli", "lsp", *options]
    await editor.start_io(command[0], *command[1:], env=environ_of(folder), cwd=folder, limit=2**24)
    try:
        await _introduced(editor, root, given)
        yield editor
    finally:
        await editor.shutdown_async(None)
        editor.exit(None)
        stop: Any = editor.stop
        await stop()


async def _introduced(editor: Editor, root: Path | None, given: dict[str, Any]) -> None:
    folders = [types.WorkspaceFolder(uri=root.as_uri(), name=root.name)] if root else None
    able = types.ClientCapabilities(
        window=types.WindowClientCapabilities(work_done_progress=True),
        workspace=types.WorkspaceClientCapabilities(
            workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True)
        ),
    )
    params = types.InitializeParams(
        capabilities=able, workspace_folders=folders, initialization_options=given or None
    )
    about = await editor.initialize_async(params)
    assert about.capabilities.execute_command_provider is not None
    editor.initialized(types.InitializedParams())


async def test_a_saved_file_shows_what_fails_and_the_verified_change_mends_it(tmp_path: Path) -> None:
    project = laid(tmp_path / "cart", BROKEN)
    async with opened(tmp_path, project, "--model", "none", test=BARE_PYTEST) as editor:
        uri = editor.open(project / "cart.py")
        editor.save(uri)
        await editor.until(lambda: editor.shown)
        tests = (project / "test_cart.py").as_uri()
        (early,) = editor.shown[tests]
        assert (early.range.start.line, "got: 4" in early.message) == (
            2,
            True,
        )  # at once, while the search goes on
        (run,) = (tmp_path / "home" / "runs").iterdir()
        assert ledger_of(tmp_path / "home", run.name)[-1]["kind"] != "run.finished"
        await editor.until(lambda: uri in editor.shown)
        assert editor.shown[tests] == []
        (diagnostic,) = editor.shown[uri]
        assert diagnostic.range.start == types.Position(line=1, character=4)
        assert "total([1, 2])" in diagnostic.message
        assert "expected: 3" in diagnostic.message
        assert "got: 4" in diagnostic.message
        assert diagnostic.related_information is not None
        assert diagnostic.related_information[0].location.uri == (project / "test_cart.py").as_uri()
        assert diagnostic.related_information[0].location.range.start.line == 2
        assert editor.bars

        heal, explain = await editor.actions(uri, 1)
        assert isinstance(heal, types.CodeAction)
        assert heal.title == "Heal test_cart.py::test_total (verified: 1 of 1 tests pass)"
        assert await editor.actions(uri, 0) == []
        editor.apply(heal.edit)
        assert editor.texts[uri] == "def total(prices):\n    return sum(prices)\n"
        assert (project / "cart.py").read_text() == BROKEN["cart.py"]
        assert isinstance(explain, types.Command)
        said = await editor.command(explain.command, *(explain.arguments or ()))
        assert "Confidence" in said  # what a proof is worth is measured elsewhere
        assert editor.told[-1] == said

        # The editor has other text by now than what was verified: nothing is offered over it.
        whole = types.TextDocumentContentChangeWholeDocument(text=editor.texts[uri])
        version = types.VersionedTextDocumentIdentifier(uri=uri, version=2)
        editor.text_document_did_change(
            types.DidChangeTextDocumentParams(text_document=version, content_changes=[whole])
        )
        assert await editor.actions(uri, 1) == []
        (project / "cart.py").write_text(editor.texts[uri])
        checked = await editor.command("suture.check")
        assert checked["failing"] == []
        await editor.until(lambda: not editor.shown[uri])


async def test_a_part_is_mended_where_not_all_can_be(tmp_path: Path) -> None:
    project = laid(tmp_path / "shop", {})
    for name, text in TWO_FAULTS.items():
        (project / name).write_bytes(text.encode())
    reply = TWO_FAULTS["shop.py"].replace(" + 1", "").replace("\r\n", "\n")
    model = scripted(tmp_path, f"```python\n{reply}\n```")
    limits = ("--set", "budget.attempts=1", "--set", "repair.enabled=false")
    async with opened(tmp_path, project, "--model", model, *TEST, *limits) as editor:
        uri = editor.open(project / "shop.py")
        healed = await editor.command("suture.heal", uri)
        assert sorted(healed["failing"]) == ["test_shop.py::test_label", "test_shop.py::test_total"]
        assert healed["fixed"] == ["test_shop.py::test_total"]
        assert healed["applied"] is True
        assert editor.texts[uri] == TWO_FAULTS["shop.py"].replace(" + 1", "") + "\r\n"


@pytest.mark.heavy
async def test_a_run_is_stopped_from_the_editor_and_a_crash_is_told(tmp_path: Path) -> None:
    project = laid(tmp_path / "hanging", HANGING)
    async with opened(tmp_path, project, "--model", "none", *TEST) as editor:
        uri = editor.open(project / "a.py")
        editor.save(uri)
        run = await begun(tmp_path, 1)
        cancel = types.WorkDoneProgressCancelParams(token=editor.bars[-1])
        editor.window_work_done_progress_cancel(cancel)
        while ledger_of(tmp_path / "home", run)[-1]["kind"] != "run.finished":
            await asyncio.sleep(0.1)
        assert ledger_of(tmp_path / "home", run)[-1]["data"]["outcome"] == "cancelled"

        editor.save(uri)
        older = await begun(tmp_path, 2)
        editor.save(uri)  # what was saved meanwhile counts
        await begun(tmp_path, 3)
        assert ledger_of(tmp_path / "home", older)[-1]["data"]["outcome"] == "cancelled"
        for pid in job_processes():
            os.kill(pid, signal.SIGKILL)
        await editor.until(lambda: editor.told)
        assert "process died" in editor.told[-1]
        assert await editor.command("suture.stop", uri) is None


async def test_bad_input_is_reported_and_the_server_continues(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    async with opened(tmp_path, empty, "--model", "none", onSave=False) as editor:
        for name, arguments, says in (
            ("suture.check", ["file:///etc/passwd"], "is in no folder"),
            ("suture.check", [17], "is in no folder"),
            ("suture.check", [empty.as_uri()], "no Python code"),
            ("suture.heal", ["https://example.org/"], "is in no folder"),
            ("suture.explain", ["../../etc"], "no run"),
            ("suture.explain", [], "no run"),
            ("suture.dance", [], "dance"),
        ):
            with pytest.raises(JsonRpcException, match=says):
                await editor.command(name, *arguments)
        assert await editor.actions((empty / "a.py").as_uri(), 0) == []
        editor.save((empty / "a.py").as_uri())  # onSave is off
        assert not list((tmp_path / "home").glob("runs/*"))
    async with opened(tmp_path, None, "--model", "none") as editor:
        with pytest.raises(JsonRpcException, match="no folder"):
            await editor.command("suture.check")
