"""The log of changed runs, by which the database finds the ledgers that changed without comparing those of all runs.

`changed-runs.log`, beside the folder of runs, begins with a random line. Whoever opens a ledger for writing appends the
id of its run while it has locked the ledger, before it writes. So a run without a new line has changed only if another
program changed its files, and a logged run whose ledger is not locked has been written completely.
"""

from __future__ import annotations

import os
import re
import secrets
import zlib
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

LEDGER_FILE = "ledger.jsonl"
RUNS_FOLDER = "runs"
CHANGE_LOG = "changed-runs.log"
LOGGED_RUN = re.compile(rb"[^/\0]{1,255}")
CHECKED_BYTES = 100
"""Bytes at the beginning of the log and before a position by which the log is known again. The end may differ after a
power cut."""
RECENT_BYTES = 2**16
"""Bytes at the end of a log of which nothing is known yet. Whoever has a ledger of a finished run open, to apply its
change, opened it less than some 2,000 openings ago."""


@dataclass(frozen=True, kw_only=True)
class LogPosition:
    """A position in a change log: its offset in bytes, and the checksum of what precedes it."""

    offset: int
    checksum: int


@dataclass(frozen=True, kw_only=True)
class LoggedChanges:
    """The runs whose ledgers were opened for writing, up to the end of the log.

    Attributes:
        is_complete: Whether these are all since the position that was asked for; otherwise they are the last ones.
    """

    runs: frozenset[str]
    end: LogPosition
    is_complete: bool


def log_change(ledger_path: Path) -> None:
    """Append a run to the log of its home. The caller has locked the ledger and has not written to it yet.

    A ledger outside of a folder of runs is not logged.

    Raises:
        OSError: The log cannot be written.
    """
    run = ledger_path.parent
    if run.parent.name != RUNS_FOLDER:
        return
    lines = os.fsencode(run.name) + b"\n"
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    descriptor = os.open(run.parent.with_name(CHANGE_LOG), flags, 0o600)
    try:
        if os.fstat(descriptor).st_size == 0:
            # If two processes find this at once, there is a second such line.
            lines = f"{secrets.token_hex(16)}\n".encode() + lines
        os.write(descriptor, lines)
        os.fsync(descriptor)  # a power cut must not lose the line of a change that is on disk
    finally:
        os.close(descriptor)


def read_changes(home: Path, since: LogPosition | None) -> LoggedChanges:
    """Return the runs that were logged after a position; without one, or in another log, the last ones."""
    try:
        with (home / CHANGE_LOG).open("rb") as file:
            is_complete = since is not None and _checksum(file, since.offset) == since.checksum
            start = since.offset if since is not None and is_complete else 0
            if not is_complete:
                start = max(0, os.fstat(file.fileno()).st_size - RECENT_BYTES)
            file.seek(start)
            lines = file.read()
            lines = lines[: lines.rfind(b"\n") + 1]
            end = start + len(lines)
            position = LogPosition(offset=end, checksum=_checksum(file, end))
    except FileNotFoundError:
        is_complete = since is not None and since.offset == 0
        return LoggedChanges(runs=frozenset(), end=LogPosition(offset=0, checksum=0), is_complete=is_complete)
    runs = frozenset(os.fsdecode(line) for line in lines.splitlines() if LOGGED_RUN.fullmatch(line))
    return LoggedChanges(runs=runs, end=position, is_complete=is_complete)


def count_run_folders(home: Path, limit: int) -> int:
    """Return the number of folders of runs, some of which may have no ledger; counting stops at a limit."""
    try:
        with os.scandir(home / RUNS_FOLDER) as folders:
            return sum(1 for _ in islice(folders, limit))
    except (FileNotFoundError, NotADirectoryError):
        return 0


def _checksum(file: IO[bytes], offset: int) -> int:
    """Return a checksum of the beginning of a log and of what precedes an offset."""
    file.seek(0)
    beginning = file.read(min(CHECKED_BYTES, offset))
    file.seek(max(0, offset - CHECKED_BYTES))
    return zlib.crc32(file.read(min(CHECKED_BYTES, offset)), zlib.crc32(beginning))
