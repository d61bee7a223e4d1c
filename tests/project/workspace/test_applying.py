"""Writing a change into a project: all of it or nothing, and only over unchanged files."""

from __future__ import annotations

import os
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


def read_files(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


def test_a_change_leaves_other_files_alone(root: Path) -> None:
    (root / "other.txt").write_text("mine")
    assert apply_changes(root, BEFORE, AFTER) == ("a.py", "gone.py", "new/deep/c.py", "pkg/b.py")
    assert read_files(root) == {**AFTER, "other.txt": b"mine"}


def test_an_empty_change_writes_nothing(root: Path) -> None:
    inode = (root / "a.py").stat().st_ino
    assert apply_changes(root, BEFORE, BEFORE) == ()
    assert (root / "a.py").stat().st_ino == inode


def test_files_keep_their_modes_and_new_files_get_the_default_mode(root: Path) -> None:
    (root / "a.py").chmod(0o751)
    (root / "default").touch()
    apply_changes(root, BEFORE, AFTER)
    assert stat.S_IMODE((root / "a.py").stat().st_mode) == 0o751
    assert (root / "new/deep/c.py").stat().st_mode == (root / "default").stat().st_mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_root_keeps_the_owner_of_a_file(root: Path) -> None:
    os.chown(root / "a.py", 12345, 12345)
    apply_changes(root, BEFORE, AFTER)
    assert ((root / "a.py").stat().st_uid, (root / "a.py").stat().st_gid) == (12345, 12345)


def edit_file(root: Path) -> None:
    (root / "pkg/b.py").write_bytes(b"my own edit\n")


def delete_file(root: Path) -> None:
    (root / "pkg/b.py").unlink()


def create_file(root: Path) -> None:
    (root / "new/deep").mkdir(parents=True)
    (root / "new/deep/c.py").write_bytes(b"mine\n")


def block_folder(root: Path) -> None:
    (root / "new").write_bytes(b"a file where a folder should be\n")


def replace_folder_by_link(root: Path) -> None:
    (root / "pkg").rename(root.parent / "elsewhere")
    (root / "pkg").symlink_to(root.parent / "elsewhere")


def replace_file_by_link(root: Path) -> None:
    (root / "a.py").rename(root.parent / "elsewhere.py")
    (root / "a.py").symlink_to(root.parent / "elsewhere.py")


def replace_file_by_pipe(root: Path) -> None:
    (root / "a.py").unlink()
    os.mkfifo(root / "a.py")


@pytest.mark.parametrize(
    "disturb",
    [
        edit_file,
        delete_file,
        create_file,
        block_folder,
        replace_folder_by_link,
        replace_file_by_link,
        replace_file_by_pipe,
    ],
)
def test_a_tree_that_changed_since_the_run_is_left_alone(root: Path, disturb: object) -> None:
    assert callable(disturb)
    disturb(root)
    before = read_files(root)
    with pytest.raises(UsageError, match="nothing was written"):
        apply_changes(root, BEFORE, AFTER)
    assert read_files(root) == before


@pytest.mark.parametrize("path", ["../out.py", "/out.py", "pkg/../../out.py", ""])
def test_a_path_outside_the_project_is_refused(root: Path, path: str) -> None:
    with pytest.raises(UsageError, match="not inside the project"):
        apply_changes(root, {}, {path: b"x"})
    assert read_files(root) == BEFORE
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


def test_a_full_disk_changes_nothing(root: Path) -> None:
    child = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(root)], capture_output=True, text=True, check=True, timeout=60
    )
    assert "nothing was changed" in child.stdout
    assert read_files(root) == BEFORE
    assert not (root / "new").exists()


def test_a_failed_step_reverts_the_earlier_ones(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Patched, because no real disk fails at the third rename on demand.
    renames = iter([None, None, OSError(5, "Input/output error")])
    original = Path.replace

    def replace(self: Path, target: Path) -> Path:
        fault = next(renames, None)
        if fault is not None:
            raise fault
        return original(self, target)

    modes = {path: path.stat().st_mode for path in root.rglob("*")}

    monkeypatch.setattr(Path, "replace", replace)

    with pytest.raises(StorageError, match="nothing was changed"):
        apply_changes(root, BEFORE, AFTER)
    assert read_files(root) == BEFORE
    assert {path: path.stat().st_mode for path in root.rglob("*")} == modes


def test_an_interrupt_reverts_everything(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Path.replace
    calls = []

    def replace(self: Path, target: Path) -> Path:
        calls.append(target)
        moved = original(self, target)
        if len(calls) == 2:
            raise KeyboardInterrupt  # after the rename, before it is recorded
        return moved

    monkeypatch.setattr(Path, "replace", replace)

    with pytest.raises(KeyboardInterrupt):
        apply_changes(root, BEFORE, AFTER)
    assert read_files(root) == BEFORE


def test_a_change_of_a_snapshot_is_written_to_its_folder(root: Path) -> None:
    snapshot = take_snapshot(root)
    changed = apply_changes(snapshot.root, snapshot.files, {**snapshot.files, "a.py": b"x = 9\n"})
    assert changed == ("a.py",)
    assert (root / "a.py").read_bytes() == b"x = 9\n"


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", "pkg/.GIT/config", "a\0b.py"])
def test_nothing_is_written_into_the_git_folder(root: Path, path: str) -> None:
    with pytest.raises(UsageError, match=r"own folder|not inside the project"):
        apply_changes(root, {}, {path: b"#!/bin/sh\n"})
    assert read_files(root) == BEFORE


def test_a_file_saved_during_the_change_is_kept(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def save(handle: int) -> None:
        (root / "pkg" / "b.py").write_bytes(b"mine\n")

    monkeypatch.setattr(os, "fsync", save)

    with pytest.raises(UsageError, match="changed since the run started"):
        apply_changes(root, BEFORE, AFTER)
    assert read_files(root) == {**BEFORE, "pkg/b.py": b"mine\n"}
