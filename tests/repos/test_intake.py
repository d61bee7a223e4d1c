"""The language of a project, the files that may change in it, and the file that is shown first."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from project_files import write_files
from suture.agents.context.file_selection import select_named_files
from suture.errors import UsageError
from suture.loop.intake.heal_task import build_heal_task
from suture.project.workspace import is_protected

FILES = {
    "a.js": "",
    "lib/b.go": "",
    "check.js": "",
    "a.test.js": "",
    "lib/b_test.go": "",
    "__tests__/c.js": "",
    "package-lock.json": "{}",
    "package.json": '{"scripts": {"test": "node check.js"}}',
}


def write_project(root: Path, *extra_paths: str) -> Path:
    return write_files(root, {**FILES, **dict.fromkeys(extra_paths, "")})


def test_the_command_decides_the_language_and_its_script_is_protected(tmp_path: Path) -> None:
    task, snapshot = build_heal_task(write_project(tmp_path))
    assert (task.language, task.test_command) == ("javascript", ("npm", "test"))
    assert [name for name in snapshot.files if not is_protected(name, task.protected)] == ["a.js", "lib/b.go"]
    assert build_heal_task(tmp_path, test="go test ./...")[0].language == "go"
    assert build_heal_task(tmp_path, test="go test ./...")[0].test_origin == ""


def test_the_files_decide_the_language_of_a_neutral_command(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not tell which language"):
        build_heal_task(write_project(tmp_path), test="make test")
    assert build_heal_task(tmp_path, test="make test", only=["*.go"])[0].language == "go"
    write_project(tmp_path, "c.py")
    assert build_heal_task(tmp_path, test="make test")[0].language == "python"


def test_tests_recognised_by_content_are_run_and_protected(tmp_path: Path) -> None:
    case = "from unittest import TestCase\n\nclass TestA(TestCase):\n    def test_a(self): ...\n"
    write_files(tmp_path, {"shop.py": "", "tests.py": case, "lib/odd.py": "def test_odd(n): ...\n"})
    task, snapshot = build_heal_task(tmp_path, python=Path(sys.prefix))

    assert task.test_command[-1] == "tests.py"
    unprotected = [name for name in snapshot.files if not is_protected(name, task.protected)]
    assert unprotected == ["lib/odd.py", "shop.py"]
    assert is_protected("tests.py", build_heal_task(tmp_path, test="python -m unittest")[0].protected)


def test_a_language_without_code_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_text("module m\n")
    (tmp_path / "a_test.go").write_text("package m\n")
    (tmp_path / "a.py").write_text("")
    with pytest.raises(UsageError, match="no Go code to heal"):
        build_heal_task(tmp_path)


def test_the_file_named_in_the_output_comes_first() -> None:
    files = {f"lib/{name}.js": b"x" for name in ("alpha", "beta", "gamma", "delta")}
    files |= {"lib/test.js": b"require('./gamma')", "lib/raw.js": b"\xff\xfe", "beta.py": b""}
    output = "TypeError: x is not a function\n    at f (/box/lib/delta.js:3:5)\nbeta failed"
    selected = select_named_files(files, output, {"lib/test.js"}, "javascript")

    assert list(selected) == ["lib/delta.js", "lib/beta.js", "lib/gamma.js", "lib/alpha.js"]

    with pytest.raises(UsageError, match="no Go file can be repaired"):
        select_named_files(files, output, (), "go")
