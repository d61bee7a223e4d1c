"""Store the projects that callers send as archives: each archive is unpacked once, into a folder of its own.

Every entry is checked before anything is written: only plain files and folders, no path that leaves the
folder, no duplicate names, and limits on files and bytes. The limits count what is really unpacked, not what
the archive claims.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from suture.core.ledger.run_folder import PRIVATE_FOLDER_MODE
from suture.errors import StorageError, UsageError

if TYPE_CHECKING:
    from suture.storage.postgresql.shared_jobs import SharedJobs

CHUNK_BYTES = 2**16
"""How much of an entry is unpacked at once."""
MAX_NAME_BYTES = 255
"""`NAME_MAX` of Linux."""
MAX_PATH_CHARS = 1024
MAX_DEPTH = 32
"""Far more than the paths of projects need. Both limits are chosen by judgement; not measured."""
TAR_HEADER_BYTES = 4096
"""Overhead of one entry of a tar file: header, long name, padding of the last block."""
ARCHIVE_ID = re.compile(r"[0-9a-f]{64}")
"""The name of an archive: the SHA-256 of its file."""
FORBIDDEN_PARTS = (".", "..", "")
"""Parts of a path that stand for no entry of their own."""
INVALID_ARCHIVE_ERRORS = (
    EOFError,
    NotImplementedError,
    OverflowError,
    RuntimeError,  # a password
    ValueError,
)
"""What the libraries raise for archives with invalid headers or unsupported features, besides their own errors."""


class ArchiveRefused(UsageError):
    """The archive contains something that no project should contain."""


@dataclass(frozen=True, kw_only=True)
class ArchiveLimits:
    """Limits on the contents of an archive."""

    files: int
    unpacked_bytes: int


@dataclass(frozen=True, kw_only=True)
class _Entry:
    """A file or folder in an archive; `content` is `None` for a folder."""

    path: str
    is_folder: bool
    is_executable: bool
    content: IO[bytes] | None


class ProjectArchives:
    """The archives of one home, each named by the SHA-256 of the uploaded file.

    Args:
        shared: The database through which other machines find the archives too.
    """

    def __init__(self, home: Path, limits: ArchiveLimits, shared: SharedJobs | None = None) -> None:
        self._folder = home / "archives"
        self._limits = limits
        self._shared = shared

    def find_folder(self, archive: str) -> Path:
        """Return the folder of an archive; an archive that was sent to another machine is unpacked now."""
        if ARCHIVE_ID.fullmatch(archive):
            folder = self._folder / archive
            _touch(folder)
            if self._shared is not None and not folder.is_dir():
                content = self._shared.load_archive(archive)
                if content is not None:
                    self._unpack(archive, content)
            if folder.is_dir():
                return folder
        raise UsageError(f"there is no archive {archive!r:.80}", remedy="upload it: POST /v1/archives")

    def store(self, content: bytes) -> tuple[str, int]:
        """Unpack an archive; return its name and its number of files. An identical archive is unpacked once."""
        name = hashlib.sha256(content).hexdigest()
        target = self._folder / name
        _touch(target)
        if not target.is_dir():
            self._unpack(name, content)
        if self._shared is not None:
            self._shared.store_archive(name, content)
        return name, sum(len(files) for _, _, files in os.walk(target))

    def _unpack(self, name: str, content: bytes) -> None:
        try:
            self._folder.mkdir(mode=PRIVATE_FOLDER_MODE, parents=True, exist_ok=True)
            temporary = Path(tempfile.mkdtemp(dir=self._folder, prefix=".new-"))
        except OSError as fault:
            raise StorageError(f"the archive cannot be stored: {fault.strerror}") from fault
        try:
            unpack_archive(content, temporary, self._limits)
            try:
                temporary.rename(self._folder / name)
            except OSError:
                # The same archive may have been sent twice at the same time; then one copy is enough.
                if not (self._folder / name).is_dir():
                    raise
        except OSError as fault:
            raise StorageError(f"the archive cannot be stored: {fault.strerror}") from fault
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def _touch(folder: Path) -> None:
    """Mark a folder as used before it is looked up: `upload_cleanup` removes folders unused for long."""
    with suppress(OSError):
        os.utime(folder)


def unpack_archive(content: bytes, target: Path, limits: ArchiveLimits) -> None:
    """Write the contents of a zip file or a tar file, which may be compressed with gzip, to an empty folder.

    Raises:
        ArchiveRefused: It is not an archive, or contains something that no project should contain.
        OSError: The disk is full or not available.
    """
    remaining_bytes = limits.unpacked_bytes
    seen_paths: set[str] = set()
    try:
        for number, entry in enumerate(_read_entries(content, limits), 1):
            if number > limits.files:
                raise ArchiveRefused(f"the archive contains more than {limits.files:,} files and folders")
            if entry.is_folder and entry.path.rstrip("/") == ".":
                continue  # the project folder itself, which `tar c .` includes
            parts = _path_parts(entry.path)
            folded_path = "/".join(parts).casefold()  # some file systems ignore the case of names
            if not entry.is_folder and folded_path in seen_paths:
                raise ArchiveRefused(f"the archive contains {entry.path!r:.200} twice")
            seen_paths.add(folded_path)
            path = target.joinpath(*parts)
            if entry.is_folder:
                path.mkdir(parents=True, exist_ok=True)
            elif entry.content is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                remaining_bytes -= _write_file(entry, path, remaining_bytes, limits)
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as fault:
        raise ArchiveRefused("the archive contains a file and a folder with the same path") from fault
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, *INVALID_ARCHIVE_ERRORS) as fault:
        raise ArchiveRefused(f"the archive cannot be read: {fault}") from fault
    if not seen_paths:
        raise ArchiveRefused("the archive is empty", remedy="send the project's folder as .zip or .tar.gz")


def _write_file(entry: _Entry, path: Path, remaining_bytes: int, limits: ArchiveLimits) -> int:
    """Write a file and return its length, without trusting the length that the archive claims."""
    written = 0
    assert entry.content is not None
    mode = 0o700 if entry.is_executable else 0o600
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with os.fdopen(handle, "wb") as file, entry.content as source:
        while chunk := source.read(CHUNK_BYTES):
            written += len(chunk)
            if written > remaining_bytes:
                raise ArchiveRefused(
                    f"the archive unpacks to more than {limits.unpacked_bytes // 2**20} MiB",
                    remedy="leave out what the tests do not need, or increase the setting serve.unpacked_mb",
                )
            file.write(chunk)
    return written


def _path_parts(name: str) -> tuple[str, ...]:
    """Return the parts of a path inside the project."""
    parts = name.removeprefix("./").rstrip("/").split("/")
    is_too_long = len(name) > MAX_PATH_CHARS or any(len(os.fsencode(part)) > MAX_NAME_BYTES for part in parts)
    # Backslashes and colons separate parts of a path on other systems.
    has_invalid_chars = any(ord(char) < 32 or char in "\\:\x7f" for char in name)
    has_invalid_parts = len(parts) > MAX_DEPTH or any(part in FORBIDDEN_PARTS for part in parts)
    if is_too_long or has_invalid_chars or has_invalid_parts:
        raise ArchiveRefused(
            f"the archive contains the invalid path {name!r:.200}", remedy="use plain relative paths"
        )
    if ".git" in (part.casefold() for part in parts):
        raise ArchiveRefused(f"the archive contains {name!r:.200}", remedy="leave out .git: git archive HEAD")
    return tuple(parts)


def _read_entries(content: bytes, limits: ArchiveLimits) -> Iterator[_Entry]:
    file: IO[bytes] = io.BytesIO(content)
    if content[:4] in (b"PK\x03\x04", b"PK\x05\x06"):  # a zip file, or an empty one
        # Checked before the library creates an object for each entry.
        if content.count(b"PK\x01\x02") > limits.files:
            raise ArchiveRefused(f"the archive contains more than {limits.files:,} files and folders")
        with zipfile.ZipFile(file) as archive:
            yield from _zip_entries(archive)
        return
    with tempfile.TemporaryFile() as plain:
        if content[:2] == b"\x1f\x8b":  # gzip
            _decompress_gzip(file, plain, limits.unpacked_bytes + limits.files * TAR_HEADER_BYTES)
            file = plain
        with tarfile.open(fileobj=file, mode="r:") as tar:
            for info in tar:
                yield _tar_entry(tar, info)


def _decompress_gzip(source: IO[bytes], target: IO[bytes], max_bytes: int) -> None:
    """Decompress gzip up to a limit; the tar library would read a header of any length into memory."""
    with gzip.GzipFile(fileobj=source) as packed:
        while chunk := packed.read(CHUNK_BYTES):
            max_bytes -= len(chunk)
            if max_bytes < 0:
                raise ArchiveRefused("the archive unpacks to more than the limit")
            target.write(chunk)
    target.seek(0)


def _zip_entries(archive: zipfile.ZipFile) -> Iterator[_Entry]:
    for info in archive.infolist():
        mode = info.external_attr >> 16  # the Unix mode; 0 in archives of other systems
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise ArchiveRefused(f"the archive contains {info.filename!r:.200}, which is a link or a device")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ArchiveRefused(
                "the archive uses an unsupported compression", remedy="create it with `zip -r`"
            )
        if info.flag_bits & 1:  # encrypted
            raise ArchiveRefused("the archive is encrypted", remedy="send it without a password")
        yield _Entry(
            path=info.filename,
            is_folder=info.is_dir(),
            is_executable=bool(mode & 0o100),
            content=None if info.is_dir() else archive.open(info),
        )


def _tar_entry(archive: tarfile.TarFile, info: tarfile.TarInfo) -> _Entry:
    if info.isdir():
        return _Entry(path=info.name, is_folder=True, is_executable=False, content=None)
    if not info.isreg() or info.issparse():
        raise ArchiveRefused(f"the archive contains {info.name!r:.200}, which is a link, a device or sparse")
    return _Entry(
        path=info.name,
        is_folder=False,
        is_executable=bool(info.mode & 0o100),
        content=archive.extractfile(info),
    )
