import json
from pathlib import Path

import pytest

import inventory

ROOT = Path(__file__).parents[1]
CASES = json.loads((ROOT / "cases.json").read_text())


@pytest.mark.parametrize("name", sorted(CASES))
def test_cases(name):
    for case in CASES[name]:
        assert getattr(inventory, name)(*case["arguments"]) == case["expected"]


def test_render_report():
    items = [{"name": "nut", "count": 3}, {"name": "bolt", "count": 10}]
    assert inventory.render_report(items) == (ROOT / "golden" / "report.txt").read_text()
