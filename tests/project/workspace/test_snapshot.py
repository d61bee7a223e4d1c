"""Snapshots of a project: which files are read, skipped or refused."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest

from suture.errors import UsageError
from suture.project.workspace import take_snapshot
from suture.project.workspace.snapshot import _ProjectReader


def write_files(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return root


def test_files_are_read_as_bytes_by_posix_path(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "b.bin").write_bytes(b"\x00\xff\r\n")
    (tmp_path / "a.py").write_bytes(b"")

    snapshot = take_snapshot(tmp_path)

    assert snapshot.root == tmp_path.resolve()
    assert dict(snapshot.files) == {"a.py": b"", "pkg/b.bin": b"\x00\xff\r\n"}
    assert snapshot.skipped == {}


def test_a_single_file_can_be_a_project(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.py": "x", "b.py": "y"})
    snapshot = take_snapshot(tmp_path / "a.py")
    assert snapshot.root == tmp_path.resolve()
    assert dict(snapshot.files) == {"a.py": b"x"}


def test_files_that_are_not_code_are_skipped_with_a_reason(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "a.py": "",
            ".git/config": "",
            "node_modules/x.js": "",
            "pkg/__pycache__/a.pyc": "",
            "old.pyc": "",
            "myenv/pyvenv.cfg": "",
            "myenv/lib/x.py": "",
            ".env": "OPENAI_API_KEY=secret",
            ".env.example": "OPENAI_API_KEY=",
        },
    )
    snapshot = take_snapshot(tmp_path)

    assert set(snapshot.files) == {"a.py", ".env.example"}
    assert set(snapshot.skipped) == {
        ".env",
        ".git",
        "myenv",
        "node_modules",
        "old.pyc",
        "pkg/__pycache__",
    }
    assert snapshot.skipped[".env"] == "may_hold_secrets"


def test_ignore_rules_apply_at_every_depth_and_deeper_ones_win(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            ".gitignore": "*.log\nbuild/\n/only_here.txt\n",
            "a.log": "",
            "build/out.py": "",
            "only_here.txt": "",
            "pkg/.gitignore": "!keep.log\nlocal.py\n",
            "pkg/keep.log": "",
            "pkg/other.log": "",
            "pkg/local.py": "",
            "pkg/only_here.txt": "",
            "local.py": "",
        },
    )
    files = set(take_snapshot(tmp_path).files)

    assert files == {".gitignore", "pkg/.gitignore", "pkg/keep.log", "pkg/only_here.txt", "local.py"}


def test_a_subfolder_of_a_repository_obeys_the_rules_above_it(tmp_path: Path) -> None:
    write_files(tmp_path, {".git/info/exclude": "mine.py\n", ".gitignore": "/pkg/secret.py\n*.log\n"})
    write_files(tmp_path, {"pkg/a.py": "", "pkg/secret.py": "", "pkg/b.log": "", "pkg/mine.py": ""})
    assert set(take_snapshot(tmp_path / "pkg").files) == {"a.py"}


def test_a_named_folder_is_never_ignored_itself(tmp_path: Path) -> None:
    write_files(
        tmp_path, {".git/HEAD": "", ".gitignore": "build/\n", "build/a.py": "x", "build/.gitignore": "b.py\n"}
    )
    write_files(tmp_path, {"build/b.py": ""})
    assert set(take_snapshot(tmp_path / "build").files) == {".gitignore", "a.py"}


def test_ignore_rules_above_a_folder_without_repository_do_not_apply(tmp_path: Path) -> None:
    write_files(tmp_path, {".gitignore": "*\n", "pkg/a.py": ""})
    assert set(take_snapshot(tmp_path / "pkg").files) == {"a.py"}


def test_links_out_of_the_tree_are_not_followed(tmp_path: Path) -> None:
    outside = write_files(tmp_path / "outside", {"secret.txt": "secret", "sub/x.py": "secret"})
    project = write_files(tmp_path / "project", {"a.py": "x", ".env": "secret"})
    (project / "file_out").symlink_to(outside / "secret.txt")
    (project / "folder_out").symlink_to(outside / "sub")
    (project / "up").symlink_to("..")
    (project / "gone").symlink_to("nowhere")
    (project / "loop").symlink_to("loop")
    (project / "to_env").symlink_to(".env")
    (project / "second_name.py").symlink_to("a.py")

    snapshot = take_snapshot(project)

    assert dict(snapshot.files) == {"a.py": b"x", "second_name.py": b"x"}
    assert set(snapshot.skipped) == {
        ".env",
        "file_out",
        "folder_out",
        "gone",
        "loop",
        "to_env",
        "up",
    }


def test_special_files_are_skipped_without_opening_them(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.py": ""})
    os.mkfifo(tmp_path / "pipe")

    with socket.socket(socket.AF_UNIX) as server:
        folder = os.open(tmp_path, os.O_RDONLY)
        try:
            server.bind(f"/proc/self/fd/{folder}/socket")  # a socket address holds about 100 characters
        finally:
            os.close(folder)
        snapshot = take_snapshot(tmp_path)

    assert set(snapshot.files) == {"a.py"}
    assert snapshot.skipped == {"pipe": "not_a_regular_file", "socket": "not_a_regular_file"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_files_are_skipped(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.py": "", "closed.py": "", "closed/b.py": ""})
    (tmp_path / "closed.py").chmod(0)
    (tmp_path / "closed").chmod(0)
    snapshot = take_snapshot(tmp_path)
    (tmp_path / "closed").chmod(0o700)
    assert snapshot.skipped == {"closed": "unreadable", "closed.py": "unreadable"}


def test_files_with_names_that_no_diff_can_hold_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "new\nline.py").touch()
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/latin\xe9.py")).touch()
    (tmp_path / "fine é 你.py").touch()
    snapshot = take_snapshot(tmp_path)
    assert set(snapshot.files) == {"fine é 你.py"}
    assert len(snapshot.skipped) == 2
    assert all(entry.isprintable() or "\n" in entry for entry in snapshot.skipped)

    "".join(snapshot.skipped).encode()  # raises if it cannot be printed
    assert set(snapshot.excluded_files) == {"new\\nline.py", "latin\\udce9.py"}


def test_a_project_that_is_too_large_is_refused_with_its_largest_folders(tmp_path: Path) -> None:
    sizes = {"a.py": 1, "b/c.py": 2, "data/x/1": 300, "data/x/y/2": 300, "data/z/3": 400}
    write_files(tmp_path, {name: "x" * size for name, size in sizes.items()})
    assert len(take_snapshot(tmp_path, max_bytes=1003).files) == 5
    with pytest.raises(UsageError, match=r"most of it is in 'data/x' .*, 'data/z' .*, 'b' .*\.gitignore"):
        take_snapshot(tmp_path, max_bytes=1002)


def test_files_that_are_never_taken_do_not_count_against_the_size_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path, {"a.py": "", "key.pem": "x" * 900, "dump": "x" * 900})
    open_file = os.open

    def open_unless_dump(path: Any, *arguments: Any) -> int:
        if path == tmp_path / "dump":  # root could read it, whatever its mode is
            raise PermissionError
        return open_file(path, *arguments)

    monkeypatch.setattr(os, "open", open_unless_dump)
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path / "dump")
    snapshot = take_snapshot(tmp_path, max_bytes=800)

    assert set(snapshot.files) == {"a.py"}
    assert snapshot.skipped == {"dump": "unreadable", "key.pem": "may_hold_secrets"}


def test_a_large_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(UsageError, match="most of it is in 'sparse'"):
        take_snapshot(tmp_path)


def test_no_number_of_files_is_too_large(tmp_path: Path) -> None:
    write_files(tmp_path, {f"p{number % 60}/m{number}.py": "" for number in range(6000)})
    assert len(take_snapshot(tmp_path).files) == 6000


@pytest.mark.parametrize("name", ["nowhere", "loop", "pipe"])
def test_a_path_that_is_no_project_is_a_usage_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match=name):
        take_snapshot(tmp_path / name)


def test_a_snapshot_does_not_touch_the_files(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.py": "x", "pkg/b.py": "y"})
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    take_snapshot(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_patterns_that_backtrack_do_not_take_long(tmp_path: Path) -> None:
    write_files(tmp_path, {".gitignore": "*a" * 15 + "b\n*.log\n", "a" * 200: "", "x.log": "", "a.py": ""})
    assert set(take_snapshot(tmp_path).files) == {".gitignore", "a" * 200, "a.py"}


def test_too_many_ignore_rules_are_refused(tmp_path: Path) -> None:
    write_files(tmp_path, {".gitignore": "x\n" * 600_000, "a.py": ""})
    with pytest.raises(UsageError, match="MiB of patterns"):
        take_snapshot(tmp_path)

    write_files(
        tmp_path,
        {".gitignore": "*a*b*c*d\n" * 90_000, **{f"c{'ab' * 60}{number}d": "" for number in range(40)}},
    )
    with pytest.raises(UsageError, match="takes too long"):
        take_snapshot(tmp_path)


@pytest.mark.parametrize("name", [".gitignore", "pkg/.gitignore", ".git/info/exclude", "pkg/pyvenv.cfg"])
def test_a_pipe_in_place_of_a_rules_file_is_not_read(tmp_path: Path, name: str) -> None:
    write_files(tmp_path, {"a.py": "", "pkg/b.py": ""})
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(tmp_path / name)
    assert set(take_snapshot(tmp_path).files) == {"a.py", "pkg/b.py"}


def test_too_many_nested_folders_are_refused(tmp_path: Path) -> None:
    (tmp_path / "/".join(["d"] * 70)).mkdir(parents=True)
    with pytest.raises(UsageError, match="folders in one another"):
        take_snapshot(tmp_path)


def test_files_and_folders_that_vanish_after_they_were_listed_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path, {"a.py": "", "gone.py": "", "gone/b.py": "", "replaced/c.py": ""})
    list_folder = _ProjectReader._list_folder

    def list_and_remove(reader: _ProjectReader, folder: Path) -> list[os.DirEntry[str]]:
        entries = list_folder(reader, folder)
        if folder == tmp_path:
            (tmp_path / "gone.py").unlink()
            shutil.rmtree(tmp_path / "gone")
            shutil.rmtree(tmp_path / "replaced")
            (tmp_path / "replaced").touch()
        return entries

    monkeypatch.setattr(_ProjectReader, "_list_folder", list_and_remove)
    snapshot = take_snapshot(tmp_path)

    assert set(snapshot.files) == {"a.py"}
    assert snapshot.skipped == {}


def test_contents_that_are_kept_until_git_was_asked_count_against_the_size_limit(tmp_path: Path) -> None:
    names = [f"tests/{name}.pem" for name in ("a", "b", "c")]
    write_files(tmp_path, {"a.py": "x" * 400, **dict.fromkeys(names, "x" * 400)})

    with pytest.raises(UsageError, match="most of it is in 'tests'"):
        take_snapshot(tmp_path, max_bytes=1400)

    snapshot = take_snapshot(tmp_path, max_bytes=1600)
    assert snapshot.secrets == tuple(names)
    assert set(snapshot.files) == {"a.py"}


def test_a_link_to_a_folder_of_the_project_is_kept_as_a_link(tmp_path: Path) -> None:
    write_files(tmp_path, {"code/a.py": "a = 1\n", "deep/er/b.py": "b = 1\n"})
    (tmp_path / "lib").symlink_to("code")
    (tmp_path / "deep" / "up").symlink_to("..")
    (tmp_path / "deep" / "code").symlink_to("../code")
    snapshot = take_snapshot(tmp_path)
    assert snapshot.links == {"lib": "code", "deep/code": "code"}
    assert set(snapshot.files) == {"code/a.py", "deep/er/b.py"}
    assert "deep/up" in snapshot.skipped
