"""Fixtures: a real browser, a folder for a server that runs code in a sandbox, and a finished run."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from interfaces.web.real_browser import CHROMIUM, chromium
from interfaces.web.real_server import TASK, Server
from requirements import Require
from suture.sandbox import Requirement

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser(require: Require) -> Iterator[Browser]:
    require("chromium", CHROMIUM is not None, "no chromium on PATH: apt-get install chromium")
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def folder(
    tmp_path_factory: pytest.TempPathFactory,
    require: Require,
    sandbox_requirement: Requirement,
    self_tested_cache: Path,
) -> Path:
    """Where a module's server works, whose runs need a wall."""
    require("bubblewrap", sandbox_requirement.ok, sandbox_requirement.detail)
    made = tmp_path_factory.mktemp("server")
    shutil.copytree(self_tested_cache, made / "cache")
    return made


@pytest.fixture(scope="module")
def task() -> str:
    """What is to be written."""
    return TASK


@pytest.fixture(scope="module")
def written(server: Server, task: str) -> str:
    """A run of the module's server that has written a function."""
    run = server.run(kind="write", task=task)
    assert server.until(run, "ended")["outcome"] == "healed"
    return run
