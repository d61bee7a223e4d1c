"""The run folder: one ledger, blobs and replies by hash."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from suture.core.ledger.reading import MOST_VALUES, REMEDY, values_in
from suture.core.records import decode_record
from suture.core.safe_files import read_regular_file, write_file_atomically
from suture.errors import StorageError, UsageError

RecordT = TypeVar("RecordT")

DIGEST = re.compile(r"[0-9a-f]{64}")
MOST_BLOB_BYTES = 256 * 2**20
"""Somebody else's run may hold a file of any length; a task with all its files, 64 MiB, has less."""
MOST_START_BYTES = 64 * 2**10
"""Of the first line of a ledger, which says what the run is of."""
PRIVATE = 0o700
"""A run holds the user's code, the prompts and the replies."""


class RunFolder:
    """Everything one run leaves on disk.

    Args:
        path: The folder; its name is the run's id.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    @property
    def id(self) -> str:
        """The run's id."""
        return self.path.name

    @property
    def ledger_path(self) -> Path:
        """The JSON lines of the ledger."""
        return self.path / "ledger.jsonl"

    @property
    def replies_path(self) -> Path:
        """Where the model's replies lie, by call hash."""
        return self.path / "replies"

    def put_blob(self, content: bytes) -> str:
        """Store bytes once; answers their SHA-256.

        Raises:
            StorageError: The disk is full or gone.
        """
        digest = hashlib.sha256(content).hexdigest()
        target = self.path / "blobs" / digest
        if not target.exists():
            write_file_atomically(target, content)
        return digest

    def get_blob(self, digest: str) -> bytes:
        """Read bytes back.

        Raises:
            StorageError: They are not there, or are not what was stored.
        """
        if not isinstance(digest, str) or not DIGEST.fullmatch(digest):
            raise StorageError(f"run {self.id!r} names a blob {digest!r:.80}, which is no hash")
        try:
            content = read_regular_file(self.path / "blobs" / digest, MOST_BLOB_BYTES)
        except OSError as fault:
            raise StorageError(
                f"blob {digest!r} of run {self.id!r} cannot be read: {fault.strerror}"
            ) from fault
        if content is None:
            raise StorageError(f"blob {digest!r} of run {self.id!r} cannot be read: it is no regular file")
        if hashlib.sha256(content).hexdigest() != digest:
            raise StorageError(f"blob {digest!r} of run {self.id!r} was changed on disk")
        return content

    def put_json(self, value: Any) -> str:
        """Store a JSON value as a blob; answers its hash."""
        return self.put_blob(json.dumps(value, sort_keys=True).encode("ascii"))

    def get_json(self, digest: str) -> Any:
        """Read a JSON value back.

        Raises:
            StorageError: It is not there, is no JSON, or holds more than any value of ours.
        """
        content = self.get_blob(digest)
        if values_in(content) > MOST_VALUES:
            what = f"blob {digest!r} of run {self.id!r}"
            raise StorageError(f"{what} cannot be read: it holds more than {MOST_VALUES:,} values")
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as fault:
            raise StorageError(f"blob {digest!r} of run {self.id!r} is no JSON: {fault}") from fault

    def get_record(self, cls: type[RecordT], digest: str) -> RecordT:
        """Read a record back that `encode_record` made a JSON value of.

        Raises:
            StorageError: It is not there, or is no such record.
        """
        plain = self.get_json(digest)
        try:
            return decode_record(cls, plain if isinstance(plain, Mapping) else {})
        except (ValueError, TypeError) as fault:
            what = f"blob {digest!r} of run {self.id!r}"
            raise StorageError(f"{what} is no {cls.__name__}: {fault}", remedy=REMEDY) from fault

    def write_text(self, name: str, text: str) -> Path:
        """Write a file for people, such as `result.diff`; answers its path.

        Raises:
            StorageError: The disk is full or gone.
        """
        try:
            content = text.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:  # half a surrogate pair, as a model may write it
            content = text.encode("utf-8", "backslashreplace")
        write_file_atomically(self.path / name, content)
        return self.path / name


def new_run_id(now_s: float | None = None) -> str:
    """An id that no other run has; ids sort by time."""
    now_s = time.time() if now_s is None else now_s
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now_s))
    return f"{stamp}{int(now_s * 1000) % 1000:03d}-{secrets.token_hex(3)}"


def new_run(home: Path, *, now_s: float | None = None, run_id: str = "") -> RunFolder:
    """Make the folder of a new run under `home`. What it makes only its owner can read.

    Args:
        home: The folder of all runs' folder.
        now_s: The time, in seconds since the epoch.
        run_id: What the run is called, where that was said beforehand (`new_run_id`).

    Raises:
        StorageError: The folder cannot be made.
    """
    folder = home / "runs" / (run_id or new_run_id(now_s))
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        home.mkdir(mode=PRIVATE, exist_ok=True)
        folder.parent.mkdir(mode=PRIVATE, exist_ok=True)
        folder.mkdir(mode=PRIVATE)
    except OSError as fault:
        raise StorageError(
            f"the run folder {str(folder)!r} cannot be made: {fault.strerror}",
            remedy="set SUTURE_HOME to a folder that you can write",
        ) from fault
    return RunFolder(folder)


def list_runs(home: Path) -> list[RunFolder]:
    """All runs under `home`, oldest first."""
    runs = home / "runs"
    if not runs.is_dir():
        return []
    return [RunFolder(path) for path in sorted(runs.iterdir()) if (path / "ledger.jsonl").is_file()]


def find_run(home: Path, name: str) -> RunFolder:
    """The run called `name`: an id, the unique start or end of one, `last` or `newest`.

    `last` is the last run of the project around the current folder, where it has any; else the newest of all.
    A replay only looks at a run again, and is neither `last` nor `newest`.

    Raises:
        UsageError: There is no such run, or more than one.
    """
    runs = list_runs(home)
    if not runs:
        raise UsageError(
            f"there are no runs under {str(home)!r}", remedy="start one with `suture run --example`"
        )
    if name in ("last", "newest"):
        return _newest(runs, of_this_project=name == "last")
    if not name:
        raise UsageError("the name of the run is empty", remedy="see `suture show --list`")
    found = [run for run in runs if run.id.startswith(name) or run.id.endswith(name)]
    if len(found) == 1:
        return found[0]
    what = "no run" if not found else f"{len(found)} runs"
    raise UsageError(f"{what} called {name!r} under {str(home)!r}", remedy="see `suture show --list`")


def _newest(runs: list[RunFolder], *, of_this_project: bool) -> RunFolder:
    """The newest run that is no replay; one of this project's before all others, where that is wanted."""
    own: RunFolder | None = None
    for run in reversed(runs):
        replays, project = _beginning(run)
        if replays:
            continue
        own = own or run
        if not of_this_project or (project and Path.cwd().resolve().is_relative_to(Path(project).resolve())):
            return run
    return own or runs[-1]


def _beginning(run: RunFolder) -> tuple[str, str]:
    """The run that a run does again, and the project it is of; a ledger begins with both."""
    try:
        first = (read_regular_file(run.ledger_path, MOST_START_BYTES) or b"").partition(b"\n")[0]
        data = json.loads(first)["data"]
        return str(data.get("replays") or ""), str(data.get("project") or "")
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return "", ""  # damaged, or older than these keys
