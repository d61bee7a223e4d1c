"""How often a heal run runs a large suite as a whole."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bare_pytest import BARE_PYTEST
from suture.api import HealOptions, heal
from suture.core.settings import Settings
from suture.sandbox import Sandbox

CODE = "def clip(value, low, high):\n    return min(low, max(value, high))\n"
TESTS = """import pytest
from clipping import clip


def test_clips():
    assert clip(7, 1, 5) == 5


@pytest.mark.parametrize("number", range(1001))
def test_number(number):
    assert number + 1 > number
"""


class CountingSandbox:
    """A real sandbox that counts the runs of all tests: those of the command, and those of trial processes."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self.command_runs = self.trial_runs = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sandbox, name)

    async def run(self, request: Any) -> Any:
        """Run a program."""
        if request.stdin.startswith(b"{"):
            self.command_runs += json.loads(request.stdin).get("only") == []
        return await self._sandbox.run(request)

    @asynccontextmanager
    async def open(self, request: Any) -> AsyncIterator[Any]:
        """Start a program to talk with."""
        async with self._sandbox.open(request) as channel:
            yield CountingChannel(channel, self)


class CountingChannel:
    """The channel to a trial process."""

    def __init__(self, channel: Any, counts: CountingSandbox) -> None:
        self._channel, self._counts = channel, counts

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)

    async def send(self, frame: bytes) -> None:
        """Send a request."""
        request = json.loads(frame)
        if request.get("op") in ("run_unchanged", "try"):
            self._counts.trial_runs += request["tests"] is None
        await self._channel.send(frame)


@pytest.mark.timeout(400)
async def test_a_large_suite_runs_once_before_the_repair_and_twice_on_it(
    tmp_path: Path, sandbox: Sandbox
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "clipping.py").write_text(CODE)
    (project / "test_clipping.py").write_text(TESTS)
    settings = Settings.model_validate({"paths": {"home": tmp_path / "home"}, "model": {"name": "none"}})
    counting: Any = CountingSandbox(sandbox)

    result = await heal(project, HealOptions(test=BARE_PYTEST, settings=settings, sandbox=counting))

    assert result.outcome == "healed"
    # The fourth run shows which tests run the changed function, because the failing test misses some mutants of it.
    assert (counting.command_runs, counting.trial_runs) == (4, 0)
