"""From what a user types to a task."""

from __future__ import annotations

from pathlib import Path

import pytest

from suture.errors import UsageError
from suture.loop.tasks import example_task, heal_task, write_task


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("def f(x):\n    ...\n", "f"),
        ("import math\n\ndef helper(x):\n    return x\n\ndef main_one(x):\n    ...\n", "main_one"),
        ("class Stack:\n    pass\n", "Stack"),
        ("Write a function merge_intervals(items) that merges.", "merge_intervals"),
        ("Write a function called merge that merges.", "merge"),
        ("Write a function that adds two numbers: add_up(a, b).", "add_up"),
        ("Write a Python function `slugify(text)`.", "slugify"),
        ("Sort it.", None),
    ],
)
def test_the_entry_point_is_read_from_the_statement(statement: str, name: str | None) -> None:
    assert write_task(statement).entry_point == name


def test_examples_in_the_statement_become_visible_checks() -> None:
    task = write_task("Write add(a, b).\n\n>>> add(1, 2)\n3\n")
    assert [check.provenance for check in task.checks] == ["visible"]


def test_an_empty_task_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="empty"):
        write_task("  \n")


def test_a_pytest_file_names_the_module_and_the_entry_point(tmp_path: Path) -> None:
    test = tmp_path / "test_merge.py"
    test.write_text(
        "import pytest\nfrom tools.merge import merge_all\n\ndef test_it():\n    assert merge_all([]) == []\n"
    )
    (tmp_path / "conftest.py").write_text("")
    task = write_task("Merge them.", test=test)
    assert (task.module, task.entry_point) == ("tools/merge.py", "merge_all")
    assert task.test_command == ("python", "-m", "pytest", "-q", "test_merge.py")
    assert set(task.files) == {"test_merge.py", "conftest.py"}


def test_a_file_of_plain_asserts_becomes_user_checks(tmp_path: Path) -> None:
    test = tmp_path / "checks.py"
    test.write_text("assert add(1, 2) == 3\nassert add(0, 0) == 0\n")
    task = write_task("Write add(a, b).", test=test)
    assert [check.provenance for check in task.checks] == ["user", "user"]
    assert task.test_command == ()


@pytest.mark.parametrize("text", ["x = 1\n", ""])
def test_a_test_file_without_a_test_is_a_usage_error(tmp_path: Path, text: str) -> None:
    test = tmp_path / "checks.py"
    test.write_text(text)
    with pytest.raises(UsageError, match="holds no test"):
        write_task("Write add(a, b).", test=test)


def test_a_pytest_file_that_imports_nothing_is_a_usage_error(tmp_path: Path) -> None:
    test = tmp_path / "test_x.py"
    test.write_text("def test_x():\n    assert True\n")
    with pytest.raises(UsageError, match="imports no module"):
        write_task("Write it.", test=test)


def test_a_missing_test_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        write_task("Write it.", test=tmp_path / "none.py")


def test_healing_needs_code_and_tests(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no Python code"):
        heal_task(tmp_path)
    (tmp_path / "a.py").write_text("a = 1\n")
    with pytest.raises(UsageError, match="no tests"):
        heal_task(tmp_path)
    task, _ = heal_task(tmp_path, test="python check.py --all")
    assert task.test_command == ("python", "check.py", "--all")
    (tmp_path / "test_a.py").write_text("def test_a(): pass\n")
    assert heal_task(tmp_path)[0].test_command == ("python", "-m", "pytest", "-q")


def test_the_example_has_checks() -> None:
    task = example_task()
    assert task.entry_point == "merge_intervals"
    assert len(task.checks) == 4
