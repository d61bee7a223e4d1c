"""The tasks of the main table: written down, and by the rules that their files state."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from requirements import Require
from suture.bench.datasets import load_problems
from suture.bench.running.benchmark_plan import choose_ids
from suture.errors import PrerequisiteError
from suture.interfaces.cli.bench.bench_run_command import read_task_ids

ROOT = Path(__file__).parents[2]
IDS = ROOT / "benchmarks" / "ids"
SETS = {"humaneval-40": "humaneval", "humaneval-80": "humaneval", "mbpp-80": "mbpp", "mbpp-odd-40": "mbpp"}


def ids_of(name: str) -> list[str]:
    return read_task_ids(IDS / f"{name}.txt")


def test_the_ids_of_humaneval_follow_their_rule() -> None:
    forty = [f"HumanEval/{number}" for number in range(0, 160, 4)]
    assert ids_of("humaneval-40") == forty
    assert ids_of("humaneval-80") == [*forty, *(f"HumanEval/{number}" for number in range(2, 160, 4))]


def test_the_ids_of_mbpp_are_those_of_the_set(require: Require) -> None:
    try:
        numbers = [int(problem.id.removeprefix("MBPP/")) for problem in load_problems("mbpp")]
    except PrerequisiteError as missing:
        require("data", False, str(missing))
    assert ids_of("mbpp-80") == [f"MBPP/{number}" for number in numbers if number % 2 == 0][:80]
    assert ids_of("mbpp-odd-40") == [f"MBPP/{number}" for number in numbers if number % 2][:40]


@pytest.mark.parametrize("name", SETS)
def test_a_set_has_all_of_its_ids(name: str, require: Require) -> None:
    try:
        chosen = choose_ids([SETS[name]], ids_of(name))
    except PrerequisiteError as missing:
        require("data", False, str(missing))
    assert chosen == {SETS[name]: tuple(ids_of(name))}


def test_the_page_names_every_file_that_there_is() -> None:
    page = (ROOT / "docs" / "benchmark.md").read_text("utf-8")
    assert set(re.findall(r"benchmarks/ids/([\w-]+)\.txt", page)) == {path.stem for path in IDS.iterdir()}
