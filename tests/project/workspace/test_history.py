"""Earlier versions of files are read from an untrusted repository."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from suture.errors import StorageError, UsageError
from suture.project.workspace import find_earlier_versions


def git(root: Path, *arguments: str, stdin: bytes = b"") -> str:
    identity = {f"GIT_{role}_{what}": "a" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    process = subprocess.run(
        ["git", *arguments],
        cwd=root,
        env={**os.environ, **identity},
        input=stdin,
        capture_output=True,
        check=True,
    )
    return process.stdout.decode().strip()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    parent: list[str] = []
    for number, message in enumerate([b"first", b"--help", b"", b"last"]):
        (tmp_path / "m.py").write_text(f"x = {number}\n")
        git(tmp_path, "add", "m.py")
        commit = git(tmp_path, "commit-tree", git(tmp_path, "write-tree"), *parent, stdin=message)
        parent = ["-p", commit]
        git(tmp_path, "update-ref", "HEAD", commit)
    return tmp_path


def test_a_commit_without_a_subject_does_not_shift_the_others(root: Path) -> None:
    states = find_earlier_versions(root, {"m.py": b"x = 3\n"}, None, lambda _: True)
    assert [state.subject for state in states] == ["last", "", "--help", "first"]


def test_a_missing_object_is_an_error_only_if_it_is_needed(root: Path) -> None:
    blob = git(root, "rev-parse", "HEAD~1:m.py")
    (root / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    assert find_earlier_versions(root, {"m.py": b"x = 3\n"}, None, lambda _: True) == ()
    with pytest.raises(StorageError, match="lacks its object"):
        find_earlier_versions(root, {"m.py": b"x = 3\n"}, "HEAD~3", lambda _: True)


@pytest.mark.parametrize("since", ["HEAD\0", "\ud800"])
def test_a_commit_name_that_no_command_line_can_hold_is_refused(root: Path, since: str) -> None:
    with pytest.raises(UsageError, match="no commit"):
        find_earlier_versions(root, {"m.py": b"x = 3\n"}, since, lambda _: True)
