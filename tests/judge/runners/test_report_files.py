"""Report files are brought back whatever their names are, and a forged archive is only an archive without files."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from suture.judge.runners.report_files import add_archive, read_archive


def run(folder: Path, script: str) -> tuple[int, dict[str, bytes]]:
    """Run a shell line that writes reports; return its exit status and the reports."""
    argv = add_archive(("sh", "-c", script), ("*/reports/TEST-*.xml",), "archive")
    ended = subprocess.run(argv, cwd=folder, check=False, timeout=60)
    return ended.returncode, read_archive((folder / "archive").read_bytes())


def test_reports_of_this_run_are_brought_back_with_its_exit_status(tmp_path: Path) -> None:
    (tmp_path / "a" / "reports").mkdir(parents=True)
    (tmp_path / "a" / "reports" / "TEST-old.xml").write_text("old")
    status, reports = run(
        tmp_path, "echo new > 'a/reports/TEST-a b.xml'; echo x > a/reports/other.xml; exit 3"
    )
    assert (status, reports) == (3, {"a/reports/TEST-a b.xml": b"new\n"})


def test_a_run_without_reports_has_none(tmp_path: Path) -> None:
    assert run(tmp_path, "true") == (0, {})


@pytest.mark.parametrize("content", [b"", b"not an archive", b"\0" * 512 * 3])
def test_a_forged_archive_has_no_files(content: bytes) -> None:
    assert read_archive(content) == {}


def test_links_and_sparse_files_of_an_archive_are_left_out() -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        link = tarfile.TarInfo("link.xml")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
        sparse = tarfile.TarInfo("sparse.xml")
        sparse.pax_headers = {
            "GNU.sparse.major": "0",
            "GNU.sparse.map": "0,1",
            "GNU.sparse.size": str(1 << 60),
        }
        sparse.size = 1
        tar.addfile(sparse, io.BytesIO(b"x"))
        plain = tarfile.TarInfo("./plain.xml")
        plain.size = 2
        tar.addfile(plain, io.BytesIO(b"ok"))
    assert read_archive(buffer.getvalue()) == {"plain.xml": b"ok"}
