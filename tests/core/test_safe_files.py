"""TOML that is expensive to parse is refused, and files are written completely or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from suture.core.safe_files import create_file, parse_toml, replace_file, write_file_atomically
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
    for write in (create_file, replace_file):
        with pytest.raises(StorageError, match=r"cannot be written"):
            write(tmp_path / "text", "half a surrogate: \ud800")
    assert not list(tmp_path.iterdir())


def test_a_replaced_file_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("old")
    path.chmod(0o644)
    replace_file(path, "new")

    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o644)
    write_file_atomically(tmp_path / "fresh", b"mine")
    assert (tmp_path / "fresh").stat().st_mode & 0o777 == 0o600
