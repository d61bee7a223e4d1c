"""The search repairs a project whose test command is unittest, and unittest judges the repair."""

from __future__ import annotations

from pathlib import Path

import pytest

from run_events import read_events
from suture.api import HealOptions, heal
from suture.core.settings import Settings, load_settings
from suture.testing import ScriptedModel

CODE = '''"""Prices."""


def cheapest(prices):
    """The lowest of the prices."""
    best = prices[0]
    for price in prices:
        if price > best:
            best = price
    return best
'''
TESTS = """import unittest

from shop import cheapest


class CheapestTest(unittest.TestCase):
    def test_last(self):
        self.assertEqual(cheapest([3, 2, 1]), 1)

    def test_middle(self):
        self.assertEqual(cheapest([5, 4, 9]), 4)

    def test_one(self):
        self.assertEqual(cheapest([7]), 7)
"""


@pytest.mark.timeout(300)  # the search is slow on a busy machine
async def test_a_unittest_project_heals_without_a_model(tmp_path: Path, settings: Settings) -> None:
    project = tmp_path / "project"
    (project / "tests").mkdir(parents=True)
    (project / "shop.py").write_text(CODE)
    (project / "tests" / "__init__.py").write_text("")
    (project / "tests" / "test_shop.py").write_text(TESTS)
    searching = load_settings(tmp_path, {"paths.home": str(settings.paths.home)}).settings

    result = await heal(
        project,
        HealOptions(
            test="python -m unittest discover -t . -s tests", settings=searching, model=ScriptedModel([])
        ),
    )

    assert (result.outcome, result.evidence) == ("healed", "exit_status"), result.reason
    assert "+        if price < best:" in result.diff
    assert result.spend.model_calls == 0
    events = read_events(settings.paths.home, result.run_id)
    (started,) = (event.data for event in events if event.kind == "search.started")
    assert started["failing"] == 2
