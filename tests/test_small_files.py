"""A file of under 40 lines with one user is a part of its user: a reader opens one file in place of two.

A package's `__init__` that hands a name on is no user. What nobody imports is found by its name: a command, a
migration, a program that is started.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import suture
from test_circles import imports

SOURCE = Path(suture.__file__).parent
SMALL_LINES = 40
SENT_BEHIND_THE_WALL = ("checks/command/report_plugin/", "repair/inside/", "sandbox/zygote/inside/")
APART = {
    "cli/terminal/editor.py": "starts a process, which test_layers allows by file",
}


def small_parts(source: Path) -> list[str]:
    """Files that their only user could hold; `source` is the folder of a package called suture."""
    users: dict[str, list[Path]] = {}
    for name, imported in imports(source).items():
        for other in imported:
            users.setdefault(other, []).append(source / Path(*name.split(".")[1:]))
    return sorted(
        file
        for path in source.rglob("*.py")
        if "own" not in path.parts  # tasks of the suite, which are nobody's code
        and path.name != "__init__.py"
        and len(path.read_text("utf-8").splitlines()) < SMALL_LINES
        and len(known := users.get(".".join(("suture", *path.relative_to(source).with_suffix("").parts)), []))
        == 1
        and not known[0].is_dir()
        and not (file := path.relative_to(source).as_posix()).startswith(SENT_BEHIND_THE_WALL)
    )


def test_a_small_file_with_one_user_is_a_part_of_its_user() -> None:
    assert small_parts(SOURCE) == sorted(APART)


@pytest.mark.parametrize(
    ("users", "lines", "found"),
    [
        (("a.py",), 39, True),
        (("a.py",), 40, False),
        (("a.py", "b.py"), 5, False),
        (("__init__.py",), 5, False),
    ],
)
def test_a_small_part_is_seen(tmp_path: Path, users: tuple[str, ...], lines: int, found: bool) -> None:
    (tmp_path / "part.py").write_text("x = 1\n" * lines)
    for user in users:
        (tmp_path / user).write_text("from suture.part import x\n")
    assert small_parts(tmp_path) == (["part.py"] if found else [])
