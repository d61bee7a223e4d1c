"""The language server: it answers the editor's requests and commands, and publishes diagnostics on its own."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from suture.api.past_runs import find_run_folder
from suture.core.safe_files import read_regular_file
from suture.errors import SutureError, UsageError
from suture.interfaces.editor.lsp.background_runs import BackgroundRuns, LanguageServerOptions
from suture.interfaces.editor.lsp.run_findings import (
    CodeAction,
    RunFindings,
    make_code_actions,
    make_diagnostics,
)
from suture.interfaces.editor.tuning import MAX_FILE_BYTES
from suture.interfaces.jobs.project_sources import require_sandbox
from suture.interfaces.narrative.certificate_rendering import certificate_lines
from suture.interfaces.narrative.plain_text import sanitize_text
from suture.models import NO_MODEL


def serve_lsp(options: LanguageServerOptions) -> None:
    """Communicate with an editor over stdin and stdout until it disconnects.

    Raises:
        UsageError: The settings disable the sandbox.
    """
    require_sandbox(options.settings)
    SutureLanguageServer(options).start_io()


class SutureLanguageServer(LanguageServer):
    """Answers the requests of one editor."""

    def __init__(self, options: LanguageServerOptions) -> None:
        super().__init__("suture", version("suture"))
        self.settings = options.settings
        self.runs = BackgroundRuns(self, options, self.publish_findings)
        self.checks_on_save = True
        self.findings: dict[Path, RunFindings] = {}
        self._published_uris: dict[Path, set[str]] = {}
        self._check_tasks: set[asyncio.Task[None]] = set()
        _register_features(self)
        _register_commands(self)

    @property
    def asks_model(self) -> bool:
        """Whether a model is configured."""
        return self.settings.model.name != NO_MODEL

    def find_root(self, uri: object = None) -> Path:
        """Return the workspace folder of a file; without a file, the only folder.

        Raises:
            JsonRpcInvalidParams: There is no such folder.
        """
        folder_uris = [folder.uri for folder in self.workspace.folders.values()]
        if not folder_uris and self.workspace.root_uri:
            folder_uris = [self.workspace.root_uri]
        roots = [Path(path).resolve() for folder_uri in folder_uris if (path := to_fs_path(folder_uri))]
        if uri is None and len(roots) == 1:
            return roots[0]
        path = to_fs_path(uri) if isinstance(uri, str) else None
        containing = [root for root in roots if path and Path(path).resolve().is_relative_to(root)]
        if not containing:
            raise JsonRpcInvalidParams(
                f"{uri!r:.200} is in no folder that the editor has open: open the project's folder, "
                "or add a file that marks it (pyproject.toml, .git)"
            )
        return max(containing, key=lambda root: len(root.parts))  # the innermost of nested folders

    def start_check(self, root: Path) -> None:
        """Run a folder's tests in the background; errors are shown, because no request waits for them."""
        task = asyncio.create_task(self._run_check(root))
        self._check_tasks.add(task)
        task.add_done_callback(self._check_tasks.discard)

    async def _run_check(self, root: Path) -> None:
        try:
            self.publish_findings(await self.runs.run(root, asks_model=False))
        except asyncio.CancelledError:
            return  # a newer run replaced it, or the user cancelled it
        except SutureError as fault:
            self.show_message(str(fault), types.MessageType.Error)

    async def run_check(self, root: Path, *, asks_model: bool) -> RunFindings:
        """Run a folder's tests and publish the findings, for a request that waits."""
        try:
            findings = await self.runs.run(root, asks_model=asks_model)
        except SutureError as fault:
            error_class = JsonRpcInvalidParams if isinstance(fault, UsageError) else JsonRpcException
            raise error_class(str(fault)) from fault
        self.publish_findings(findings)
        return findings

    def publish_findings(self, findings: RunFindings) -> None:
        """Publish a run's findings instead of the folder's earlier ones."""
        self.findings[findings.root] = findings
        diagnostics_by_uri = make_diagnostics(findings, self.count_units)
        outdated_uris = self._published_uris.get(findings.root, set()) - diagnostics_by_uri.keys()
        # An empty list removes the diagnostics of a file.
        for uri, diagnostics in (*((uri, []) for uri in outdated_uris), *diagnostics_by_uri.items()):
            self.text_document_publish_diagnostics(
                types.PublishDiagnosticsParams(uri=uri, diagnostics=diagnostics)
            )
        self._published_uris[findings.root] = set(diagnostics_by_uri)

    def make_edit(self, findings: RunFindings) -> types.WorkspaceEdit | None:
        """Return the edit for the verified change, or `None` if there is none or the files have changed."""
        if findings.change is None:
            return None
        workspace = self.client_capabilities.workspace
        capabilities = workspace.workspace_edit if workspace is not None else None
        supports_versions = bool(capabilities and capabilities.document_changes)
        operations = (capabilities.resource_operations if capabilities else None) or ()
        can_create = supports_versions and types.ResourceOperationKind.Create in operations
        try:
            edit = make_workspace_edit(findings, self._read_document, self.count_units, can_create=can_create)
        except EditOutdated:
            return None
        return edit if supports_versions else without_versions(edit)

    def count_units(self, text: str) -> int:
        """Return a string's length in the client's character units."""
        return int(self.workspace.position_codec.client_num_units(text))

    def show_message(self, message: str, kind: types.MessageType = types.MessageType.Info) -> None:
        """Show a message to the user."""
        self.window_show_message(types.ShowMessageParams(type=kind, message=sanitize_text(message)))

    def _read_document(self, path: Path) -> tuple[str, int | None] | None:
        for uri, document in self.workspace.text_documents.items():
            if (document_path := to_fs_path(uri)) and Path(document_path).resolve() == path:
                return document.source, document.version
        try:
            content = read_regular_file(path, MAX_FILE_BYTES)
        except OSError:
            return None
        # Line ends are kept, because the editor reads the file that way.
        return None if content is None else (content.decode("utf-8", "surrogateescape"), None)


def _register_features(server: SutureLanguageServer) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        options = params.initialization_options
        arguments = options if isinstance(options, dict) else {}
        # Whatever a client sends by mistake, only `false` switches the tests off.
        server.checks_on_save = arguments.get("onSave", True) is not False
        if isinstance(arguments.get("test"), str):
            server.runs.test = arguments["test"]

    @server.feature(types.SHUTDOWN)
    async def shutdown(_: Any = None) -> None:
        await server.runs.close()

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def did_save(params: types.DidSaveTextDocumentParams) -> None:
        if not server.checks_on_save:
            return
        try:
            root = server.find_root(params.text_document.uri)
        # A notification has no response, and the editor would show a traceback.
        except JsonRpcInvalidParams as fault:
            server.show_message(str(fault), types.MessageType.Warning)
        else:
            server.start_check(root)

    kinds = [types.CodeActionKind.QuickFix]

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=kinds))
    def code_action(params: types.CodeActionParams) -> list[CodeAction]:
        try:
            findings = server.findings.get(server.find_root(params.text_document.uri))
        except JsonRpcInvalidParams:
            return []
        if findings is None:
            return []
        edit = server.make_edit(findings)
        return make_code_actions(findings, params, edit, server.count_units, asks_model=server.asks_model)


def _register_commands(server: SutureLanguageServer) -> None:
    # The SDK passes as many arguments as the client sends if a command accepts any number.
    @server.command("suture.check")
    async def check(ls: SutureLanguageServer, *arguments: object) -> dict[str, Any]:
        return _findings_as_json(await server.run_check(server.find_root(*arguments[:1]), asks_model=False))

    @server.command("suture.heal")
    async def heal(ls: SutureLanguageServer, *arguments: object) -> dict[str, Any]:
        findings = await server.run_check(server.find_root(*arguments[:1]), asks_model=server.asks_model)
        edit, applied = server.make_edit(findings), False
        if edit is not None:
            params = types.ApplyWorkspaceEditParams(edit=edit, label=f"Suture {findings.run}")
            applied = (await server.workspace_apply_edit_async(params)).applied
        return {**_findings_as_json(findings), "applied": applied}

    @server.command("suture.stop")
    async def stop(ls: SutureLanguageServer, *arguments: object) -> None:
        await server.runs.stop(server.find_root(*arguments[:1]))

    @server.command("suture.explain")
    def explain(ls: SutureLanguageServer, *arguments: object) -> str:
        try:
            folder = find_run_folder(str(arguments[0]) if arguments else "", server.settings)
            lines = list(certificate_lines(folder))
        except SutureError as fault:
            raise JsonRpcInvalidParams(str(fault)) from fault
        text = sanitize_text("\n".join(lines)) if lines else f"Run {folder.id} has no certificate."
        server.show_message(text)
        return text


def _findings_as_json(findings: RunFindings) -> dict[str, Any]:
    return {
        "run": findings.run,
        "tests": findings.total,
        "failing": [failing.test for failing in findings.failing],
        "fixed": [failing.test for failing in findings.failing if failing.is_fixed],
    }


PROTOCOL_LINE = re.compile(r"[^\n]*\n|[^\n]+")
"""A line as the protocol counts lines, unlike `str.splitlines`."""
ReadDocument = Callable[[Path], tuple[str, int | None] | None]
"""Returns a file's text in the editor and its version if it is open; `None` if the file does not exist."""


class EditOutdated(Exception):
    """A file has changed since the change was verified."""


def make_workspace_edit(
    findings: RunFindings, read_document: ReadDocument, count_units: Callable[[str], int], *, can_create: bool
) -> types.WorkspaceEdit:
    """Return the edit for the verified change of a run.

    Raises:
        EditOutdated: A file has changed since, or cannot be created.
    """
    assert findings.change is not None
    changes: list[types.TextDocumentEdit | types.CreateFile | types.RenameFile | types.DeleteFile] = []
    for path, text in sorted(findings.change.files.items()):
        file = findings.root / path
        if not file.resolve().is_relative_to(findings.root.resolve()):
            raise EditOutdated(f"{path} is outside the project, behind a symbolic link")
        tested_text, document = findings.texts.get(path), read_document(file)
        if tested_text is None:
            if document is not None or not can_create:
                raise EditOutdated(f"{path} is a new file that cannot be created")
            changes.append(types.CreateFile(uri=file.as_uri()))
            document = ("", None)
        # A lone carriage return ends a line for the protocol, but not for the line numbers here.
        elif document is None or "\r" in _normalized(document[0]) or _normalized(document[0]) != tested_text:
            raise EditOutdated(f"{path} has changed since the tests ran")
        current_text, version = document
        changes.append(
            types.TextDocumentEdit(
                text_document=types.OptionalVersionedTextDocumentIdentifier(
                    uri=file.as_uri(), version=version
                ),
                edits=list(_line_edits(current_text, text, count_units)),
            )
        )
    return types.WorkspaceEdit(document_changes=changes)


def without_versions(edit: types.WorkspaceEdit) -> types.WorkspaceEdit:
    """Return the edit for a client that does not support document versions."""
    changes = {
        change.text_document.uri: list(change.edits)
        for change in edit.document_changes or ()
        if isinstance(change, types.TextDocumentEdit)
    }
    return types.WorkspaceEdit(changes=changes)  # type: ignore[arg-type]  # all edits made above are plain


def _line_edits(old: str, new: str, count_units: Callable[[str], int]) -> Iterator[types.TextEdit]:
    """Yield the whole-line edits between two versions of a document, keeping its line ends."""
    line_end = "\r\n" if "\r\n" in old else "\n"
    before, after = PROTOCOL_LINE.findall(_normalized(old)), PROTOCOL_LINE.findall(new)
    lacks_final_line_end = bool(before) and not before[-1].endswith("\n")

    def position(line: int) -> types.Position:
        # After a last line without a line end there is no next line to insert at.
        if line == len(before) and lacks_final_line_end:
            return types.Position(line=line - 1, character=count_units(before[-1]))
        return types.Position(line=line, character=0)

    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for tag, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if tag == "equal":
            continue
        text = "".join(after[new_start:new_end]).replace("\n", line_end)
        if lacks_final_line_end and old_start == len(before):
            text = line_end + text
        yield types.TextEdit(
            range=types.Range(start=position(old_start), end=position(old_end)), new_text=text
        )


def _normalized(text: str) -> str:
    """Return text as `decode_text` reads it from a file: without a byte order mark, and with plain line feeds."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n")
