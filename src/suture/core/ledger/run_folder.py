"""The run folder, which holds everything that is recorded of one run: its ledger, blobs and replies."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import stat
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from suture.core.change_log import LEDGER_FILE
from suture.core.codec import decode_record, encode_record
from suture.core.ledger.reading import DAMAGED_RUN_REMEDY, count_json_values
from suture.core.safe_files import read_regular_file, write_file_atomically
from suture.core.tuning import MAX_BLOB_BYTES, MAX_FIRST_EVENT_BYTES, MAX_JSON_VALUES
from suture.errors import StorageError, UsageError

RecordT = TypeVar("RecordT")

RUN_ID = re.compile(r"[\w-]{1,100}", re.ASCII)
DIGEST = re.compile(r"[0-9a-f]{64}")
PRIVATE_FOLDER_MODE = 0o700
"""Mode of a folder that only its owner may read: a run holds the user's code, the prompts and the replies."""


class RunFolder:
    """Reads and writes the files of one run.

    Large values are stored as blobs: files that are named by the SHA-256 of their content, the digest.

    Args:
        path: The folder. Its name is the id of the run.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    @property
    def id(self) -> str:
        """The id of the run."""
        return self.path.name

    @property
    def ledger_path(self) -> Path:
        """The ledger, as JSON lines."""
        return self.path / LEDGER_FILE

    @property
    def replies_path(self) -> Path:
        """The folder of the model's replies, named by the hash of the call."""
        return self.path / "replies"

    def save_blob(self, content: bytes) -> str:
        """Store bytes as a blob and return its digest.

        Raises:
            StorageError: The disk is full or missing.
        """
        digest = hashlib.sha256(content).hexdigest()
        target = self.path / "blobs" / digest
        if not target.exists():
            write_file_atomically(target, content)
        return digest

    def load_blob(self, digest: str) -> bytes:
        """Return the content of a blob.

        Raises:
            StorageError: The blob is missing, or its content was changed.
        """
        if not isinstance(digest, str) or not DIGEST.fullmatch(digest):
            raise StorageError(f"run {self.id!r} names a blob {digest!r:.80}, which is no hash")
        try:
            content = read_regular_file(self.path / "blobs" / digest, MAX_BLOB_BYTES)
        except OSError as fault:
            raise StorageError(
                f"blob {digest!r} of run {self.id!r} cannot be read: {fault.strerror}"
            ) from fault
        if content is None:
            raise StorageError(f"blob {digest!r} of run {self.id!r} cannot be read: it is not a regular file")
        if hashlib.sha256(content).hexdigest() != digest:
            raise StorageError(f"blob {digest!r} of run {self.id!r} was changed on disk")
        return content

    def save_json(self, value: Any) -> str:
        """Store a JSON value as a blob and return its digest."""
        return self.save_blob(json.dumps(value, sort_keys=True).encode("ascii"))

    def load_json(self, digest: str) -> Any:
        """Return the JSON value in a blob.

        Raises:
            StorageError: The blob is missing, is not JSON, or holds more values than Suture ever writes.
        """
        content = self.load_blob(digest)
        if count_json_values(content) > MAX_JSON_VALUES:
            what = f"blob {digest!r} of run {self.id!r}"
            raise StorageError(f"{what} cannot be read: it holds more than {MAX_JSON_VALUES:,} values")
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as fault:
            raise StorageError(f"blob {digest!r} of run {self.id!r} is no JSON: {fault}") from fault

    def save_record(self, record: Any) -> str:
        """Store a record as a blob and return its digest."""
        return self.save_json(encode_record(record))

    def load_record(self, cls: type[RecordT], digest: str) -> RecordT:
        """Return the record in a blob.

        Raises:
            StorageError: The blob is missing, or is not such a record.
        """
        data = self.load_json(digest)
        try:
            return decode_record(cls, data if isinstance(data, Mapping) else {})
        except (ValueError, TypeError) as fault:
            what = f"blob {digest!r} of run {self.id!r}"
            raise StorageError(f"{what} is no {cls.__name__}: {fault}", remedy=DAMAGED_RUN_REMEDY) from fault

    def write_text(self, name: str, text: str) -> Path:
        """Write a file for people, such as `result.diff`, and return its path.

        Raises:
            StorageError: The disk is full or missing.
        """
        try:
            content = text.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:  # a lone surrogate, as a model may write it
            content = text.encode("utf-8", "backslashreplace")
        write_file_atomically(self.path / name, content)
        return self.path / name


def new_run_id(now_s: float | None = None) -> str:
    """Return a new run id, made of the time and a random part. Ids sort by time.

    Args:
        now_s: The time, in seconds since the epoch. By default, the present.
    """
    now_s = time.time() if now_s is None else now_s
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now_s))
    return f"{stamp}{int(now_s * 1000) % 1000:03d}-{secrets.token_hex(3)}"


def new_run(home: Path, *, now_s: float | None = None, run_id: str = "") -> RunFolder:
    """Create the folder of a new run. Only its owner can read it.

    Args:
        home: Folder of Suture's state.
        now_s: The time for the id, in seconds since the epoch. By default, the present.
        run_id: Id of the run. By default, a new one from `new_run_id`.

    Raises:
        StorageError: The folder cannot be created.
    """
    folder = home / "runs" / (run_id or new_run_id(now_s))
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        home.mkdir(mode=PRIVATE_FOLDER_MODE, exist_ok=True)
        folder.parent.mkdir(mode=PRIVATE_FOLDER_MODE, exist_ok=True)
        folder.mkdir(mode=PRIVATE_FOLDER_MODE)
    except OSError as fault:
        raise StorageError(
            f"the run folder {str(folder)!r} cannot be made: {fault.strerror}",
            remedy="set SUTURE_HOME to a folder that you can write",
        ) from fault
    return RunFolder(folder)


LedgerStamp = tuple[int, int]
"""The size of a ledger in bytes, and the time of its last change in ns. If neither differs, it is the same."""


def stamp_ledgers(home: Path) -> dict[str, LedgerStamp]:
    """Return the id of each run below `home` -> the stamp of its ledger, the oldest run first."""
    stamps: dict[str, LedgerStamp] = {}
    runs = f"{home}/runs"  # there may be 100,000, for which paths as objects take too long
    try:
        names = sorted(os.listdir(runs))  # noqa: PTH208
    except (FileNotFoundError, NotADirectoryError):
        return stamps
    for name in names:
        try:
            found = os.stat(f"{runs}/{name}/{LEDGER_FILE}")  # noqa: PTH116
        except OSError:
            continue  # a folder without a ledger is not a run
        if stat.S_ISREG(found.st_mode):
            stamps[name] = found.st_size, found.st_mtime_ns
    return stamps


def list_runs(home: Path) -> list[RunFolder]:
    """Return all runs below `home`, the oldest first."""
    return [RunFolder(home / "runs" / name) for name in stamp_ledgers(home)]


def find_run(home: Path, name: str) -> RunFolder:
    """Return the run that a user means.

    Args:
        name: The id of a run, the beginning or end of one id only, `last` or `newest`. `last` is the newest
            run of the current folder; if that has none, of a folder around it, then of one below it, then of all.
            Replays are neither `last` nor `newest`.

    Raises:
        UsageError: There is no such run, or more than one.
    """
    if RUN_ID.fullmatch(name) and (run := RunFolder(home / "runs" / name)).ledger_path.is_file():
        return run  # the others need not be listed
    runs = list_runs(home)
    if not runs:
        raise UsageError(
            f"there are no runs under {str(home)!r}", remedy="start one with `suture run --example`"
        )
    if name in ("last", "newest"):
        return _newest_run(runs, prefer_project=name == "last")
    if not name:
        raise UsageError("the name of the run is empty", remedy="see `suture show --list`")
    matches = [run for run in runs if run.id.startswith(name) or run.id.endswith(name)]
    if len(matches) == 1:
        return matches[0]
    count = f"{len(matches)} runs" if matches else "no run"
    raise UsageError(f"{count} called {name!r} under {str(home)!r}", remedy="see `suture show --list`")


def _newest_run(runs: list[RunFolder], *, prefer_project: bool) -> RunFolder:
    """Return the newest run that is not a replay; if all runs are replays, the newest of these.

    With `prefer_project`, a run of exactly the current folder comes first, then one of a folder around it, then one
    of a folder below it.
    """
    here = Path.cwd().resolve()
    newest: dict[str, RunFolder] = {}
    for run in reversed(runs):
        replayed_run, project = _read_first_event(run)
        if replayed_run:
            continue
        folder = Path(project).resolve() if project else None
        if not prefer_project or folder == here:
            return run
        newest.setdefault("anywhere", run)
        if folder is not None and here.is_relative_to(folder):
            newest.setdefault("around", run)
        elif folder is not None and folder.is_relative_to(here):
            newest.setdefault("below", run)
    return newest.get("around") or newest.get("below") or newest.get("anywhere") or runs[-1]


def _read_first_event(run: RunFolder) -> tuple[str, str]:
    """Return (id of the run that this run replays, folder of its project).

    The id is empty if the run is not a replay. Both are empty if the ledger is damaged.
    """
    try:
        first_line = (read_regular_file(run.ledger_path, MAX_FIRST_EVENT_BYTES) or b"").partition(b"\n")[0]
        data = json.loads(first_line)["data"]
        return str(data.get("replayed_run") or ""), str(data.get("project") or "")
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return "", ""
