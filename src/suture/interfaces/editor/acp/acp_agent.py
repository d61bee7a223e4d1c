"""The agent of `suture acp`, which answers the requests of the Agent Client Protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from acp import PROTOCOL_VERSION, RequestError, run_agent
from acp.helpers import update_available_commands
from acp.interfaces import Agent as AcpAgent
from acp.interfaces import Client
from acp.schema import (
    AgentCapabilities,
    AvailableCommand,
    AvailableCommandInput,
    ClientCapabilities,
    CloseSessionResponse,
    EmbeddedResourceContentBlock,
    ForkSessionResponse,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    ResourceContentBlock,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionForkCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionMode,
    SessionModeState,
    SetSessionModeResponse,
    TextContentBlock,
    TextResourceContents,
    UnstructuredCommandInput,
)

from suture.core.settings import Settings
from suture.errors import SutureError, UsageError
from suture.interfaces.editor.acp.prompt_turn import COMMANDS, PromptTurn
from suture.interfaces.editor.acp.session_store import Session, SessionStore
from suture.interfaces.jobs.project_sources import require_sandbox

INVALID_PARAMS, INTERNAL_ERROR = -32602, -32603
"""JSON-RPC's codes for errors that the client can fix, and for those that it cannot."""
SESSION_MODES = {
    "full_auto": ("Never ask", "Runs to the end without questions"),
    "review_repairs": ("Ask before repairs", "Asks you before each repair"),
    "review_all": ("Ask before each step", "Asks you before each step and about the result"),
}
"""Value of the setting `loop.autonomy` -> (title, description)."""


def serve_acp(settings: Settings, flags: Mapping[str, object], test: str | None) -> None:
    """Communicate with a client over stdin and stdout until it disconnects.

    Args:
        flags: The settings from the command line.
        test: The projects' test command; by default it is detected.

    Raises:
        UsageError: The settings disable the sandbox.
    """
    require_sandbox(settings)
    # The SDK answers missing methods with an error; forking and closing sessions is still marked unstable.
    agent = cast(AcpAgent, SutureAgent(settings, flags, test))
    asyncio.run(run_agent(agent, use_unstable_protocol=True))


class SutureAgent:
    """Answers the requests of one client."""

    def __init__(self, settings: Settings, flags: Mapping[str, object], test: str | None) -> None:
        self._settings, self._flags, self._test = settings, flags, test
        self._sessions = SessionStore(settings.paths.home)
        self._client: Client | None = None
        self._can_read_files = False
        self._background_tasks: set[asyncio.Task[None]] = set()

    def on_connect(self, conn: Client) -> None:
        """Store the connection to the client."""
        self._client = conn

    async def initialize(
        self, protocol_version: int, client_capabilities: ClientCapabilities | None = None, **_: Any
    ) -> InitializeResponse:
        """Return the agent's capabilities."""
        files = client_capabilities.fs if client_capabilities is not None else None
        self._can_read_files = bool(files is not None and files.read_text_file)
        return InitializeResponse(
            protocol_version=min(protocol_version, PROTOCOL_VERSION),
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(embedded_context=True),
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities(),
                    fork=SessionForkCapabilities(),
                    close=SessionCloseCapabilities(),
                ),
            ),
            agent_info=Implementation(name="suture", title="Suture", version=version("suture")),
            auth_methods=[],
        )

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        """Start a session about a folder."""
        session = self._sessions.new(_require_folder(cwd), self._settings.loop.autonomy)
        self._run_later(self._offer_commands(session))
        return NewSessionResponse(session_id=session.id, modes=_session_modes(session))

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> LoadSessionResponse:
        """Reopen a session and replay everything that happened in it."""
        folder = _require_folder(cwd)
        try:
            session = self._load_session(session_id, folder, remedy="load it there")
            await self._new_turn(session).replay_history()
        except SutureError as fault:
            raise _request_error(fault) from fault
        self._run_later(self._offer_commands(session))
        return LoadSessionResponse(modes=_session_modes(session))

    async def fork_session(self, cwd: str, session_id: str, **_: Any) -> ForkSessionResponse:
        """Start a new session that includes the runs of another one so far."""
        folder = _require_folder(cwd)
        try:
            original = self._load_session(session_id, folder, remedy="fork it there")
            session = self._sessions.new(folder, original.mode)
            for run in original.runs:
                self._sessions.add_run(session, run)
        except SutureError as fault:
            raise _request_error(fault) from fault
        self._run_later(self._offer_commands(session))
        return ForkSessionResponse(session_id=session.id, modes=_session_modes(session))

    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:
        """Close a session and stop its run; it can be loaded again."""
        session = self._open_session(session_id)
        if session.work is not None:
            await self.cancel(session_id)
            await asyncio.wait([session.work])
        self._sessions.close(session)
        return CloseSessionResponse()

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_: Any
    ) -> ListSessionsResponse:
        """Return the stored sessions, newest first."""
        folder = _require_folder(cwd) if cwd else None
        sessions = [
            SessionInfo(session_id=session.id, cwd=str(session.cwd), title=f"{len(session.runs)} run(s)")
            for session in self._sessions.list_newest()
            if folder in (None, session.cwd)
        ]
        return ListSessionsResponse(sessions=sessions)

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> SetSessionModeResponse:
        """Change when the user is asked, from the next run on."""
        if mode_id not in SESSION_MODES:
            raise RequestError(
                INVALID_PARAMS, f"there is no mode {mode_id!r:.80}; one of: {', '.join(SESSION_MODES)}"
            )
        self._open_session(session_id).mode = mode_id
        return SetSessionModeResponse()

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        """Execute what the user asks for; a cancelled run is recorded before this returns."""
        session = self._open_session(session_id)
        if session.work is not None:
            raise RequestError(
                INVALID_PARAMS, "this session is still answering another prompt; cancel it or wait"
            )
        session.work = work = asyncio.create_task(self._new_turn(session).answer(_prompt_text(prompt)))
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError:
            work.cancel()
            await asyncio.wait([work])
            raise
        finally:
            session.work = None
        if work.cancelled():
            return PromptResponse(stop_reason="cancelled")
        try:
            work.result()
        except SutureError as fault:
            raise _request_error(fault) from fault
        return PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Stop the session's current work; repeated requests have no further effect."""
        work = self._open_session(session_id).work
        if work is not None and not work.cancelling():
            work.cancel()

    def _open_session(self, session_id: str) -> Session:
        try:
            return self._sessions.open(session_id)
        except UsageError as fault:
            raise _request_error(fault) from fault

    def _load_session(self, session_id: str, folder: Path, *, remedy: str) -> Session:
        session = self._sessions.load(session_id, self._settings.loop.autonomy)
        if session.cwd != folder:
            raise UsageError(f"the session belongs to {str(session.cwd)!r}", remedy=remedy)
        return session

    def _new_turn(self, session: Session) -> PromptTurn:
        assert self._client is not None  # set before the first message
        return PromptTurn(
            settings=self._settings,
            flags=self._flags,
            test=self._test,
            sessions=self._sessions,
            session=session,
            client=self._client,
            can_read_files=self._can_read_files,
        )

    async def _offer_commands(self, session: Session) -> None:
        hint = AvailableCommandInput(root=UnstructuredCommandInput(hint="describe it in your own words"))
        commands = [
            AvailableCommand(
                name=name, description=description, input=hint if name in ("heal", "write") else None
            )
            for name, description in COMMANDS.items()
        ]
        await self._new_turn(session).send(update_available_commands(commands))

    def _run_later(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine after the current response, before which the client does not know the session."""
        task = asyncio.create_task(work)
        self._background_tasks.add(task)
        task.add_done_callback(self._background_tasks.discard)


def _session_modes(session: Session) -> SessionModeState:
    modes = [
        SessionMode(id=mode_id, name=title, description=description)
        for mode_id, (title, description) in SESSION_MODES.items()
    ]
    return SessionModeState(current_mode_id=session.mode, available_modes=modes)


def _require_folder(cwd: str) -> Path:
    try:
        folder = Path(cwd)
        if folder.is_absolute() and folder.is_dir():
            return folder.resolve()
    except (OSError, ValueError):
        pass
    raise RequestError(INVALID_PARAMS, f"{cwd!r:.200} is not a folder; use an absolute path")


def _prompt_text(prompt: list[Any]) -> str:
    """Return the text of a prompt, with the files that it contains or links to."""
    parts: list[str] = []
    for block in prompt:
        match block:
            case TextContentBlock(text=text):
                parts.append(text)
            case ResourceContentBlock(name=name, uri=uri):
                parts.append(f"See {name or uri}.")
            case EmbeddedResourceContentBlock(resource=TextResourceContents(uri=uri, text=text)):
                parts.append(f"{uri}:\n{text}")
            case _:
                raise RequestError(INVALID_PARAMS, "a prompt can only contain text, links to files, or files")
    return "\n".join(parts)


def _request_error(fault: SutureError) -> RequestError:
    """Return Suture's error as a protocol error, with the message and remedy of the command line."""
    message = f"{fault.message}; try: {fault.remedy}" if fault.remedy else fault.message
    code = INVALID_PARAMS if fault.exit_code == UsageError.exit_code else INTERNAL_ERROR
    return RequestError(code, message)
