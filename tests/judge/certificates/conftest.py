"""A small project with two bugs' worth of tests, healed for real by a scripted model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from suture.api import HealOptions, heal
from suture.core.records import Result
from suture.core.settings import BudgetSettings, CertificationSettings, PathSettings, RepairSettings, Settings
from suture.sandbox import BubblewrapSandbox
from suture.testing import ScriptedModel

CODE = '''\
"""Prices."""


def total(prices, discount):
    """Add up prices."""
    result = 0
    for price in prices:
        result += price
    if result > 100:
        result -= discount
    return result


def cheapest(prices):
    return max(prices)
'''
FIXED = CODE.replace("result > 100", "result >= 100").replace("max(prices)", "min(prices)")
NOISY = FIXED.replace('"""Prices."""', '"""Prices, which start from nothing."""')
"""With an edit that stands apart from the others, and that no test needs."""
TESTS = """\
from shop.prices import cheapest, total


def test_adds():
    assert total([1, 2], 1) == 3


def test_discount():
    assert total([60, 40], 10) == 90


def test_cheapest():
    assert cheapest([3, 1, 2]) == 1
"""
COMMAND = BARE_PYTEST

Healed = Callable[..., Awaitable[Result]]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Runs in the test's own folder, and few mutants."""
    return Settings(
        paths=PathSettings(home=tmp_path / "home"),
        budget=BudgetSettings(attempts=4, seconds=600),
        certification=CertificationSettings(mutants=4, seconds=300),
        repair=RepairSettings(enabled=False),
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The broken project."""
    root = tmp_path / "project"
    (root / "shop").mkdir(parents=True)
    (root / "tests").mkdir()
    (root / "shop" / "__init__.py").write_text("")
    (root / "shop" / "prices.py").write_text(CODE)
    (root / "tests" / "test_prices.py").write_text(TESTS)
    (root / "conftest.py").write_text("")
    return root


@pytest.fixture
def healed(project: Path, settings: Settings, sandbox: BubblewrapSandbox) -> Healed:
    """`await healed(apply=True, ...)`: heal the project; the reply has more edits than are needed."""

    async def run(
        *,
        root: Path | None = None,
        test: str = COMMAND,
        text: str = NOISY,
        using: Settings | None = None,
        **how: object,
    ) -> Result:
        reply = f"### shop/prices.py\n```python\n{text}\n```"
        options = HealOptions(
            test=test, settings=using or settings, model=ScriptedModel([reply] * 4), sandbox=sandbox
        )
        return await heal(root or project, replace(options, **how))  # type: ignore[arg-type]

    return run
