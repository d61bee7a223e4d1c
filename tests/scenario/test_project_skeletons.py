"""Projects of which Suture provides a skeleton, and a small model writes one file."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from requirements import Require
from scenario import written_projects as written
from scenario.test_whole_projects import list_passed_checks, write_project
from suture.api import WriteOptions, solve
from suture.core.settings import Settings
from suture.errors import PrerequisiteError
from suture.sandbox import BubblewrapSandbox
from suture.testing import ScriptedModel

COMMANDS = '''```python
from todo.store import load, save


def add(text: str) -> str:
    """Add an item."""
    save([*load(), {"text": text, "done": False}])
    return f"added {text}"


def done(number: int) -> None:
    """Mark an item as done."""
    items = load()
    items[number - 1]["done"] = True
    save(items)


def list_() -> list[str]:
    """Show all items."""
    return [f"{n}. [{'x' if item['done'] else ' '}] {item['text']}" for n, item in enumerate(load(), 1)]
```'''
BOOK = """```python
from dataclasses import dataclass


@dataclass
class Book:
    title: str
```"""
STATISTICS = '''```python
def process(rows):
    """Return count, mean and most of each numeric column."""
    result = {}
    for name in rows[0] if rows else ():
        values = [row[name] for row in rows if isinstance(row[name], (int, float))]
        if values:
            result[name] = {"count": len(values), "mean": sum(values) / len(values), "most": max(values)}
    return result
```'''
UNNAMED = """```python
def process(rows):
    values = [row["amount"] for row in rows if row["amount"] is not None] or [0]
    return {"amount": [sum(values) / len(values), sorted(values)[len(values) // 2], min(values)]}
```"""
NAMED = """```python
def process(rows):
    values = [row["amount"] for row in rows if row["amount"] is not None] or [0]
    middle = sorted(values)[len(values) // 2]
    return {"amount": {"average": sum(values) / len(values), "median": middle, "min": min(values)}}
```"""
CONSTANT = '''```python
def process(rows):
    """Return nothing that depends on the rows."""
    return {"count": 5}
```'''
GREETING = '''```python
"""Greetings."""


def greeting(name: str) -> str:
    """Return a greeting."""
    return f"Hello, {name}!"
```'''
PLANTS = """```python
def growth(heights):
    "Return the growth of a plant."
    return heights[-1] - heights[0]
```"""


async def test_a_command_line_tool_is_repaired_in_its_one_file(
    settings: Settings, sandbox: BubblewrapSandbox, tmp_path: Path
) -> None:
    wrong = COMMANDS.replace('items[number - 1]["done"]', "items[number - 1].done")
    options: dict[str, Any] = {"project": "cli_tool", "into": tmp_path / "todo", "skeleton": True}

    result, model = await write_project(written.TODO_TASK, [wrong, COMMANDS], settings, sandbox, **options)

    assert result.outcome == "healed", result.reason
    assert result.candidate is not None
    assert set(result.candidate.files) == {"todo/commands.py"}
    passed = list_passed_checks(result)
    assert "as the task shows: todo list (3)" in passed
    assert "tests/test_todo.py::test_each_command_does_something" in passed
    assert result.warnings == ()
    prompt = model.calls[1].messages[-1].content
    assert "`done 1` crashes with AttributeError" in prompt
    assert "argparse" not in prompt
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    completed = subprocess.run(command, cwd=tmp_path / "todo", check=False, capture_output=True)
    assert b"4 passed" in completed.stdout, completed.stdout


async def test_a_reply_that_repeats_the_example_or_brings_a_forged_test_is_no_solution(
    settings: Settings, sandbox: BubblewrapSandbox
) -> None:
    forged = written.reply(("tests/test_greet.py", "python", "def test_x():\n    pass"))
    replies = [PLANTS, f"### greet/__init__.py\n{GREETING}\n\n{forged}"]

    result, model = await write_project(
        written.GREET_TASK, replies, settings, sandbox, project="library", skeleton=True
    )

    assert result.outcome == "healed", result.reason
    assert "the reply repeats the example" in model.calls[1].messages[-1].content
    assert result.candidate is not None
    assert set(result.candidate.files) == {"greet/__init__.py"}
    assert "assert greeting('Ada') == 'Hello, Ada!'" in list_passed_checks(result)


async def test_the_result_of_a_pipeline_must_depend_on_its_data(
    settings: Settings, sandbox: BubblewrapSandbox
) -> None:
    result, model = await write_project(
        f"{written.CSV_TASK} It is called stats.",
        [CONSTANT, STATISTICS],
        settings,
        sandbox,
        project="data_pipeline",
        skeleton=True,
    )

    assert result.outcome == "healed", result.reason
    assert "id,name,group,amount,score" in model.calls[0].messages[-1].content
    assert "other data have the same result" in model.calls[1].messages[-1].content
    assert result.reason.notes == ("project_unshown",)
    assert result.verdict is not None
    assert {outcome.provenance for outcome in result.verdict.outcomes} == {"smoke"}


async def test_the_statistics_that_a_task_names_are_named_in_the_result(
    settings: Settings, sandbox: BubblewrapSandbox
) -> None:
    task = "A data pipeline that reads a CSV file and writes mean, median and minimum of the column amount."

    result, model = await write_project(
        task, [UNNAMED, NAMED], settings, sandbox, project="data_pipeline", skeleton=True
    )

    assert result.outcome == "healed", result.reason
    assert "its result names the mean, median, min" in list_passed_checks(result)
    assert "a name for each value, so also for the mean, median, min" in model.calls[1].messages[-1].content


async def test_by_default_a_new_project_is_written_again(
    settings: Settings, sandbox: BubblewrapSandbox
) -> None:
    # With a small model, fresh replies heal more than repairs of its broken code.
    wrong = COMMANDS.replace('items[number - 1]["done"]', "items[number - 1].done")
    model = ScriptedModel([wrong, COMMANDS])
    write_options = WriteOptions(settings=settings, model=model, sandbox=sandbox, project="cli_tool")

    result = await solve(written.TODO_TASK, write_options)

    assert result.outcome == "healed", result.reason
    assert model.calls[1].messages == model.calls[0].messages


@pytest.mark.heavy
@pytest.mark.timeout(400)  # Flask is fetched
async def test_a_rest_api_is_one_dataclass(
    settings: Settings, sandbox: BubblewrapSandbox, require: Require
) -> None:
    try:
        result, _ = await write_project(
            written.BOOKS_TASK, [BOOK], settings, sandbox, project="web_app", skeleton=True
        )
    except PrerequisiteError as fault:
        require("package-index", False, fault.message)

    assert result.outcome == "healed", result.reason
    assert result.candidate is not None
    assert set(result.candidate.files) >= {"books/resources.py", "requirements.lock"}
    assert 'as the task shows: POST /books {"title": "Emma"} -> 201 (2)' in list_passed_checks(result)


async def test_another_framework_gets_no_skeleton(settings: Settings, sandbox: BubblewrapSandbox) -> None:
    task = f"Do not use Django. {written.BOOKS_TASK}"

    result, _ = await write_project(
        task, [written.BOOKS], settings, sandbox, project="web_app", skeleton=True
    )

    assert result.outcome == "healed", result.reason


async def test_the_users_test_decides_beside_those_of_the_skeleton(
    settings: Settings, sandbox: BubblewrapSandbox, tmp_path: Path
) -> None:
    test = tmp_path / "test_given.py"
    test.write_text("from todo.commands import add\n\n\ndef test_add():\n    assert add('x') == 'ADDED x'\n")

    result, model = await write_project(
        written.TODO_TASK, [COMMANDS], settings, sandbox, project="cli_tool", test=test, skeleton=True
    )

    assert result.outcome == "budget_exhausted"
    assert result.verdict is not None
    assert result.verdict.failed == {"tests/test_given.py::test_add"}
    assert "ADDED x" in model.calls[0].messages[-1].content
    assert "find_commands" not in model.calls[0].messages[-1].content


async def test_a_node_tool_without_commands_prints(
    settings: Settings, sandbox: BubblewrapSandbox, require: Require, tmp_path: Path
) -> None:
    require("node", shutil.which("node") is not None, "it is not on PATH")
    clock = "module.exports = { now: { help: 'Print the time.', run: () => new Date().toTimeString() } };"
    options: dict[str, Any] = {
        "project": "cli_tool",
        "language": "node",
        "into": tmp_path / "clock",
        "skeleton": True,
    }

    result, _ = await write_project(
        written.TIME_TASK, [f"```javascript\n{clock}\n```"], settings, sandbox, **options
    )

    assert result.outcome == "healed", result.reason
    printed = subprocess.check_output(["node", "src/index.js"], cwd=tmp_path / "clock", text=True)
    assert "GMT" in printed


BOOKS = {
    "node": "```javascript\nmodule.exports = { books: { fields: { title: String } } };\n```",
    "go": '```go\npackage main\n\ntype Book struct {\n\tTitle string `json:"title"`\n}\n\n'
    "var resources = []any{Book{}}\n```",
}


@pytest.mark.parametrize("language", BOOKS)
async def test_a_rest_api_needs_no_package_in_other_languages(
    language: str, settings: Settings, sandbox: BubblewrapSandbox, require: Require, tmp_path: Path
) -> None:
    require(language, shutil.which(language) is not None, "it is not on PATH")
    options: dict[str, Any] = {
        "project": "web_app",
        "language": language,
        "into": tmp_path / "books",
        "skeleton": True,
    }

    result, _ = await write_project(written.BOOKS_TASK, [BOOKS[language]], settings, sandbox, **options)

    assert result.outcome == "healed", result.reason
    assert 'as the task shows: POST /books {"title": "Emma"} -> 201 (2)' in list_passed_checks(result)
