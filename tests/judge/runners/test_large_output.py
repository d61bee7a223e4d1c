"""Tests that print or write very much: what is too long is cut, and their results count."""

from __future__ import annotations

import os
import sys

import pytest

from suture.core.records import Candidate, Task
from suture.core.settings import SandboxSettings
from suture.judge import check_candidate, prepare_suite
from suture.sandbox import BubblewrapSandbox, discover_programs

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(240)]
TESTS = b"""\
from lines import LINE

def test_prints():
    for _ in range(100):
        print(LINE * (1 << 20), end="")

def test_writes(tmp_path):
    with open(tmp_path / "log", "w") as file:
        for _ in range(100):
            file.write(LINE * (1 << 20))

def test_fails():
    print(LINE * (3 << 20))
    assert LINE == "y"
"""


@pytest.mark.parametrize("options", [(), ("-s",)], ids=["captured", "uncaptured"])
async def test_a_test_that_prints_or_writes_a_hundred_megabytes_counts(
    sandbox: BubblewrapSandbox, options: tuple[str, ...]
) -> None:
    task = Task(
        statement="",
        kind="heal",
        files={"lines.py": b'LINE = "x"\n', "test_lines.py": TESTS},
        test_command=("python", "-m", "pytest", "-q", *options),
    )
    programs = discover_programs(None, {"VIRTUAL_ENV": sys.prefix, "PATH": os.environ["PATH"]}, "python")

    suite = await prepare_suite(task, sandbox, SandboxSettings(), programs, run=True)
    verdict = await check_candidate(Candidate(files={}, origin="user"), suite)

    statuses = {outcome.check_id.partition("::")[2]: outcome.status for outcome in verdict.outcomes}
    assert statuses == {"test_prints": "passed", "test_writes": "passed", "test_fails": "failed"}
    assert "[...]" in verdict.output
    assert len(verdict.output) < 1 << 20
