"""`suture quality` measures the code of a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from interfaces.cli.conftest import Script, Suture

pytestmark = pytest.mark.usefixtures("sandbox")
TASK = "def add(a, b):\n    '''Add.\n\n    >>> add(1, 2)\n    3\n    '''\n"
REPLY = "```python\ndef add(a, b):\n    if a is None:\n        return b\n    return a + b\n```"


def test_quality_measures_the_code_of_a_run(suture: Suture, script: Script, home: Path) -> None:
    result = suture("run", "-", "--model", script(REPLY), stdin=TASK)
    assert result.returncode == 0, result.stderr

    ledger_before = (next((home / "runs").iterdir()) / "ledger.jsonl").read_bytes()
    measurement = suture("quality", "--json", "--only", "lines", "--only", "coverage")
    assert measurement.returncode == 0, measurement.stderr

    report = json.loads(measurement.stdout)
    assert report["values"]["lines_of_code"] == 4
    assert report["values"]["statement_coverage"] == 0.75
    assert report["findings"]["coverage"] == ["solution.py:3: no test runs it"]

    docstring_report = suture("quality", "last", "--only", "docstrings")
    assert "solution.py:1: add has no docstring" in docstring_report.stdout
    assert (next((home / "runs").iterdir()) / "ledger.jsonl").read_bytes() == ledger_before


def test_quality_refuses_what_it_cannot_measure(suture: Suture, script: Script) -> None:
    assert suture("quality", "last").returncode == 2
    suture("run", "-", "--model", script("no code at all"), "--set", "budget.attempts=1", stdin=TASK)
    result = suture("quality", "last")
    assert (result.returncode, "has no code to measure" in result.stderr) == (2, True)
    result = suture("quality", "last", "--only", "speed")
    assert result.returncode == 2


def test_quality_refuses_a_run_that_changed_nothing(suture: Suture, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f(x):\n    return x\n")
    (tmp_path / "test_a.py").write_text("from a import f\n\n\ndef test_f():\n    assert f(2) == 'zebra'\n")
    suture("heal", str(tmp_path), "--test", BARE_PYTEST, "--no-model", "--set", "repair.enabled=true")

    result = suture("quality", "newest")

    assert (result.returncode, "it wrote or changed nothing" in result.stderr) == (2, True)
