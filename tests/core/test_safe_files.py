"""TOML that is expensive to parse is refused, and files are written completely or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from faults import count_steps, run_killed
from suture.core.safe_files import create_file, parse_toml, write_file_atomically, write_text_atomically
from suture.errors import StorageError


@pytest.mark.parametrize("part", ["a", '"a"', "'a'", '"a\\"b"', "'a\\'"])
def test_a_key_of_many_parts_is_refused(part: str) -> None:
    assert parse_toml(".".join([part] * 31) + " = 1")
    with pytest.raises(ValueError, match="more than 32 parts"):
        parse_toml(".".join([part] * 33) + " = 1")


def test_a_text_of_escaped_quotes_is_parsed_in_linear_time() -> None:
    # A scan from each quote to the end would take hours, so the test's time limit would fail it.
    assert parse_toml("text = '" + '"\\' * 200_000 + "'") == {"text": '"\\' * 200_000}
    with pytest.raises(ValueError, match="string"):
        parse_toml('"\\' * 200_000)


def test_create_file_does_not_overwrite_a_file(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "suture.toml"
    assert create_file(path, "one\n")
    assert not create_file(path, "two\n")
    assert path.read_text() == "one\n"
    assert [file.name for file in path.parent.iterdir()] == ["suture.toml"]


def test_a_failed_write_leaves_no_file(tmp_path: Path) -> None:
    for write in (create_file, write_text_atomically):
        with pytest.raises(StorageError, match=r"cannot be written"):
            write(tmp_path / "text", "half a surrogate: \ud800")
    assert not list(tmp_path.iterdir())


def test_a_replaced_file_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("old")
    path.chmod(0o644)
    write_text_atomically(path, "new")

    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o644)
    write_file_atomically(tmp_path / "fresh", b"mine")
    assert (tmp_path / "fresh").stat().st_mode & 0o777 == 0o600


def test_a_killed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("old")
    steps_with_remains = 0
    for step in range(count_steps(lambda: write_file_atomically(target, b"new"))):
        target.write_text("old")
        assert run_killed(step, lambda: write_file_atomically(target, b"new"))
        assert target.read_text() == "old"
        remains = [path for path in tmp_path.iterdir() if path != target]
        steps_with_remains += bool(remains)
        for path in remains:
            path.unlink()
    assert steps_with_remains == 2  # between giving the new file a name and the rename, it is only closed


@pytest.mark.parametrize("code", [errno.EOPNOTSUPP, errno.EINVAL, errno.EACCES])
def test_a_file_system_that_requires_names_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    open_file = os.open

    def refuse_unnamed(path: Path, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(code, os.strerror(code))
        return open_file(path, flags, mode)

    monkeypatch.setattr(os, "open", refuse_unnamed)
    write_file_atomically(tmp_path / "file", b"new")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"new")]


def test_a_system_that_cannot_name_an_open_file_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))  # /proc is not mounted

    monkeypatch.setattr(os, "link", refuse)
    write_file_atomically(tmp_path / "file", b"new")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"new")]
