"""Uploaded projects are unpacked; any other archive is refused and leaves no files."""

from __future__ import annotations

import gzip
import io
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from interfaces.web.uploaded_projects import BROKEN_PROJECT, tar_project, zip_project
from suture.interfaces.jobs.project_archives import (
    ArchiveLimits,
    ArchiveRefused,
    ProjectArchives,
    unpack_archive,
)

LIMITS = ArchiveLimits(files=50, unpacked_bytes=2**20)


def make_tar(*entries: tuple[tarfile.TarInfo, bytes]) -> bytes:
    """Pack entries as a compressed tar archive."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for info, text in entries:
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text))
    return content.getvalue()


def tar_entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    """Return the header of an entry."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def make_zip(name: str, text: str = "x", mode: int = 0, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Pack one file as a zip archive."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        info = zipfile.ZipInfo(name)
        info.external_attr = mode << 16
        info.compress_type = method
        archive.writestr(info, text)
    return content.getvalue()


def make_encrypted_zip() -> bytes:
    """Return a zip whose file is marked as encrypted."""
    archive_bytes = bytearray(zip_project({"a.py": "x"}))
    archive_bytes[6] |= 1  # the encryption flag in the header of the file
    archive_bytes[archive_bytes.index(b"PK\x01\x02") + 8] |= 1  # the same flag in the central directory
    return bytes(archive_bytes)


def make_zip_with_wrong_size() -> bytes:
    """Return a zip whose headers claim ten bytes for a file of two million."""
    archive_bytes = bytearray(make_zip("a.py", "x" * 2_000_000))
    for signature, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        position = archive_bytes.index(signature) + offset
        archive_bytes[position : position + 4] = (10).to_bytes(4, "little")
    return bytes(archive_bytes)


def make_tar_with_huge_header() -> bytes:
    """Return a tar with a header of 64 MiB that compresses to some kilobytes."""
    header = tar_entry("././@PaxHeader", tarfile.XHDTYPE)
    header.size = 64 * 2**20
    return gzip.compress(header.tobuf(tarfile.USTAR_FORMAT) + b"0" * header.size, 1)


ATTACKS: dict[str, Callable[[], bytes]] = {
    "empty file": lambda: b"",
    "script": lambda: b"#!/bin/sh\nrm -rf /\n",
    "half a zip": lambda: zip_project(BROKEN_PROJECT)[:80],
    "half a tar": lambda: tar_project(BROKEN_PROJECT)[:60],
    "empty zip": lambda: zip_project({}),
    "empty tar": lambda: make_tar(),
    "zip with parent path": lambda: make_zip("../evil.py"),
    "zip with nested parent path": lambda: make_zip("a/../../evil.py"),
    "zip with absolute path": lambda: make_zip("/tmp/evil.py"),
    "zip with drive letter": lambda: make_zip("C:\\evil.py"),
    "zip backslash": lambda: make_zip("..\\evil.py"),
    "zip line end": lambda: make_zip("a\nb.py"),
    "zip link": lambda: make_zip("link", "/etc/passwd", stat.S_IFLNK | 0o777),
    "zip device": lambda: make_zip("device", "", stat.S_IFCHR | 0o666),
    "zip pipe": lambda: make_zip("pipe", "", stat.S_IFIFO | 0o666),
    "zip bomb": lambda: make_zip("a.py", "0" * 3 * 2**20),
    "zip with wrong size": make_zip_with_wrong_size,
    "zip with many files": lambda: zip_project({f"{number}.py": "" for number in range(60)}),
    "zip with duplicate names": lambda: zip_project({"A.py": "1", "a.py": "2"}),
    "zip encrypted": make_encrypted_zip,
    "zip with lzma": lambda: make_zip("a.py", "x", method=zipfile.ZIP_LZMA),
    "zip with deep folders": lambda: make_zip("/".join("a" * 40) + "/a.py"),
    "zip long name": lambda: make_zip("n" * 300),
    "zip file below a file": lambda: zip_project({"a": "1", "a/b": "2"}),
    "git hooks": lambda: make_zip(".git/hooks/post-checkout"),
    "git hooks, other case": lambda: make_zip("sub/.GIT/config"),
    "tar with parent path": lambda: make_tar((tar_entry("../evil.py"), b"x")),
    "tar with absolute path": lambda: make_tar((tar_entry("/tmp/evil.py"), b"x")),
    "tar link": lambda: make_tar((tar_entry("link", tarfile.SYMTYPE, "/etc"), b"")),
    "tar through a link": lambda: make_tar(
        (tar_entry("link", tarfile.SYMTYPE, ".."), b""), (tar_entry("link/evil.py"), b"x")
    ),
    "tar hard link": lambda: make_tar((tar_entry("hard", tarfile.LNKTYPE, "/etc/passwd"), b"")),
    "tar device": lambda: make_tar((tar_entry("device", tarfile.CHRTYPE), b"")),
    "tar pipe": lambda: make_tar((tar_entry("pipe", tarfile.FIFOTYPE), b"")),
    "tar bomb": lambda: make_tar((tar_entry("a.py"), b"0" * 3 * 2**20)),
    "tar with many files": lambda: tar_project({f"{number}.py": "" for number in range(60)}),
    "tar with duplicate names": lambda: make_tar((tar_entry("a.py"), b"1"), (tar_entry("a.py"), b"2")),
    "tar with huge header": make_tar_with_huge_header,
    "gzip without tar": lambda: gzip.compress(b"0" * 4096),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_hostile_archive_is_refused_and_leaves_no_files(tmp_path: Path, attack: str) -> None:
    archives = ProjectArchives(tmp_path / "home", LIMITS)
    with pytest.raises(ArchiveRefused) as refused:
        archives.store(ATTACKS[attack]())
    assert refused.value.message
    assert list((tmp_path / "home" / "archives").iterdir()) == []
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


@pytest.mark.parametrize("pack", [zip_project, tar_project, lambda files: tar_project(files, "w")])
def test_a_project_is_unpacked_unchanged(tmp_path: Path, pack: Callable[..., bytes]) -> None:
    archives = ProjectArchives(tmp_path, LIMITS)
    name, files = archives.store(pack({**BROKEN_PROJECT, "sub/data.txt": "ü", "./top.py": "1"}))

    folder = archives.find_folder(name)

    assert files == 4
    assert (folder / "sub" / "data.txt").read_text() == "ü"
    assert (folder / "top.py").read_text() == "1"
    assert (folder / "cart.py").read_text() == BROKEN_PROJECT["cart.py"]


def test_an_archive_that_is_uploaded_twice_at_once_is_stored_once(tmp_path: Path) -> None:
    archives, content = ProjectArchives(tmp_path, LIMITS), zip_project(BROKEN_PROJECT)
    name, _ = archives.store(content)
    archives._unpack(name, content)  # as a second upload does that found no archive at the same time
    assert [one.name for one in (tmp_path / "archives").iterdir()] == [name]
    assert (archives.find_folder(name) / "cart.py").read_text() == BROKEN_PROJECT["cart.py"]


def test_a_tar_of_the_current_folder_is_unpacked(tmp_path: Path) -> None:
    folders = [(tar_entry(name, tarfile.DIRTYPE), b"") for name in (".", "./", "./sub")]
    unpack_archive(make_tar(*folders, (tar_entry("./sub/a.py"), b"x")), tmp_path, LIMITS)
    assert (tmp_path / "sub" / "a.py").read_text() == "x"


def test_an_executable_file_stays_executable_without_setuid(tmp_path: Path) -> None:
    info = tar_entry("run.sh")
    info.mode = 0o4755
    unpack_archive(make_tar((info, b"x")), tmp_path, LIMITS)
    assert (tmp_path / "run.sh").stat().st_mode & 0o7777 == 0o700


@pytest.mark.parametrize("name", ["..", "", "x", "../../etc", "a" * 63, "A" * 64])
def test_an_invalid_archive_name_is_not_found(tmp_path: Path, name: str) -> None:
    with pytest.raises(Exception, match="no archive"):
        ProjectArchives(tmp_path, LIMITS).find_folder(name)
