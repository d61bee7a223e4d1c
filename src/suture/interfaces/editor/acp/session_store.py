"""Sessions: which folder each is about, and which runs it had; a file for each, so that it can be loaded."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from suture.core.ledger import RunFolder, new_run_id
from suture.core.safe_files import read_plain, write_atomically
from suture.errors import StorageError, UsageError

ID = re.compile(r"[0-9]{8}-[0-9]{9}-[0-9a-f]{6}")
MOST_BYTES = 2**20
MOST_LISTED = 50
PRIVATE = 0o700
"""The mode of a folder that nobody else may look into."""


@dataclass(kw_only=True)
class Session:
    """A conversation about one folder.

    Attributes:
        id: As ids of runs are.
        cwd: The folder, absolute.
        mode: When the user is asked, as the setting `loop.autonomy`.
        runs: Ids of its runs, oldest first.
        work: The prompt that is being answered.
    """

    id: str
    cwd: Path
    mode: str
    runs: list[str] = field(default_factory=list)
    work: asyncio.Task[Any] | None = None


class Sessions:
    """All sessions of one home.

    Args:
        home: Where runs are kept.
    """

    def __init__(self, home: Path) -> None:
        self._home, self._folder = home, home / "sessions"
        self._open: dict[str, Session] = {}

    def new(self, cwd: Path, mode: str) -> Session:
        """Begin one. It is kept from its first run on."""
        session = Session(id=new_run_id(), cwd=cwd, mode=mode)
        self._open[session.id] = session
        return session

    def open(self, name: str) -> Session:
        """One that was begun or loaded by this process.

        Raises:
            UsageError: There is none.
        """
        if name not in self._open:
            raise UsageError(f"there is no session {name!r:.80}", remedy="begin or load one")
        return self._open[name]

    def close(self, session: Session) -> None:
        """Forget one here; what is kept of it stays."""
        self._open.pop(session.id, None)

    def load(self, name: str, mode: str) -> Session:
        """One that is open, or that an earlier process has kept.

        Raises:
            UsageError: There is none.
            StorageError: Its file is damaged.
        """
        if name in self._open:
            return self._open[name]
        kept = self._kept(self._folder / f"{name}.json") if ID.fullmatch(name) else None
        if kept is None:
            raise UsageError(f"there is no session {name!r:.80}", remedy="begin a new one")
        self._open[name] = session = Session(id=name, cwd=kept.cwd, mode=mode, runs=kept.runs)
        return session

    def newest(self) -> list[Session]:
        """Those that are kept, the newest first; a damaged one hides no other."""
        found: list[Session] = []
        for path in sorted(self._folder.glob("*.json"), reverse=True)[:MOST_LISTED]:
            try:
                kept = self._kept(path)
            except StorageError:
                continue
            if kept is not None:
                found.append(kept)
        return found

    def add_run(self, session: Session, run: str) -> None:
        """Keep that a run is one of a session's.

        Raises:
            StorageError: It cannot be written.
        """
        if run in session.runs:
            return
        session.runs.append(run)
        try:
            self._folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        except OSError as fault:
            raise StorageError(
                f"the folder {str(self._folder)!r} cannot be made: {fault.strerror}"
            ) from fault
        plain = {"cwd": str(session.cwd), "runs": session.runs}
        write_atomically(self._folder / f"{session.id}.json", json.dumps(plain).encode())

    def runs_of(self, session: Session) -> list[RunFolder]:
        """Those of a session's runs of which anything is written down."""
        folders = (RunFolder(self._home / "runs" / run) for run in session.runs)
        return [folder for folder in folders if folder.ledger_path.is_file()]

    def _kept(self, path: Path) -> Session | None:
        try:
            content = read_plain(path, MOST_BYTES)
            if content is None:
                return None
            plain = json.loads(content)
            runs = [run for run in plain["runs"] if ID.fullmatch(run)]
            return Session(id=path.stem, cwd=Path(plain["cwd"]), mode="", runs=runs)
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as fault:
            raise StorageError(f"the session's file {str(path)!r} cannot be read: {fault}") from fault
