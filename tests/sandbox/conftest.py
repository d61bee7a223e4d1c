"""What holds of one wall holds of the other: each test of this room runs against both."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from requirements import Require
from suture.sandbox import BubblewrapSandbox, Finding


@pytest.fixture(params=["warm", "cold"])
async def sandbox(
    request: pytest.FixtureRequest, wall: Finding, require: Require
) -> AsyncIterator[BubblewrapSandbox]:
    """A real wall, which must leave no task behind."""
    require("bubblewrap", wall.ok, f"{wall.detail} ({wall.remedy})")
    sandbox = BubblewrapSandbox(cold=request.param == "cold")
    before = asyncio.all_tasks()
    found = await sandbox.capabilities()
    require("bubblewrap", found.mode == request.param, f"no warm wall: {found.reason}")
    yield sandbox
    await sandbox.close()
    left = asyncio.all_tasks() - before - {asyncio.current_task()}
    assert not left, left
