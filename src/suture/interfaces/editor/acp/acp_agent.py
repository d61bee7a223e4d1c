"""The agent itself: what the protocol asks of it, each answered from a session."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from acp import PROTOCOL_VERSION, RequestError, run_agent
from acp.helpers import update_available_commands
from acp.interfaces import Agent as AnyAgent
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
from suture.interfaces.editor.acp.prompt_turn import COMMANDS, Turn
from suture.interfaces.editor.acp.session_store import Session, Sessions
from suture.interfaces.jobs.job_execution import require_sandbox

INVALID, FAILED = -32602, -32603
"""JSON-RPC's codes for what the client can set right, and for what it cannot."""
MODES = {
    "full_auto": ("Ask nothing", "Nobody is asked before the end"),
    "review_repairs": ("Ask before repairs", "You are asked before each repair"),
    "review_all": ("Ask before each step", "You are asked before each round, and at the end"),
}


def serve(settings: Settings, flags: Mapping[str, object], test: str | None) -> None:
    """Talk to a client on stdin and stdout until it goes away.

    Args:
        settings: The agent's own.
        flags: Those of them that were said on the command line.
        test: The test command of the projects; what their files show where not given.

    Raises:
        UsageError: There would be no sandbox.
    """
    require_sandbox(settings)
    # What it has not, the SDK answers as a method that is not there; forks and ends of sessions it calls new.
    agent = cast(AnyAgent, Agent(settings, flags, test))
    asyncio.run(run_agent(agent, use_unstable_protocol=True))


class Agent:
    """Answers one client."""

    def __init__(self, settings: Settings, flags: Mapping[str, object], test: str | None) -> None:
        self._settings, self._flags, self._test = settings, flags, test
        self._sessions = Sessions(settings.paths.home)
        self._client: Client | None = None
        self._reads = False
        self._later: set[asyncio.Task[None]] = set()

    def on_connect(self, conn: Client) -> None:
        """Keep whom to talk to."""
        self._client = conn

    async def initialize(
        self, protocol_version: int, client_capabilities: ClientCapabilities | None = None, **_: Any
    ) -> InitializeResponse:
        """Say what this agent can do."""
        files = client_capabilities.fs if client_capabilities is not None else None
        self._reads = bool(files is not None and files.read_text_file)
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
        """Begin a conversation about a folder."""
        session = self._sessions.new(_folder(cwd), self._settings.loop.autonomy)
        self._soon(self._offer(session))
        return NewSessionResponse(session_id=session.id, modes=_modes(session))

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> LoadSessionResponse:
        """Go on with a conversation, and tell all that happened in it."""
        folder = _folder(cwd)
        try:
            session = self._sessions.load(session_id, self._settings.loop.autonomy)
            if session.cwd != folder:
                raise UsageError(f"the session is about {str(session.cwd)!r}", remedy="load it there")
            await self._turn(session).tell_again()
        except SutureError as fault:
            raise _refused(fault) from fault
        self._soon(self._offer(session))
        return LoadSessionResponse(modes=_modes(session))

    async def fork_session(self, cwd: str, session_id: str, **_: Any) -> ForkSessionResponse:
        """Begin another conversation that knows the runs of one so far."""
        folder = _folder(cwd)
        try:
            earlier = self._sessions.load(session_id, self._settings.loop.autonomy)
            if earlier.cwd != folder:
                raise UsageError(f"the session is about {str(earlier.cwd)!r}", remedy="fork it there")
            session = self._sessions.new(folder, earlier.mode)
            for run in earlier.runs:
                self._sessions.add_run(session, run)
        except SutureError as fault:
            raise _refused(fault) from fault
        self._soon(self._offer(session))
        return ForkSessionResponse(session_id=session.id, modes=_modes(session))

    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:
        """End a conversation: what goes on in it is stopped; it can be loaded again."""
        session = self._open(session_id)
        if session.work is not None:
            await self.cancel(session_id)
            await asyncio.wait([session.work])
        self._sessions.close(session)
        return CloseSessionResponse()

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_: Any
    ) -> ListSessionsResponse:
        """The conversations that can be gone on with, the newest first."""
        wanted = _folder(cwd) if cwd else None
        kept = (one for one in self._sessions.newest() if wanted in (None, one.cwd))
        sessions = [
            SessionInfo(session_id=one.id, cwd=str(one.cwd), title=f"{len(one.runs)} run(s)") for one in kept
        ]
        return ListSessionsResponse(sessions=sessions)

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> SetSessionModeResponse:
        """Change when the user is asked, from the next run on."""
        if mode_id not in MODES:
            raise RequestError(INVALID, f"there is no mode {mode_id!r:.80}; one of: {', '.join(MODES)}")
        self._open(session_id).mode = mode_id
        return SetSessionModeResponse()

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        """Do what the user asks for; a run that is cancelled is written down first."""
        session = self._open(session_id)
        if session.work is not None:
            raise RequestError(INVALID, "this session is answering another prompt; cancel it, or wait")
        session.work = work = asyncio.create_task(self._turn(session).answer(_text_of(prompt)))
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
            raise _refused(fault) from fault
        return PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Stop what goes on in a session; told twice, it is stopped once."""
        work = self._open(session_id).work
        if work is not None and not work.cancelling():
            work.cancel()

    def _open(self, name: str) -> Session:
        try:
            return self._sessions.open(name)
        except UsageError as fault:
            raise _refused(fault) from fault

    def _turn(self, session: Session) -> Turn:
        assert self._client is not None  # it is there before the first message
        return Turn(
            settings=self._settings,
            flags=self._flags,
            test=self._test,
            sessions=self._sessions,
            session=session,
            client=self._client,
            reads=self._reads,
        )

    async def _offer(self, session: Session) -> None:
        hint = AvailableCommandInput(root=UnstructuredCommandInput(hint="in your words"))
        commands = [
            AvailableCommand(name=name, description=what, input=hint if name in ("heal", "write") else None)
            for name, what in COMMANDS.items()
        ]
        await self._turn(session).send(update_available_commands(commands))

    def _soon(self, work: Coroutine[Any, Any, None]) -> None:
        """After the answer that is being made: a client knows a session only then."""
        task = asyncio.create_task(work)
        self._later.add(task)
        task.add_done_callback(self._later.discard)


def _modes(session: Session) -> SessionModeState:
    modes = [SessionMode(id=name, name=title, description=what) for name, (title, what) in MODES.items()]
    return SessionModeState(current_mode_id=session.mode, available_modes=modes)


def _folder(cwd: str) -> Path:
    try:
        folder = Path(cwd)
        if folder.is_absolute() and folder.is_dir():
            return folder.resolve()
    except (OSError, ValueError):
        pass
    raise RequestError(INVALID, f"{cwd!r:.200} is no folder; name one by its whole path")


def _text_of(prompt: list[Any]) -> str:
    """What a prompt says: its words, and what it brings along or points at."""
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
                raise RequestError(INVALID, "a prompt is text, links to files, or files")
    return "\n".join(parts)


def _refused(fault: SutureError) -> RequestError:
    """A fault of ours as the protocol has it: in the command line's words, with the remedy."""
    message = f"{fault.message}; try: {fault.remedy}" if fault.remedy else fault.message
    return RequestError(INVALID if fault.exit_code == UsageError.exit_code else FAILED, message)
