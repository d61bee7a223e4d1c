"""What every room's tests share."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator

import pytest
from hypothesis import HealthCheck, settings

from requirements import Require, find_wall
from suture.sandbox import BubblewrapSandbox, Finding

# How long an example takes says more of what else the machine does than of the code.
settings.register_profile(
    "unhurried", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("unhurried")


@pytest.fixture(scope="session")
def require() -> Require:
    """`require(name, available, reason)` skips a test, or fails it where `SUTURE_REQUIRE` names the tool."""

    def check(name: str, available: bool, reason: str) -> None:
        if available:
            return
        if name in os.environ.get("SUTURE_REQUIRE", "").split(","):
            pytest.fail(f"SUTURE_REQUIRE names {name!r}, and it does not work here: {reason}")
        pytest.skip(f"{name}: {reason}")

    return check


@pytest.fixture(scope="session")
def wall() -> Finding:
    """Whether a real wall can be built on this machine."""
    return find_wall()


@pytest.fixture
async def sandbox(wall: Finding, require: Require) -> AsyncIterator[BubblewrapSandbox]:
    """A real wall, which must leave no task behind."""
    require("bubblewrap", wall.ok, f"{wall.detail} ({wall.remedy})")
    sandbox = BubblewrapSandbox()
    before = asyncio.all_tasks()
    yield sandbox
    await sandbox.close()
    left = asyncio.all_tasks() - before - {asyncio.current_task()}
    assert not left, left
