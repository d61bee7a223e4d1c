"""A small project with two bugs, healed by a scripted model in a real sandbox."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from suture.api import HealOptions, heal
from suture.core.records import Result
from suture.core.settings import Settings
from suture.sandbox import BubblewrapSandbox, Capabilities, Channel, RunRequest, RunResult
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
"""The fix with a further edit, elsewhere in the file, that no test needs."""
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

RunHeal = Callable[..., Awaitable[Result]]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Write the broken project."""
    root = tmp_path / "project"
    (root / "shop").mkdir(parents=True)
    (root / "tests").mkdir()
    (root / "shop" / "__init__.py").write_text("")
    (root / "shop" / "prices.py").write_text(CODE)
    (root / "tests" / "test_prices.py").write_text(TESTS)
    (root / "conftest.py").write_text("")
    return root


@pytest.fixture
def run_heal(project: Path, settings: Settings, sandbox: BubblewrapSandbox) -> RunHeal:
    """Return a function that heals the project: `await run_heal(apply=True, ...)`.

    The model's reply has one edit more than the tests need, unless `text` says otherwise.
    """

    async def heal_project(
        *,
        root: Path | None = None,
        test: str = COMMAND,
        text: str = NOISY,
        run_settings: Settings | None = None,
        **overrides: object,
    ) -> Result:
        reply = f"### shop/prices.py\n```python\n{text}\n```"
        options = HealOptions(
            test=test, settings=run_settings or settings, model=ScriptedModel([reply] * 4), sandbox=sandbox
        )
        return await heal(root or project, replace(options, **overrides))  # type: ignore[arg-type]

    return heal_project


class SandboxWrapper:
    """A sandbox that passes everything on to a real one; tests override `run`."""

    name = "wrapper"

    def __init__(self, sandbox: BubblewrapSandbox) -> None:
        self._sandbox = sandbox

    async def run(self, request: RunRequest) -> RunResult:
        return await self._sandbox.run(request)

    def open(self, request: RunRequest) -> AbstractAsyncContextManager[Channel]:
        return self._sandbox.open(request)

    async def capabilities(self) -> Capabilities:
        return await self._sandbox.capabilities()

    async def close(self) -> None:
        await self._sandbox.close()
