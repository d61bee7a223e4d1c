"""Fixtures: a real browser and its page, a folder for a server with a sandbox, and a finished run."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from interfaces.web.real_browser import CHROMIUM, BrowserPage, chromium
from interfaces.web.real_server import TASK, Server
from requirements import Require
from suture.sandbox import Requirement

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser(require: Require) -> Iterator[Browser]:
    """Start a real browser."""
    require("chromium", CHROMIUM is not None, "no chromium on PATH: apt-get install chromium")
    with chromium() as started_browser:
        yield started_browser


@pytest.fixture
def browser_page(browser: Browser, server: Server) -> Iterator[BrowserPage]:
    """Open a page of the module's server, and check at the end that it caused no error."""
    new_page = BrowserPage(browser, server.url)
    yield new_page
    new_page.close()


@pytest.fixture(scope="module")
def folder(
    tmp_path_factory: pytest.TempPathFactory,
    require: Require,
    sandbox_requirement: Requirement,
    self_tested_cache: Path,
) -> Path:
    """Create the folder of a module's server, whose runs need a sandbox."""
    require("bubblewrap", sandbox_requirement.ok, sandbox_requirement.detail)
    server_folder = tmp_path_factory.mktemp("server")
    shutil.copytree(self_tested_cache, server_folder / "cache")
    return server_folder


@pytest.fixture(scope="module")
def task() -> str:
    """Return the task of `written_run`; a module can override it."""
    return TASK


@pytest.fixture(scope="module")
def written_run(server: Server, task: str) -> str:
    """Return the id of a run of the module's server that has written a function."""
    run = server.run(kind="write", task=task)
    assert server.wait_for_state(run, "ended")["outcome"] == "healed"
    return run
