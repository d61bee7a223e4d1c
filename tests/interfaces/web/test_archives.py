"""Uploaded archives: projects are unpacked, everything else is refused and leaves nothing behind."""

from __future__ import annotations

import gzip
import io
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from interfaces.web.uploaded_projects import BROKEN, tarred, zipped
from suture.interfaces.jobs.project_archives import (
    ArchiveLimits,
    ArchiveRefused,
    ProjectArchives,
    unpack_archive,
)

LIMITS = ArchiveLimits(files=50, unpacked_bytes=2**20)


def tar_of(*entries: tuple[tarfile.TarInfo, bytes]) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for info, text in entries:
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text))
    return content.getvalue()


def entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def zip_of(name: str, text: str = "x", mode: int = 0, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        info = zipfile.ZipInfo(name)
        info.external_attr = mode << 16
        info.compress_type = method
        archive.writestr(info, text)
    return content.getvalue()


def encrypted() -> bytes:
    whole = bytearray(zipped({"a.py": "x"}))
    whole[6] |= 1  # the flag in the file's own header
    whole[whole.index(b"PK\x01\x02") + 8] |= 1  # and in the list at the end
    return bytes(whole)


def lying_zip() -> bytes:
    """It says that its file has ten bytes, and there are two million."""
    whole = bytearray(zip_of("a.py", "x" * 2_000_000))
    for mark, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        place = whole.index(mark) + offset
        whole[place : place + 4] = (10).to_bytes(4, "little")
    return bytes(whole)


def pax_bomb() -> bytes:
    """A header of many megabytes, which packs to some kilobytes."""
    header = entry("././@PaxHeader", tarfile.XHDTYPE)
    header.size = 64 * 2**20
    return gzip.compress(header.tobuf(tarfile.USTAR_FORMAT) + b"0" * header.size, 1)


ATTACKS: dict[str, Callable[[], bytes]] = {
    "nothing": lambda: b"",
    "no archive": lambda: b"#!/bin/sh\nrm -rf /\n",
    "half a zip": lambda: zipped(BROKEN)[:80],
    "half a tar": lambda: tarred(BROKEN)[:60],
    "empty zip": lambda: zipped({}),
    "empty tar": lambda: tar_of(),
    "zip up": lambda: zip_of("../evil.py"),
    "zip far up": lambda: zip_of("a/../../evil.py"),
    "zip absolute": lambda: zip_of("/tmp/evil.py"),
    "zip of windows": lambda: zip_of("C:\\evil.py"),
    "zip backslash": lambda: zip_of("..\\evil.py"),
    "zip line end": lambda: zip_of("a\nb.py"),
    "zip link": lambda: zip_of("link", "/etc/passwd", stat.S_IFLNK | 0o777),
    "zip device": lambda: zip_of("device", "", stat.S_IFCHR | 0o666),
    "zip pipe": lambda: zip_of("pipe", "", stat.S_IFIFO | 0o666),
    "zip bomb": lambda: zip_of("a.py", "0" * 3 * 2**20),
    "zip that lies": lying_zip,
    "zip of many": lambda: zipped({f"{number}.py": "" for number in range(60)}),
    "zip twice": lambda: zipped({"A.py": "1", "a.py": "2"}),
    "zip encrypted": encrypted,
    "zip by lzma": lambda: zip_of("a.py", "x", method=zipfile.ZIP_LZMA),
    "zip deep": lambda: zip_of("/".join("a" * 40) + "/a.py"),
    "zip long name": lambda: zip_of("n" * 300),
    "zip file below a file": lambda: zipped({"a": "1", "a/b": "2"}),
    "git hooks": lambda: zip_of(".git/hooks/post-checkout"),
    "git hooks, other case": lambda: zip_of("sub/.GIT/config"),
    "tar up": lambda: tar_of((entry("../evil.py"), b"x")),
    "tar absolute": lambda: tar_of((entry("/tmp/evil.py"), b"x")),
    "tar link": lambda: tar_of((entry("link", tarfile.SYMTYPE, "/etc"), b"")),
    "tar through a link": lambda: tar_of(
        (entry("link", tarfile.SYMTYPE, ".."), b""), (entry("link/evil.py"), b"x")
    ),
    "tar hard link": lambda: tar_of((entry("hard", tarfile.LNKTYPE, "/etc/passwd"), b"")),
    "tar device": lambda: tar_of((entry("device", tarfile.CHRTYPE), b"")),
    "tar pipe": lambda: tar_of((entry("pipe", tarfile.FIFOTYPE), b"")),
    "tar bomb": lambda: tar_of((entry("a.py"), b"0" * 3 * 2**20)),
    "tar of many": lambda: tarred({f"{number}.py": "" for number in range(60)}),
    "tar twice": lambda: tar_of((entry("a.py"), b"1"), (entry("a.py"), b"2")),
    "tar of a long header": pax_bomb,
    "gzip of no tar": lambda: gzip.compress(b"0" * 4096),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_is_no_project_is_refused_and_leaves_nothing(tmp_path: Path, attack: str) -> None:
    archives = ProjectArchives(tmp_path / "home", LIMITS)
    with pytest.raises(ArchiveRefused) as refused:
        archives.store(ATTACKS[attack]())
    assert refused.value.message
    assert list((tmp_path / "home" / "archives").iterdir()) == []
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


@pytest.mark.parametrize("pack", [zipped, tarred, lambda files: tarred(files, "w")])
def test_a_project_is_unpacked_as_it_was(tmp_path: Path, pack: Callable[..., bytes]) -> None:
    archives = ProjectArchives(tmp_path, LIMITS)
    name, files = archives.store(pack({**BROKEN, "sub/data.txt": "ü", "./top.py": "1"}))
    folder = archives.find_folder(name)
    assert files == 4
    assert (folder / "sub" / "data.txt").read_text() == "ü"
    assert (folder / "top.py").read_text() == "1"
    assert (folder / "cart.py").read_text() == BROKEN["cart.py"]


def test_one_that_is_sent_twice_at_once_is_kept_once(tmp_path: Path) -> None:
    archives, content = ProjectArchives(tmp_path, LIMITS), zipped(BROKEN)
    name, _ = archives.store(content)
    archives._unpack(name, content)  # whoever saw, at the same time, that it was not there yet
    assert [one.name for one in (tmp_path / "archives").iterdir()] == [name]
    assert (archives.find_folder(name) / "cart.py").read_text() == BROKEN["cart.py"]


def test_a_tar_of_the_folder_itself_is_a_project(tmp_path: Path) -> None:
    folders = [(entry(name, tarfile.DIRTYPE), b"") for name in (".", "./", "./sub")]
    unpack_archive(tar_of(*folders, (entry("./sub/a.py"), b"x")), tmp_path, LIMITS)
    assert (tmp_path / "sub" / "a.py").read_text() == "x"


def test_whoever_may_run_a_file_may_still(tmp_path: Path) -> None:
    info = entry("run.sh")
    info.mode = 0o4755
    unpack_archive(tar_of((info, b"x")), tmp_path, LIMITS)
    assert (tmp_path / "run.sh").stat().st_mode & 0o7777 == 0o700  # and as no other user


@pytest.mark.parametrize("name", ["..", "", "x", "../../etc", "a" * 63, "A" * 64])
def test_what_is_no_archive_is_not_looked_for(tmp_path: Path, name: str) -> None:
    with pytest.raises(Exception, match="no archive"):
        ProjectArchives(tmp_path, LIMITS).find_folder(name)
