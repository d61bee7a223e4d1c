"""Fixtures for package tests: a local index that pip and npm are configured to use."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from requirements import CachingSandbox
from sandbox.packages.local_index import Index
from suture.sandbox import BubblewrapSandbox


@pytest.fixture
async def sandbox(bubblewrap_works: None, shared_cache: Path) -> AsyncIterator[BubblewrapSandbox]:
    """One sandbox: a client with a writable folder is started in the same way in all modes."""
    sandbox = CachingSandbox(shared_cache)
    yield sandbox
    await sandbox.close()


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """A package index that pip and npm use."""
    server = Index()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", f"{server.url}/simple")
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("npm_config_registry", f"{server.url}/npm/")
    yield server
    server.server.shutdown()
    server.server.server_close()


@pytest.fixture
def other_server() -> Iterator[Index]:
    """A server of this machine that is no index; no client may send it a request."""
    server = Index()
    yield server
    server.server.shutdown()
    server.server.server_close()
