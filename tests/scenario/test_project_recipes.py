"""Whole projects by the recipes that plan or let a model use tools."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scenario import written_projects as written
from scenario.scripted_roles import to_json
from scenario.test_whole_projects import list_passed_checks, write_project
from suture.core.settings import LoopSettings, Settings
from suture.sandbox import BubblewrapSandbox


def set_recipe(settings: Settings, recipe: str) -> Settings:
    return settings.model_copy(update={"loop": LoopSettings(recipe=recipe)})


def format_created_file(path: str, text: str) -> str:
    return f"TOOL: create_file\nINPUT: {path}\n```python\n{text.strip()}\n```"


@pytest.mark.heavy
async def test_a_planned_project_is_written_in_parts_and_repaired(
    settings: Settings, sandbox: BubblewrapSandbox, tmp_path: Path
) -> None:
    plan = to_json(
        subtasks=[
            {"goal": "a store in todo/store.py", "needs": []},
            {"goal": "the commands in todo/__main__.py", "needs": [1]},
        ]
    )
    wrong = written.TODO_MAIN.replace("items[args.number - 1]", "items[args.number]")
    diagnosis = to_json(root_cause="off by one", category="wrong_logic", strategy="minimal", confidence=0.9)
    replies = [
        plan,
        format_created_file("todo/store.py", written.TODO_STORE),
        "TOOL: done",
        format_created_file("todo/__main__.py", wrong),
        written.TODO,
        diagnosis,
    ]
    recipe_settings = set_recipe(settings, "planner")
    target = tmp_path / "todo"

    result, model = await write_project(
        written.TODO_TASK, replies, recipe_settings, sandbox, project="cli_tool", into=target
    )

    assert result.outcome == "healed", result.reason
    assert "as the task shows: todo list (3)" in list_passed_checks(result)
    assert "`python -m todo` runs it" in model.calls[0].messages[-1].content
    assert "`python -m todo` runs it" in model.calls[1].messages[-1].content
    assert (target / "todo" / "store.py").exists()


@pytest.mark.heavy
async def test_an_agent_writes_and_repairs_a_project(
    settings: Settings, sandbox: BubblewrapSandbox, tmp_path: Path
) -> None:
    wrong = written.TODO_MAIN.replace("items[args.number - 1]", "items[args.number]")
    mends = "sed -i 's/items.args.number./items[args.number - 1]/' todo/__main__.py; python -m todo --help"
    replies = [
        f"### todo/store.py\n```python\n{written.TODO_STORE}\n```\n### todo/__main__.py\n```python\n{wrong}\n```",
        f"TOOL: shell {json.dumps({'command': mends})}",
    ]
    recipe_settings = set_recipe(settings, "agent")
    target = tmp_path / "todo"

    result, model = await write_project(
        written.TODO_TASK, replies, recipe_settings, sandbox, project="cli_tool", into=target
    )

    assert result.outcome == "healed", result.reason
    assert "`python -m todo` runs it" in model.calls[0].messages[-1].content
    assert "IndexError" in model.calls[1].messages[-1].content
    assert (target / "todo" / "__main__.py").read_text().count("args.number - 1") == 1
