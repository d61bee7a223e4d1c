"""`suture quality`, as a user types it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Suture = Callable[..., subprocess.CompletedProcess[str]]
Script = Callable[..., str]

pytestmark = pytest.mark.usefixtures("sandbox")
TASK = "def add(a, b):\n    '''Add.\n\n    >>> add(1, 2)\n    3\n    '''\n"
REPLY = "```python\ndef add(a, b):\n    if a is None:\n        return b\n    return a + b\n```"


def test_the_code_of_a_written_function_is_measured(suture: Suture, script: Script, home: Path) -> None:
    done = suture("run", "-", "--model", script(REPLY), stdin=TASK)
    assert done.returncode == 0, done.stderr
    before = (next((home / "runs").iterdir()) / "ledger.jsonl").read_bytes()
    told = suture("quality", "--json", "--only", "lines", "--only", "coverage")
    assert told.returncode == 0, told.stderr
    found = json.loads(told.stdout)
    assert found["values"]["lines_of_code"] == 4
    assert found["values"]["statement_coverage"] == 0.75
    assert found["findings"]["coverage"] == ["solution.py:3: no test runs it"]
    shown = suture("quality", "last", "--only", "docstrings")
    assert "solution.py:1: add has no docstring" in shown.stdout
    assert (next((home / "runs").iterdir()) / "ledger.jsonl").read_bytes() == before


def test_what_cannot_be_measured_is_an_error(suture: Suture, script: Script) -> None:
    assert suture("quality", "last").returncode == 2
    suture("run", "-", "--model", script("no code at all"), "--set", "budget.attempts=1", stdin=TASK)
    done = suture("quality", "last")
    assert (done.returncode, "has no code to measure" in done.stderr) == (2, True)
    done = suture("quality", "last", "--only", "speed")
    assert done.returncode == 2
