"""Results of runs on a project's own files, kept for later judgements of changes to the same files.

A result is used only for a key that names everything that it depends on. The sandbox shows the folder to no program.
"""

from __future__ import annotations

import hashlib
import json
import time
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suture.core.safe_files import read_regular_file, write_file_atomically
from suture.errors import StorageError
from suture.judge.tuning import MAX_ALL_RECORDED_RUNS_BYTES, MAX_RECORDED_RUN_AGE_S, MAX_RECORDED_RUN_BYTES
from suture.sandbox import RunResult

DIGEST_BYTES = hashlib.sha256().digest_size
SIMPLE_FIELDS = ("status", "exit_code", "signal", "truncated", "wall_s", "cpu_s")
"""Fields of a result that JSON can hold as they are."""


@dataclass(frozen=True, kw_only=True)
class BaseRunRecord:
    """The place of a run's result.

    Attributes:
        folder: The folder with the runs of all states of all projects; it need not exist.
        key: Names everything that the result depends on, in hexadecimal digits.
        name: Says which run on this state it is.
    """

    folder: Path
    key: str
    name: str = "first"

    @property
    def exists(self) -> bool:
        """Whether there is a record."""
        return self._path.is_file()

    def load(self) -> tuple[RunResult, bytes] | None:
        """Return the recorded result and the key of its report; `None` if there is none."""
        try:
            content = read_regular_file(self._path, MAX_RECORDED_RUN_BYTES) or b""
        except OSError:
            return None
        if hashlib.sha256(content[DIGEST_BYTES:]).digest() != content[:DIGEST_BYTES]:
            return None
        with suppress(OSError):
            self._path.touch()  # the least recently used ones are removed first
        try:
            return _unpack(zlib.decompress(content[DIGEST_BYTES:]))
        except (zlib.error, ValueError, KeyError, TypeError):  # of another version
            return None

    def save(self, result: RunResult, report_key: bytes) -> None:
        """Record a completed run. A full disk costs only the record."""
        content = zlib.compress(_pack(result, report_key), level=1)
        if result.status not in ("ok", "failed") or len(content) + DIGEST_BYTES > MAX_RECORDED_RUN_BYTES:
            return
        with suppress(OSError, StorageError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_file_atomically(self._path, hashlib.sha256(content).digest() + content)
            _remove_unused(self.folder)

    def forget_all(self) -> None:
        """Remove all runs on this state, because such a run has a different result by now."""
        for path in self.folder.glob(f"{self.key}-*"):
            path.unlink(missing_ok=True)

    @property
    def _path(self) -> Path:
        return self.folder / f"{self.key}-{self.name}"


def _remove_unused(folder: Path) -> None:
    """Remove old records, and the least recently used ones of too many."""
    remaining_bytes = MAX_ALL_RECORDED_RUNS_BYTES
    records = [(path.stat(), path) for path in folder.iterdir()]
    for facts, path in sorted(records, key=lambda record: record[0].st_mtime, reverse=True):
        remaining_bytes -= facts.st_size
        if remaining_bytes < 0 or time.time() - facts.st_mtime > MAX_RECORDED_RUN_AGE_S:
            path.unlink(missing_ok=True)


def _pack(result: RunResult, report_key: bytes) -> bytes:
    """Return a line of JSON and the contents whose sizes it gives."""
    contents = [report_key, result.stdout, result.stderr, *result.files.values()]
    header = {
        **{name: getattr(result, name) for name in SIMPLE_FIELDS},
        "changed": sorted(result.changed),
        "created": sorted(result.created),
        "files": list(result.files),
        "sizes": [len(content) for content in contents],
    }
    return json.dumps(header).encode("ascii") + b"\n" + b"".join(contents)


def _unpack(packed: bytes) -> tuple[RunResult, bytes]:
    head, _, rest = packed.partition(b"\n")
    header: dict[str, Any] = json.loads(head)
    contents: list[bytes] = []
    for size in header["sizes"]:
        contents.append(rest[:size])
        rest = rest[size:]
    report_key, stdout, stderr, *files = contents
    result = RunResult(
        **{name: header[name] for name in SIMPLE_FIELDS},
        stdout=stdout,
        stderr=stderr,
        files=dict(zip(header["files"], files, strict=True)),
        changed=frozenset(header["changed"]),
        created=frozenset(header["created"]),
    )
    return result, report_key
