"""The server: what an editor asks of it, and what it tells unasked."""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from suture.api.past_runs import find_run_folder
from suture.core.safe_files import read_plain
from suture.errors import SutureError, UsageError
from suture.interfaces.editor.lsp.background_runs import BackgroundRuns, ServerOptions
from suture.interfaces.editor.lsp.diagnostics import Action, make_code_actions, make_diagnostics
from suture.interfaces.editor.lsp.run_findings import RunFindings
from suture.interfaces.editor.lsp.workspace_edits import EditOutdated, as_plain_changes, make_workspace_edit
from suture.interfaces.jobs.job_execution import require_sandbox
from suture.interfaces.narrative.certificate_rendering import certificate_lines
from suture.interfaces.narrative.plain_text import sanitize_text
from suture.models import NO_MODEL

MOST_FILE_BYTES = 16 * 2**20


def serve(work: ServerOptions) -> None:
    """Talk to an editor on stdin and stdout until it goes away.

    Raises:
        UsageError: There would be no sandbox.
    """
    require_sandbox(work.settings)
    SutureLanguageServer(work).start_io()


class SutureLanguageServer(LanguageServer):
    """Answers one editor."""

    def __init__(self, work: ServerOptions) -> None:
        super().__init__("suture", version("suture"))
        self.settings = work.settings
        self.checking = BackgroundRuns(self, work, self.show)
        self.on_save = True
        self.found: dict[Path, RunFindings] = {}
        self._shown: dict[Path, set[str]] = {}
        self._checks: set[asyncio.Task[None]] = set()
        _register_features(self)
        _register_commands(self)

    @property
    def asks_model(self) -> bool:
        """Whether a model is there to be asked."""
        return self.settings.model.name != NO_MODEL

    def root_of(self, uri: object = None) -> Path:
        """The workspace folder that a file lies in; without a file, the only one there is.

        Raises:
            JsonRpcInvalidParams: There is none.
        """
        named = [folder.uri for folder in self.workspace.folders.values()]
        if not named and self.workspace.root_uri:
            named = [self.workspace.root_uri]
        roots = [Path(path).resolve() for folder in named if (path := to_fs_path(folder))]
        if uri is None and len(roots) == 1:
            return roots[0]
        path = to_fs_path(uri) if isinstance(uri, str) else None
        inside = [root for root in roots if path and Path(path).resolve().is_relative_to(root)]
        if not inside:
            raise JsonRpcInvalidParams(
                f"{uri!r:.200} lies in no folder that the editor has open: open the project's folder, "
                "or lay what marks one there (pyproject.toml, .git)"
            )
        return max(inside, key=lambda root: len(root.parts))

    def check_soon(self, root: Path) -> None:
        """Run a folder's tests beside what else goes on; what is wrong is told, as nobody waits for it."""
        task = asyncio.create_task(self._check(root))
        self._checks.add(task)
        task.add_done_callback(self._checks.discard)

    async def _check(self, root: Path) -> None:
        try:
            self.show(await self.checking.run(root, asks_model=False))
        except asyncio.CancelledError:
            return  # a newer run took its place, or the user took it back
        except SutureError as fault:
            self.tell(str(fault), types.MessageType.Error)

    async def work_on(self, root: Path, *, asks_model: bool) -> RunFindings:
        """The same for who waits for it.

        Raises:
            JsonRpcException: It could not be done.
        """
        try:
            found = await self.checking.run(root, asks_model=asks_model)
        except SutureError as fault:
            kind = JsonRpcInvalidParams if isinstance(fault, UsageError) else JsonRpcException
            raise kind(str(fault)) from fault
        self.show(found)
        return found

    def show(self, found: RunFindings) -> None:
        """Show a run's findings in place of the folder's earlier ones."""
        self.found[found.root] = found
        by_uri = make_diagnostics(found, self.units)
        for uri in self._shown.get(found.root, set()) - by_uri.keys():
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri=uri, diagnostics=[]))
        for uri, diagnostics in by_uri.items():
            self.text_document_publish_diagnostics(
                types.PublishDiagnosticsParams(uri=uri, diagnostics=diagnostics)
            )
        self._shown[found.root] = set(by_uri)

    def edit_of(self, found: RunFindings) -> types.WorkspaceEdit | None:
        """The change of a run's findings; `None` where there is none, or the files are others by now."""
        if found.change is None:
            return None
        workspace = self.client_capabilities.workspace
        able = workspace.workspace_edit if workspace is not None else None
        versions = bool(able and able.document_changes)
        kinds = (able.resource_operations if able else None) or ()
        creates = versions and types.ResourceOperationKind.Create in kinds
        try:
            edit = make_workspace_edit(found, self._held, self.units, creates=creates)
        except EditOutdated:
            return None
        return edit if versions else as_plain_changes(edit)

    def units(self, text: str) -> int:
        """How long a text is, as the client counts characters."""
        return int(self.workspace.position_codec.client_num_units(text))

    def tell(self, message: str, kind: types.MessageType = types.MessageType.Info) -> None:
        """Show the user a message."""
        self.window_show_message(types.ShowMessageParams(type=kind, message=sanitize_text(message)))

    def _held(self, path: Path) -> tuple[str, int | None] | None:
        for uri, document in self.workspace.text_documents.items():
            if (named := to_fs_path(uri)) and Path(named).resolve() == path:
                return document.source, document.version
        try:
            content = read_plain(path, MOST_FILE_BYTES)
        except OSError:
            return None
        # As the editor will read it: line ends as they are.
        return None if content is None else (content.decode("utf-8", "surrogateescape"), None)


def _register_features(server: SutureLanguageServer) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        options = params.initialization_options
        given = options if isinstance(options, dict) else {}
        server.on_save = given.get("onSave", True) is not False
        if isinstance(given.get("test"), str):
            server.checking.test = given["test"]

    @server.feature(types.SHUTDOWN)
    async def shutdown(_: Any = None) -> None:
        await server.checking.close()

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def did_save(params: types.DidSaveTextDocumentParams) -> None:
        if not server.on_save:
            return
        try:
            root = server.root_of(params.text_document.uri)
        except JsonRpcInvalidParams as fault:  # nobody waits for an answer, and the editor would show a trace
            server.tell(str(fault), types.MessageType.Warning)
        else:
            server.check_soon(root)

    kinds = [types.CodeActionKind.QuickFix]

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=kinds))
    def code_action(params: types.CodeActionParams) -> list[Action]:
        try:
            found = server.found.get(server.root_of(params.text_document.uri))
        except JsonRpcInvalidParams:
            return []
        return make_code_actions(server, found, params) if found is not None else []


def _register_commands(server: SutureLanguageServer) -> None:
    # The SDK hands over as many arguments as a client sends, where a command takes any number.
    @server.command("suture.check")
    async def check(ls: SutureLanguageServer, *given: object) -> dict[str, Any]:
        return _told(await server.work_on(server.root_of(*given[:1]), asks_model=False))

    @server.command("suture.heal")
    async def heal(ls: SutureLanguageServer, *given: object) -> dict[str, Any]:
        found = await server.work_on(server.root_of(*given[:1]), asks_model=server.asks_model)
        edit, applied = server.edit_of(found), False
        if edit is not None:
            params = types.ApplyWorkspaceEditParams(edit=edit, label=f"Suture {found.run}")
            applied = (await server.workspace_apply_edit_async(params)).applied
        return {**_told(found), "applied": applied}

    @server.command("suture.stop")
    async def stop(ls: SutureLanguageServer, *given: object) -> None:
        await server.checking.stop(server.root_of(*given[:1]))

    @server.command("suture.explain")
    def explain(ls: SutureLanguageServer, *given: object) -> str:
        try:
            folder = find_run_folder(str(given[0]) if given else "", server.settings)
            lines = list(certificate_lines(folder))
        except SutureError as fault:
            raise JsonRpcInvalidParams(str(fault)) from fault
        text = sanitize_text("\n".join(lines)) if lines else f"Run {folder.id} has no certificate."
        server.tell(text)
        return text


def _told(found: RunFindings) -> dict[str, Any]:
    return {
        "run": found.run,
        "tests": found.total,
        "failing": [one.test for one in found.failing],
        "mended": [one.test for one in found.failing if one.mended],
    }
