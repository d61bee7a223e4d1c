"""Temporary folders end with their process, and no later than the next folder of their kind."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path

import pytest

from faults import fault_at, raise_error, start_fork
from suture.core.temporary_folders import folder_suffix, temporary_folder
from suture.errors import StorageError


def leave_folder(parent: Path) -> None:
    """Leave what a process leaves that is killed while it uses a temporary folder."""

    def be_killed() -> None:
        with temporary_folder("suture-test-", parent) as folder:
            (folder / "file").write_text("of a killed process")
            os.kill(os.getpid(), signal.SIGKILL)

    os.waitpid(start_fork(be_killed), 0)


def test_a_folder_is_removed_with_its_content(tmp_path: Path) -> None:
    with temporary_folder("suture-test-", tmp_path) as folder:
        (folder / "inner").mkdir(mode=0o500)
        assert list(tmp_path.iterdir()) == [folder]
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_a_killed_process_is_removed_by_the_next_one(tmp_path: Path) -> None:
    leave_folder(tmp_path)
    (abandoned,) = tmp_path.iterdir()
    with temporary_folder("suture-test-", tmp_path) as folder:
        assert list(tmp_path.iterdir()) == [folder] != [abandoned]


def test_only_abandoned_folders_of_the_same_kind_are_removed(tmp_path: Path) -> None:
    suffix = folder_suffix()
    others = ("suture-test-of-another-machine.01234567.locked", "suture-test-of-an-earlier-version", "mine")
    for name in (f"suture-tests{suffix}", *others):
        (tmp_path / name).mkdir()
    target = tmp_path / "mine"
    (tmp_path / f"suture-test-link{suffix}").symlink_to(target)
    (tmp_path / f"suture-test-file{suffix}").write_text("no folder")
    before = set(tmp_path.iterdir())
    with (
        temporary_folder("suture-test-", tmp_path) as first,
        temporary_folder("suture-test-", tmp_path) as second,
    ):
        assert set(tmp_path.iterdir()) == {*before, first, second}


@pytest.mark.parametrize("step", [0, 1])
def test_a_folder_that_cannot_be_made_is_an_error_with_a_remedy(tmp_path: Path, step: int) -> None:
    is_broken = fault_at(step, raise_error(errno.EMFILE), match="suture-test-")
    with is_broken, pytest.raises(StorageError, match="no temporary folder") as refusal:
        temporary_folder("suture-test-", tmp_path).__enter__()
    assert "TMPDIR" in refusal.value.remedy
    assert list(tmp_path.iterdir()) == []
