"""Suture's own conversation is gated as another agent is: it is told why its change is rejected."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
pytestmark = [pytest.mark.heavy, pytest.mark.timeout(900), pytest.mark.usefixtures("sandbox")]


@pytest.mark.parametrize("script", ["corrects", "cheats"])
def test_an_agent_is_told_the_reasons_and_ends_as_its_script_deserves(
    script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))

    row = importlib.import_module("gated_agents").gate_agent("suture", script, Path())

    assert row.told
    assert row.verdicts[0] == "rejected"
    assert row.as_expected, row
