"""Files that a failing test leaves behind do not affect the candidates that are tried after it."""

from __future__ import annotations

from pathlib import Path

from failing_projects import search_python
from prepared_suites import prepare_python_suite
from suture.loop.evaluation.search_setup import editable_texts
from suture.sandbox import BubblewrapSandbox
from suture.search import SearchLimits

SHOP = """\
import sqlite3


def total(path, prices):
    base = sqlite3.connect(path)
    base.execute("CREATE TABLE price (n INTEGER)")
    base.executemany("INSERT INTO price VALUES (?)", [(price,) for price in prices])
    base.commit()
    return sum(n for (n,) in base.execute("SELECT n FROM price")) - 1
"""
TESTS = """\
import os
from shop import total


def test_total():
    os.mkdir("made")
    assert total("made/shop.db", [1, 2, 3]) == 6
    os.remove("made/shop.db")
    os.rmdir("made")


def test_kept():
    open("kept.txt", "w").close()


def test_is_there():
    assert os.path.exists("kept.txt")
    assert total(":memory:", [2]) is not None
"""


async def test_leftovers_of_a_failing_test_do_not_break_the_right_repair(
    tmp_path: Path, sandbox: BubblewrapSandbox
) -> None:
    """A user's run of each candidate starts without them. Files of a passing test stay for the next test."""
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "test_shop.py").write_text(TESTS)
    suite, command = await prepare_python_suite(tmp_path, sandbox)
    failing = ["test_shop.py::test_total"]

    result = await search_python(command, editable_texts(suite), failing, SearchLimits(max_seconds=60))

    assert result.plausible, result.ending
