"""Whole projects by the recipes that plan or let a model use tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from scenario import written_projects as written
from scenario.scripted_roles import as_json
from scenario.test_whole_projects import facts, make
from suture.core.settings import LoopSettings, Settings
from suture.sandbox import BubblewrapSandbox


def by_recipe(settings: Settings, recipe: str) -> Settings:
    return settings.model_copy(update={"loop": LoopSettings(recipe=recipe)})


def created(path: str, text: str) -> str:
    return f"TOOL: create_file\nINPUT: {path}\n```python\n{text.strip()}\n```"


@pytest.mark.heavy
async def test_a_plan_makes_a_project_part_by_part_and_its_failure_is_repaired(
    settings: Settings, sandbox: BubblewrapSandbox, tmp_path: Path
) -> None:
    plan = as_json(
        subtasks=[
            {"goal": "a store in todo/store.py", "needs": []},
            {"goal": "the commands in todo/__main__.py", "needs": [1]},
        ]
    )
    wrong = written.TODO_MAIN.replace("items[args.number - 1]", "items[args.number]")
    diagnosis = as_json(root_cause="off by one", category="wrong_logic", strategy="minimal", confidence=0.9)
    replies = [
        plan,
        created("todo/store.py", written.TODO_STORE),
        "TOOL: done",
        created("todo/__main__.py", wrong),
        written.TODO,
        diagnosis,
    ]
    chosen = by_recipe(settings, "planner")
    into = tmp_path / "todo"
    result, model = await make(written.TODO_TASK, replies, chosen, sandbox, project="cli_tool", into=into)
    assert result.outcome == "healed", result.reason
    assert "as the task shows: todo list (3)" in facts(result)
    assert "`python -m todo` runs it" in model.calls[0].messages[-1].content
    assert "`python -m todo` runs it" in model.calls[1].messages[-1].content
    assert (into / "todo" / "store.py").exists()


@pytest.mark.heavy
async def test_an_agent_makes_a_project_with_tools(
    settings: Settings, sandbox: BubblewrapSandbox, tmp_path: Path
) -> None:
    replies = [
        created("todo/store.py", written.TODO_STORE),
        created(
            "todo/__main__.py", written.TODO_MAIN.replace("items[args.number - 1]", "items[args.number]")
        ),
        "TOOL: run_tests",
        "TOOL: shell\n```sh\nsed -i 's/items.args.number./items[args.number - 1]/' todo/__main__.py\n"
        "python -m todo --help\n```",
        "TOOL: run_tests",
    ]
    chosen = by_recipe(settings, "agent")
    into = tmp_path / "todo"
    result, model = await make(written.TODO_TASK, replies, chosen, sandbox, project="cli_tool", into=into)
    assert result.outcome == "healed", result.reason
    assert "`python -m todo` runs it" in model.calls[0].messages[-1].content
    prompt = model.calls[3].messages[-1].content
    assert "IndexError" in prompt
    assert "usage: todo" in model.calls[4].messages[-1].content
    assert (into / "todo" / "__main__.py").read_text().count("args.number - 1") == 1
