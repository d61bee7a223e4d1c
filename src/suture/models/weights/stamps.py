"""What a file of weights was when its hash was computed, so that it is computed again only if it changed."""

from __future__ import annotations

import contextlib
import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from suture.core.safe_files import write_atomically
from suture.errors import StorageError


@dataclass(frozen=True, kw_only=True)
class Stamp:
    """A file and its hash.

    Attributes:
        inode: Its number in the file system; another file in its place has another.
        mtime_ns: When it was last written, in nanoseconds of the epoch.
        size_bytes: The file's length.
        sha256: Of its content, in hexadecimal digits.
    """

    inode: int
    mtime_ns: int
    size_bytes: int
    sha256: str


def stamp_path(path: Path) -> Path:
    """Where the stamp of a file lies: beside it."""
    return path.with_name(f".{path.name}.verified")


def sha256_of(path: Path) -> str:
    """The hash of a file; read from its stamp where the file is still the stamped one.

    Raises:
        StorageError: The file cannot be read.
    """
    try:
        stamp = _stamp(path, "")
        with contextlib.suppress(OSError, ValueError, TypeError):
            known = Stamp(**json.loads(stamp_path(path).read_bytes()))
            if known == _stamp(path, known.sha256):
                return known.sha256
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if stamp == _stamp(path, ""):  # nobody wrote to it meanwhile
            write_stamp(path, digest)
    except OSError as fault:
        raise StorageError(f"{str(path)!r} cannot be read: {fault.strerror}") from fault
    return digest


def write_stamp(path: Path, sha256: str) -> None:
    """Note the hash of a file as it is now; where that cannot be written, it is computed anew each time."""
    with contextlib.suppress(StorageError):
        write_atomically(stamp_path(path), json.dumps(asdict(_stamp(path, sha256))).encode("ascii"))


def _stamp(path: Path, sha256: str) -> Stamp:
    facts = path.stat()
    return Stamp(inode=facts.st_ino, mtime_ns=facts.st_mtime_ns, size_bytes=facts.st_size, sha256=sha256)
