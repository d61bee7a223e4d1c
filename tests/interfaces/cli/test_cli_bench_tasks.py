"""`suture bench tasks` prints what a model solved, and fails where nothing has a result."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from interfaces.cli.conftest import Cli, Script

TASKS = Path(__file__).parents[3] / "benchmarks" / "harbor_set"


@pytest.fixture
def model(script: Script) -> str:
    """A scripted model whose every reply solves `invoice_totals`."""
    solution = (TASKS / "invoice_totals/solution/solve.sh").read_text()
    code = solution.partition("<<'PROGRAM'\n")[2].partition("PROGRAM")[0]
    return script({"text": f"### totals.py\n```python\n{code}```\n", "repeat": True})


@pytest.mark.usefixtures("sandbox", "active_bare_python")
def test_tasks_are_measured_once(cli: Cli, model: str, home: Path) -> None:
    arguments = ("bench", "tasks", "mine", str(TASKS), "--task", "invoice_totals", "--model", model, "--json")
    result = cli(*arguments)
    assert result.exit_code == 0, result.output
    (summary,) = json.loads(result.stdout)
    assert (summary["tasks"], summary["faults"], summary["passed"][0]["estimate"]) == (1, 0, 1)
    assert "invoice_totals: solved at attempt 1" in result.stderr
    session = json.loads((home / "benchmarks/mine/task_sessions.jsonl").read_text())
    assert session["sandbox"] == "bubblewrap (level namespace)"

    again = cli(*arguments)
    assert json.loads(again.stdout) == [summary]
    assert "invoice_totals" not in again.stderr


def test_a_task_that_does_not_exist_is_a_usage_error(cli: Cli) -> None:
    result = cli("bench", "tasks", "mine", str(TASKS), "--task", "nothing")
    assert result.exit_code == 2
    assert "ids look like 'invoice_totals'" in result.stderr


@pytest.mark.usefixtures("sandbox")
def test_no_result_is_a_failure(cli: Cli, tmp_path: Path, model: str) -> None:
    task = tmp_path / "set" / "empty"
    task.mkdir(parents=True)
    (task / "task.toml").write_text("")
    result = cli("bench", "tasks", "mine", str(tmp_path / "set"), "--model", model)
    assert result.exit_code == 6
    assert "no instruction.md" in result.stderr
