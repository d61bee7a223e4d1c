"""The `sandbox` fixture of this package runs each test in all three modes of bubblewrap."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from requirements import Require
from suture.errors import SandboxUnavailable
from suture.sandbox import BubblewrapSandbox, Requirement


@pytest.fixture(params=["warm", "spare", "cold"])
async def sandbox(
    request: pytest.FixtureRequest, sandbox_requirement: Requirement, require: Require
) -> AsyncIterator[BubblewrapSandbox]:
    """A real sandbox, which must leave no task behind."""
    require(
        "bubblewrap", sandbox_requirement.ok, f"{sandbox_requirement.detail} ({sandbox_requirement.remedy})"
    )
    sandbox = BubblewrapSandbox(mode=request.param)
    before = asyncio.all_tasks()
    try:
        await sandbox.capabilities()
    except SandboxUnavailable as fault:
        require("bubblewrap", False, f"no {request.param} wall: {fault}")
    yield sandbox
    await sandbox.close()
    left = asyncio.all_tasks() - before - {asyncio.current_task()}
    assert not left, left
