"""A file of over 300 lines holds two things: whoever makes one says here why it stays in one piece."""

from __future__ import annotations

from pathlib import Path

import pytest

import suture

SOURCE = Path(suture.__file__).parent
MOST_LINES = 300
IN_ONE_PIECE = {
    "sandbox/runs/inside.py": "it is started from its text alone, as `python -c`",
}


def large_files(source: Path) -> list[str]:
    """Files that are too long; `source` is the folder of a package."""
    return sorted(
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if "own" not in path.parts  # tasks of the suite, which are nobody's code
        and len(path.read_text("utf-8").splitlines()) > MOST_LINES
    )


def test_no_file_is_too_long_but_those_that_are_named() -> None:
    assert large_files(SOURCE) == sorted(IN_ONE_PIECE)


@pytest.mark.parametrize(("lines", "found"), [(300, []), (301, ["room/part.py"])])
def test_a_large_file_is_seen(tmp_path: Path, lines: int, found: list[str]) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "part.py").write_text("x = 1\n" * lines)
    assert large_files(tmp_path) == found
