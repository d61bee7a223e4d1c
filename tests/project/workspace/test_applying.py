from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from suture.errors import StorageError, UsageError
from suture.project.workspace import apply_changes, take_snapshot

BEFORE = {"a.py": b"x = 1\n", "pkg/b.py": b"y = 1\r\n", "gone.py": b"z\n"}
AFTER = {"a.py": b"x = 2\n", "pkg/b.py": b"y = 2\r\n", "new/deep/c.py": b"c\n"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "pkg").mkdir(parents=True)
    for name, content in BEFORE.items():
        (root / name).write_bytes(content)
    return root


def found(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


def test_the_change_is_written_and_nothing_else(root: Path) -> None:
    (root / "other.txt").write_text("mine")
    applied = apply_changes(root, BEFORE, AFTER)
    assert applied.paths == ("a.py", "gone.py", "new/deep/c.py", "pkg/b.py")
    assert found(root) == {**AFTER, "other.txt": b"mine"}


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_the_undo_patch_takes_it_back(root: Path) -> None:
    applied = apply_changes(root, BEFORE, AFTER)
    subprocess.run(
        ["git", "apply", "--whitespace=nowarn", "-"],
        cwd=root,
        env={**os.environ, "GIT_CEILING_DIRECTORIES": str(root.parent)},
        input=applied.undo.encode("utf-8", "surrogateescape"),
        check=True,
    )
    assert found(root) == BEFORE


def test_no_change_writes_nothing(root: Path) -> None:
    inode = (root / "a.py").stat().st_ino
    applied = apply_changes(root, BEFORE, BEFORE)
    assert (applied.paths, applied.undo) == ((), "")
    assert (root / "a.py").stat().st_ino == inode


def test_files_keep_their_modes_and_a_new_file_gets_the_usual_one(root: Path) -> None:
    (root / "a.py").chmod(0o751)
    (root / "usual").touch()
    apply_changes(root, BEFORE, AFTER)
    assert stat.S_IMODE((root / "a.py").stat().st_mode) == 0o751
    assert (root / "new/deep/c.py").stat().st_mode == (root / "usual").stat().st_mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_root_leaves_a_file_with_its_owner(root: Path) -> None:
    os.chown(root / "a.py", 12345, 12345)
    apply_changes(root, BEFORE, AFTER)
    assert ((root / "a.py").stat().st_uid, (root / "a.py").stat().st_gid) == (12345, 12345)


def edit(root: Path) -> None:
    (root / "pkg/b.py").write_bytes(b"my own edit\n")


def delete(root: Path) -> None:
    (root / "pkg/b.py").unlink()


def create(root: Path) -> None:
    (root / "new/deep").mkdir(parents=True)
    (root / "new/deep/c.py").write_bytes(b"mine\n")


def block(root: Path) -> None:
    (root / "new").write_bytes(b"a file where a folder should be\n")


def link_folder(root: Path) -> None:
    (root / "pkg").rename(root.parent / "elsewhere")
    (root / "pkg").symlink_to(root.parent / "elsewhere")


def link_file(root: Path) -> None:
    (root / "a.py").rename(root.parent / "elsewhere.py")
    (root / "a.py").symlink_to(root.parent / "elsewhere.py")


def pipe(root: Path) -> None:
    (root / "a.py").unlink()
    os.mkfifo(root / "a.py")


@pytest.mark.parametrize("meanwhile", [edit, delete, create, block, link_folder, link_file, pipe])
def test_a_tree_that_changed_meanwhile_is_left_alone(root: Path, meanwhile: object) -> None:
    assert callable(meanwhile)
    meanwhile(root)
    before = found(root)
    with pytest.raises(UsageError, match="nothing was written"):
        apply_changes(root, BEFORE, AFTER)
    assert found(root) == before


@pytest.mark.parametrize("path", ["../out.py", "/out.py", "pkg/../../out.py", ""])
def test_a_path_outside_is_refused(root: Path, path: str) -> None:
    with pytest.raises(UsageError, match="not inside the project"):
        apply_changes(root, {}, {path: b"x"})
    assert found(root) == BEFORE
    assert not (root.parent / "out.py").exists()


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from suture.errors import StorageError
from suture.project.workspace import apply_changes
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
root = Path(sys.argv[1])
before = {name: (root / name).read_bytes() for name in ("a.py", "pkg/b.py", "gone.py")}
try:
    apply_changes(root, before, {"a.py": b"x", "new/small.py": b"s", "pkg/b.py": b"y" * 2000})
except StorageError as fault:
    print(fault)
"""


def test_a_full_disk_changes_nothing_and_leaves_nothing(root: Path) -> None:
    child = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(root)], capture_output=True, text=True, check=True, timeout=60
    )
    assert "nothing was changed" in child.stdout
    assert found(root) == BEFORE
    assert not (root / "new").exists()


def test_a_step_that_fails_takes_those_before_it_back(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The one patch here: no real disk fails on the third rename on demand.
    renames = iter([None, None, OSError(5, "Input/output error")])
    real = Path.replace

    def replace(self: Path, target: Path) -> Path:
        fault = next(renames, None)
        if fault is not None:
            raise fault
        return real(self, target)

    modes = {path: path.stat().st_mode for path in root.rglob("*")}
    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(StorageError, match="nothing was changed"):
        apply_changes(root, BEFORE, AFTER)
    assert found(root) == BEFORE
    assert {path: path.stat().st_mode for path in root.rglob("*")} == modes


def test_an_interrupt_takes_everything_back(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.replace
    calls = []

    def replace(self: Path, target: Path) -> Path:
        calls.append(target)
        moved = real(self, target)
        if len(calls) == 2:
            raise KeyboardInterrupt  # after the rename, before anyone took note of it
        return moved

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(KeyboardInterrupt):
        apply_changes(root, BEFORE, AFTER)
    assert found(root) == BEFORE


def test_a_snapshot_can_be_changed_where_it_was_taken(root: Path) -> None:
    snapshot = take_snapshot(root)
    applied = apply_changes(snapshot.root, snapshot.files, {**snapshot.files, "a.py": b"x = 9\n"})
    assert applied.paths == ("a.py",)
    assert (root / "a.py").read_bytes() == b"x = 9\n"


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", "pkg/.GIT/config", "a\0b.py"])
def test_nothing_is_written_where_git_would_run_it(root: Path, path: str) -> None:
    with pytest.raises(UsageError, match=r"own folder|not inside the project"):
        apply_changes(root, {}, {path: b"#!/bin/sh\n"})
    assert found(root) == BEFORE


def test_what_is_saved_while_the_change_is_written_beside_stays(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def save(handle: int) -> None:
        (root / "pkg" / "b.py").write_bytes(b"mine\n")

    monkeypatch.setattr(os, "fsync", save)
    with pytest.raises(UsageError, match="changed since the run started"):
        apply_changes(root, BEFORE, AFTER)
    assert found(root) == {**BEFORE, "pkg/b.py": b"mine\n"}
