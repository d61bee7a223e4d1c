"""Fixtures for sandbox tests; `sandbox` and `mode` run each test in all three modes of bubblewrap."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from requirements import Require
from suture.errors import SandboxUnavailable
from suture.sandbox import BubblewrapSandbox, Requirement, StartMode
from suture.sandbox.bubblewrap.root_staging import is_reachable


@pytest.fixture
def bubblewrap_works(sandbox_requirement: Requirement, require: Require) -> None:
    """Skip the test, or fail it where bubblewrap is required, if bubblewrap does not work on this machine."""
    require(
        "bubblewrap", sandbox_requirement.ok, f"{sandbox_requirement.detail} ({sandbox_requirement.remedy})"
    )


@pytest.fixture
def reachable_bubblewrap(sandbox_requirement: Requirement, require: Require) -> str:
    """The path of a working bubblewrap that other users can execute, so that a script of theirs can call it."""
    path = sandbox_requirement.detail.split()[0]
    require(
        "bubblewrap",
        sandbox_requirement.ok and is_reachable(path),
        f"{sandbox_requirement.detail}, for other users too",
    )
    return path


MODES = ["warm", *(pytest.param(mode, marks=pytest.mark.heavy) for mode in ("spare", "cold"))]
"""All modes of bubblewrap. `make test` runs the usual one, and `make test-heavy` the others."""


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest, bubblewrap_works: None) -> StartMode:
    """Each mode of bubblewrap in turn."""
    mode: StartMode = request.param
    return mode


@pytest.fixture(params=MODES)
async def sandbox(
    request: pytest.FixtureRequest, bubblewrap_works: None, require: Require
) -> AsyncIterator[BubblewrapSandbox]:
    """A real sandbox, which must leave no task behind."""
    sandbox = BubblewrapSandbox(mode=request.param)
    before = asyncio.all_tasks()
    try:
        await sandbox.capabilities()
    except SandboxUnavailable as fault:
        require("bubblewrap", False, f"no {request.param} sandbox: {fault}")
    yield sandbox
    await sandbox.close()
    remaining = asyncio.all_tasks() - before - {asyncio.current_task()}
    assert not remaining, remaining
