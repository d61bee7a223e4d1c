"""Whole hidden test programs of the data sets under the split verdict; skipped without the data sets."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from judge.conftest import DataSet
from suture.core.records import CheckOutcome
from suture.core.settings import SandboxSettings
from suture.judge import grade_program
from suture.sandbox import Sandbox

MAX_PARALLEL = 2


async def grade_all(
    tasks: list[dict[str, Any]],
    code: Callable[[dict[str, Any]], str],
    sandbox: Sandbox,
    settings: SandboxSettings,
) -> dict[str, CheckOutcome]:
    gate = asyncio.Semaphore(MAX_PARALLEL)

    async def grade_one(task: dict[str, Any]) -> CheckOutcome:
        async with gate:
            entry = task["entry_point"]
            graded = await grade_program(
                code(task), task["hidden_tests"], sandbox, settings, entry_point=entry
            )
            return graded.outcome

    outcomes = await asyncio.gather(*map(grade_one, tasks))
    return dict(zip((task["id"] for task in tasks), outcomes, strict=True))


def drop_return_value(task: dict[str, Any]) -> str:
    """Return the reference with an entry point that does its work but returns `None`."""
    name = task["entry_point"]
    assert any(isinstance(n, ast.FunctionDef) and n.name == name for n in ast.parse(task["reference"]).body)
    return f"{task['reference']}\n_right = {name}\ndef {name}(*args):\n    _right(*args)\n"


async def test_human_eval_references_pass_and_mutants_fail(
    data_set: DataSet, sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    tasks = data_set("humaneval")[::4]
    right = await grade_all(tasks, lambda task: str(task["reference"]), sandbox, sandbox_settings)
    assert {name for name, outcome in right.items() if not outcome.passed} == set()
    assert {outcome.evidence for outcome in right.values()} == {"split"}
    wrong = await grade_all(tasks[::4], drop_return_value, sandbox, sandbox_settings)
    assert {name for name, outcome in wrong.items() if outcome.passed} == set()


async def test_quixbugs_references_pass_and_their_bugs_fail(
    data_set: DataSet, sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    settings = sandbox_settings.model_copy(update={"check_timeout_s": 3})
    tasks = [task for task in data_set("quixbugs")[::3] if task["entry_point"] != "levenshtein"]
    right = await grade_all(tasks, lambda task: str(task["reference"]), sandbox, sandbox_settings)
    wrong = await grade_all(tasks, lambda task: str(task["buggy"]), sandbox, settings)
    assert {name for name, outcome in right.items() if not outcome.passed} == set()
    assert {name for name, outcome in wrong.items() if outcome.passed} == set()

    with_nodes = {t["id"] for t in tasks if "class Node" in t["hidden_tests"]}
    assert {name for name, outcome in right.items() if outcome.evidence == "nonce"} <= with_nodes


@pytest.mark.parametrize("name", ["mbpp_sanitized"])
async def test_other_references_pass(
    data_set: DataSet, sandbox: Sandbox, sandbox_settings: SandboxSettings, name: str
) -> None:
    tasks = data_set(name)[::20]
    right = await grade_all(tasks, lambda task: str(task["reference"]), sandbox, sandbox_settings)
    assert {task for task, outcome in right.items() if not outcome.passed} == set()
