"""Law 1: hidden tests never reach a prompt or any file of a run."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from requirements import Require
from suture.api import WriteOptions, solve
from suture.core.ledger import RunFolder, find_run
from suture.core.settings import BudgetSettings, PathSettings, Settings
from suture.judge import grade_program
from suture.sandbox import open_sandbox
from suture.testing import ScriptedModel

CANARY = "canary_7c1f0e_never_in_a_prompt"


def find_files_with(text: str, folder: RunFolder) -> list[str]:
    """Return the run's files that contain the text: prompts, replies, blobs and the ledger."""
    needle = text.encode()
    return [str(path) for path in folder.path.rglob("*") if path.is_file() and needle in path.read_bytes()]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        paths=PathSettings(home=tmp_path / "home"), budget=BudgetSettings(attempts=6, seconds=100)
    )


def load_humaneval(require: Require, count: int) -> list[dict[str, Any]]:
    data = os.environ.get("SUTURE_DATA")
    require("data", data is not None, "SUTURE_DATA is not set")
    with gzip.open(Path(str(data)) / "humaneval" / "tasks.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line, _ in zip(lines, range(count), strict=False)]


async def test_a_run_and_its_grading_store_no_hidden_test(settings: Settings) -> None:
    statement = "Write a function add(a, b).\n\n>>> add(1, 2)\n3\n"
    hidden = f"{CANARY} = 5\nassert add(2, 3) == {CANARY}\n"
    wrong = [f"```python\ndef add(a, b):\n    return a - b + {n}\n```" for n in range(10)]

    result = await solve(statement, WriteOptions(settings=settings, model=ScriptedModel(wrong)))

    assert result.candidate is not None
    sandbox = open_sandbox(settings.sandbox)
    grading = await grade_program(result.candidate.files["solution.py"], hidden, sandbox, settings.sandbox)
    await sandbox.close()
    assert not grading.passed
    assert find_files_with(CANARY, find_run(settings.paths.home, result.run_id)) == []


async def test_a_leaked_canary_is_found(settings: Settings) -> None:
    statement = f"Write a function add(a, b). {CANARY}\n\n>>> add(1, 2)\n3\n"
    reply = "```python\ndef add(a, b):\n    return a + b\n```"
    result = await solve(statement, WriteOptions(settings=settings, model=ScriptedModel([reply])))
    found = find_files_with(CANARY, find_run(settings.paths.home, result.run_id))
    assert any("/replies/" in path for path in found)


@pytest.mark.parametrize("number", range(3))
async def test_benchmark_prompts_contain_no_hidden_test(
    settings: Settings, require: Require, number: int
) -> None:
    record = load_humaneval(require, number + 1)[number]
    replies = [f"```python\n{record['prompt']}    return {n}\n```" for n in range(10)]

    result = await solve(
        record["prompt"],
        WriteOptions(entry_point=record["entry_point"], settings=settings, model=ScriptedModel(replies)),
    )

    assert result.outcome != "healed"
    prompt_lines = {line.strip() for line in record["prompt"].splitlines()}
    hidden = [line.strip() for line in record["hidden_tests"].splitlines() if "assert candidate" in line]
    hidden = [line for line in hidden if line not in prompt_lines]
    assert hidden
    folder = find_run(settings.paths.home, result.run_id)
    assert [line for line in hidden if find_files_with(line, folder)] == []
