"""Collecting the report files of a test runner, whose names are unknown before the run."""

from __future__ import annotations

import io
import shlex
import tarfile
from collections.abc import Sequence

from suture.judge.sandbox_programs import PRIVATE_FOLDER

REPORTS_FOLDER = f"{PRIVATE_FOLDER}/reports"
"""Where a runner writes its reports, if its command says where."""


def add_archive(argv: Sequence[str], globs: Sequence[str], archive: str) -> tuple[str, ...]:
    """Return a command that also puts the reports of its run into an archive, and ends as the given one.

    Args:
        argv: The command, which runs in the project's folder.
        globs: Paths of the reports, as `find -path` matches them. Earlier ones are removed first.
        archive: Path of the archive.
    """
    paths = " -o ".join(f"-path {shlex.quote(glob)}" for glob in globs)
    find = f"find . -type f '(' {paths} ')'"
    script = (
        f'{find} -delete; mkdir -p {REPORTS_FOLDER}; "$@"; status=$?; '
        f"{find} -print0 | tar -cf {shlex.quote(archive)} --null -T - 2>/dev/null; exit $status"
    )
    return ("/bin/sh", "-c", script, "sh", *argv)


def read_archive(archive: bytes) -> dict[str, bytes]:
    """Return the files of an archive, path -> content. Code under test may have written it, so it may be broken."""
    files: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar:
            for member in tar:
                # A sparse file may claim any size.
                content = tar.extractfile(member) if member.isreg() and not member.issparse() else None
                if content is not None:
                    files[member.name.removeprefix("./")] = content.read(len(archive))
    except (tarfile.TarError, ValueError, OverflowError, EOFError):
        return files
    return files
