"""Projects that callers send as an archive: unpacked once, and nothing of it outside its own folder.

Every entry is looked at before anything is written: only plain files and folders, no path that leaves, no two
entries of one name, and no more files and bytes than the settings allow, counted while they are unpacked and
not by what the archive says of itself.
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

from suture.errors import StorageError, UsageError

if TYPE_CHECKING:
    from suture.storage.postgresql.shared_jobs import SharedJobs

PIECE_BYTES = 2**16
MOST_NAME_BYTES = 255
"""`NAME_MAX` of Linux."""
MOST_PATH_CHARS = 1024
MOST_DEPTH = 32
HEADERS_BYTES = 4096
"""Of one entry of a tar: its header, a long name, what fills its last block."""
ARCHIVE_ID = re.compile(r"[0-9a-f]{64}")
FORBIDDEN_PARTS = (".", "..", "")


class ArchiveRefused(UsageError):
    """An archive holds what no project does."""


@dataclass(frozen=True, kw_only=True)
class ArchiveLimits:
    """What may come out of an archive.

    Attributes:
        files: The most files and folders.
        unpacked_bytes: The most bytes of all files.
    """

    files: int
    unpacked_bytes: int


@dataclass(frozen=True, kw_only=True)
class _Entry:
    path: str
    is_folder: bool
    runnable: bool
    open: IO[bytes] | None


class ProjectArchives:
    """The archives of one home, each by the SHA-256 of what was sent.

    Args:
        home: The folder of state, as the setting `paths.home`.
        limits: What may come out of one.
        shared: Where other machines find them too.
    """

    def __init__(self, home: Path, limits: ArchiveLimits, shared: SharedJobs | None = None) -> None:
        self._folder = home / "archives"
        self._limits = limits
        self._shared = shared

    def folder_of(self, archive: str) -> Path:
        """Where an archive was unpacked, or is now, where it was sent to another machine.

        Raises:
            UsageError: There is none of this name.
            StorageError: The disk or the database failed.
        """
        folder = self._folder / archive
        known = bool(ARCHIVE_ID.fullmatch(archive))
        if known:
            _touch(folder)
        if known and self._shared is not None and not folder.is_dir():
            content = self._shared.archive(archive)
            if content is not None:
                self._unpack(archive, content)
        if not known or not folder.is_dir():
            raise UsageError(f"there is no archive {archive!r:.80}", remedy="send it: POST /v1/archives")
        return folder

    def keep(self, content: bytes) -> tuple[str, int]:
        """Unpack an archive; answers its name and how many files it has. The same one is unpacked once.

        Raises:
            ArchiveRefused: It is no archive, or holds what no project does.
            StorageError: The disk is full or gone.
        """
        name = hashlib.sha256(content).hexdigest()
        target = self._folder / name
        _touch(target)
        if not target.is_dir():
            self._unpack(name, content)
        if self._shared is not None:
            self._shared.keep_archive(name, content)
        return name, sum(len(files) for _, _, files in os.walk(target))

    def _unpack(self, name: str, content: bytes) -> None:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            place = Path(tempfile.mkdtemp(dir=self._folder, prefix=".new-"))
        except OSError as fault:
            raise StorageError(f"an archive cannot be kept: {fault.strerror}") from fault
        try:
            unpack(content, place, self._limits)
            try:
                place.rename(self._folder / name)
            except OSError:
                if not (self._folder / name).is_dir():  # else it was sent twice at once
                    raise
        except OSError as fault:
            raise StorageError(f"an archive cannot be kept: {fault.strerror}") from fault
        finally:
            shutil.rmtree(place, ignore_errors=True)


def _touch(folder: Path) -> None:
    """Note that it is used, before it is looked for: `sweeping` removes what nobody has used for long."""
    with suppress(OSError):
        os.utime(folder)


def unpack(content: bytes, target: Path, limits: ArchiveLimits) -> None:
    """Write what an archive holds into an empty folder.

    Args:
        content: A zip, or a tar, plain or by gzip.
        target: The folder.
        limits: What may come out.

    Raises:
        ArchiveRefused: It is no archive, or holds what no project does.
        OSError: The disk is full or gone.
    """
    left_bytes = limits.unpacked_bytes
    seen: set[str] = set()
    try:
        for number, entry in enumerate(_entries(content, limits), 1):
            if number > limits.files:
                raise ArchiveRefused(f"the archive holds more than {limits.files:,} files and folders")
            if entry.is_folder and entry.path.rstrip("/") == ".":
                continue  # the project itself, as `tar c .` has it
            parts = _parts(entry.path)
            folded = "/".join(parts).casefold()
            if not entry.is_folder and folded in seen:
                raise ArchiveRefused(f"the archive holds {entry.path!r:.200} twice")
            seen.add(folded)
            path = target.joinpath(*parts)
            if entry.is_folder:
                path.mkdir(parents=True, exist_ok=True)
            elif entry.open is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                left_bytes -= _write(entry, path, left_bytes, limits)
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as fault:
        raise ArchiveRefused("the archive has a file where it has a folder too") from fault
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as fault:
        raise ArchiveRefused(f"the archive cannot be read: {fault}") from fault
    except (RuntimeError, ValueError, UnicodeError, OverflowError) as fault:  # a password, a strange header
        raise ArchiveRefused(f"the archive cannot be read: {fault}") from fault
    if not seen:
        raise ArchiveRefused("the archive is empty", remedy="send a project's folder as .zip or .tar.gz")


def _write(entry: _Entry, path: Path, left_bytes: int, limits: ArchiveLimits) -> int:
    """Write a file; answers its length. What it says of its length beforehand is not believed."""
    written = 0
    assert entry.open is not None
    mode = 0o700 if entry.runnable else 0o600
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with os.fdopen(handle, "wb") as file, entry.open as source:
        while piece := source.read(PIECE_BYTES):
            written += len(piece)
            if written > left_bytes:
                raise ArchiveRefused(
                    f"the archive unpacks to more than {limits.unpacked_bytes // 2**20} MiB",
                    remedy="leave out what the tests do not need, or have serve.unpacked_mb raised",
                )
            file.write(piece)
    return written


def _parts(name: str) -> tuple[str, ...]:
    """The parts of a path within the project.

    Raises:
        ArchiveRefused: It leaves the project, or is no path that every system can have.
    """
    parts = name.removeprefix("./").rstrip("/").split("/")
    long = len(name) > MOST_PATH_CHARS or any(len(os.fsencode(part)) > MOST_NAME_BYTES for part in parts)
    odd = any(ord(char) < 32 or char in "\\:\x7f" for char in name)
    if long or odd or len(parts) > MOST_DEPTH or any(part in FORBIDDEN_PARTS for part in parts):
        raise ArchiveRefused(
            f"the archive holds the path {name!r:.200}", remedy="send paths below the project"
        )
    if ".git" in (part.casefold() for part in parts):
        raise ArchiveRefused(f"the archive holds {name!r:.200}", remedy="leave .git out: git archive HEAD")
    return tuple(parts)


def _entries(content: bytes, limits: ArchiveLimits) -> Iterator[_Entry]:
    file: IO[bytes] = io.BytesIO(content)
    if content[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        if content.count(b"PK\x01\x02") > limits.files:  # before the library makes an object of each
            raise ArchiveRefused(f"the archive holds more than {limits.files:,} files and folders")
        with zipfile.ZipFile(file) as archive:
            yield from _of_zip(archive)
        return
    with tempfile.TemporaryFile() as plain:
        if content[:2] == b"\x1f\x8b":
            _inflate(file, plain, limits.unpacked_bytes + limits.files * HEADERS_BYTES)
            file = plain
        with tarfile.open(fileobj=file, mode="r:") as tar:
            for info in tar:
                yield _of_tar(tar, info)


def _inflate(source: IO[bytes], target: IO[bytes], most_bytes: int) -> None:
    """Unpack gzip up to a limit: the library would read a header of any length into memory."""
    with gzip.GzipFile(fileobj=source) as packed:
        while piece := packed.read(PIECE_BYTES):
            most_bytes -= len(piece)
            if most_bytes < 0:
                raise ArchiveRefused("the archive unpacks to more than is allowed")
            target.write(piece)
    target.seek(0)


def _of_zip(archive: zipfile.ZipFile) -> Iterator[_Entry]:
    for info in archive.infolist():
        mode = info.external_attr >> 16
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise ArchiveRefused(f"the archive holds {info.filename!r:.200}, which is a link or a device")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ArchiveRefused("the archive is packed in a rare way", remedy="pack it by `zip -r`")
        if info.flag_bits & 1:
            raise ArchiveRefused("the archive is encrypted", remedy="send it without a password")
        yield _Entry(
            path=info.filename,
            is_folder=info.is_dir(),
            runnable=bool(mode & 0o100),
            open=None if info.is_dir() else archive.open(info),
        )


def _of_tar(archive: tarfile.TarFile, info: tarfile.TarInfo) -> _Entry:
    if info.isdir():
        return _Entry(path=info.name, is_folder=True, runnable=False, open=None)
    if not info.isreg() or info.issparse():
        raise ArchiveRefused(f"the archive holds {info.name!r:.200}, which is a link, a device or sparse")
    runnable = bool(info.mode & 0o100)
    return _Entry(path=info.name, is_folder=False, runnable=runnable, open=archive.extractfile(info))
