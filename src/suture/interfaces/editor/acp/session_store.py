"""The sessions of the agent, each stored in a file with its folder and its runs."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from suture.core.ledger import RunFolder, new_run_id
from suture.core.ledger.run_folder import PRIVATE_FOLDER_MODE
from suture.core.safe_files import read_regular_file, write_file_atomically
from suture.errors import StorageError, UsageError, describe_fault
from suture.interfaces.editor.tuning import MAX_LISTED_SESSIONS, MAX_SESSION_FILE_BYTES
from suture.interfaces.jobs.job import RUN_ID

SESSION_ID = re.compile(RUN_ID)
"""Ids of sessions and of runs have the same form."""


@dataclass(kw_only=True)
class Session:
    """A conversation about one folder.

    Attributes:
        id: An id like that of a run.
        mode: When the user is asked, as the setting `loop.autonomy`.
        runs: The ids of its runs, oldest first.
        work: The prompt that is being answered.
    """

    id: str
    cwd: Path
    mode: str
    runs: list[str] = field(default_factory=list)
    work: asyncio.Task[Any] | None = None


class SessionStore:
    """All sessions of one home."""

    def __init__(self, home: Path) -> None:
        self._home, self._folder = home, home / "sessions"
        self._open: dict[str, Session] = {}

    def new(self, cwd: Path, mode: str) -> Session:
        """Start a session. It is stored when it gets its first run."""
        session = Session(id=new_run_id(), cwd=cwd, mode=mode)
        self._open[session.id] = session
        return session

    def open(self, session_id: str) -> Session:
        """Return a session that this process has started or loaded.

        Raises:
            UsageError: There is no such session.
        """
        if session_id not in self._open:
            raise UsageError(f"there is no session {session_id!r:.80}", remedy="start or load a session")
        return self._open[session_id]

    def close(self, session: Session) -> None:
        """Close a session; its stored data stays."""
        self._open.pop(session.id, None)

    def load(self, session_id: str, mode: str) -> Session:
        """Return an open session, or load one that an earlier process has stored.

        Raises:
            UsageError: There is no such session.
            StorageError: Its file is damaged.
        """
        if session_id in self._open:
            return self._open[session_id]
        session = None
        if SESSION_ID.fullmatch(session_id):
            session = self._read_session(self._folder / f"{session_id}.json")
        if session is None:
            raise UsageError(f"there is no session {session_id!r:.80}", remedy="start a new session")
        session.mode = mode
        self._open[session_id] = session
        return session

    def list_newest(self) -> list[Session]:
        """Return the stored sessions, newest first; damaged ones are skipped."""
        sessions: list[Session] = []
        for path in sorted(self._folder.glob("*.json"), reverse=True)[:MAX_LISTED_SESSIONS]:
            with suppress(StorageError):
                if (session := self._read_session(path)) is not None:
                    sessions.append(session)
        return sessions

    def add_run(self, session: Session, run: str) -> None:
        """Store that a run belongs to a session."""
        if run in session.runs:
            return
        session.runs.append(run)
        try:
            self._folder.mkdir(mode=PRIVATE_FOLDER_MODE, parents=True, exist_ok=True)
        except OSError as fault:
            raise StorageError(
                f"the folder {str(self._folder)!r} cannot be created: {fault.strerror}"
            ) from fault
        content = json.dumps({"cwd": str(session.cwd), "runs": session.runs}).encode()
        write_file_atomically(self._folder / f"{session.id}.json", content)

    def load_runs(self, session: Session) -> list[RunFolder]:
        """Return the folders of a session's runs that have a ledger."""
        folders = (RunFolder(self._home / "runs" / run) for run in session.runs)
        return [folder for folder in folders if folder.ledger_path.is_file()]

    def _read_session(self, path: Path) -> Session | None:
        try:
            content = read_regular_file(path, MAX_SESSION_FILE_BYTES)
            if content is None:
                return None
            values = json.loads(content)
            runs = [run for run in values["runs"] if SESSION_ID.fullmatch(run)]
            return Session(id=path.stem, cwd=Path(values["cwd"]), mode="", runs=runs)
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as fault:
            raise StorageError(
                f"the session's file {str(path)!r} cannot be read: {describe_fault(fault)}"
            ) from fault
