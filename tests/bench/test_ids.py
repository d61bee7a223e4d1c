"""The listed tasks of the main table follow the rules that their files state."""

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
IDS_FOLDER = ROOT / "benchmarks" / "ids"
DATASETS = {
    "humaneval-40": "humaneval",
    "humaneval-80": "humaneval",
    "mbpp-80": "mbpp",
    "mbpp-odd-40": "mbpp",
}


def read_ids(name: str) -> list[str]:
    """Return the task ids of a committed file."""
    return read_task_ids(IDS_FOLDER / f"{name}.txt")


def test_the_ids_of_humaneval_follow_their_rule() -> None:
    every_fourth = [f"HumanEval/{number}" for number in range(0, 160, 4)]
    assert read_ids("humaneval-40") == every_fourth
    assert read_ids("humaneval-80") == [
        *every_fourth,
        *(f"HumanEval/{number}" for number in range(2, 160, 4)),
    ]


def test_the_ids_of_mbpp_follow_their_rule(require: Require) -> None:
    try:
        numbers = [int(problem.id.removeprefix("MBPP/")) for problem in load_problems("mbpp")]
    except PrerequisiteError as error:
        require("data", False, str(error))
    assert read_ids("mbpp-80") == [f"MBPP/{number}" for number in numbers if number % 2 == 0][:80]
    assert read_ids("mbpp-odd-40") == [f"MBPP/{number}" for number in numbers if number % 2][:40]


@pytest.mark.parametrize("name", DATASETS)
def test_every_listed_id_exists_in_its_data_set(name: str, require: Require) -> None:
    try:
        ids = choose_ids([DATASETS[name]], read_ids(name))
    except PrerequisiteError as error:
        require("data", False, str(error))
    assert ids == {DATASETS[name]: tuple(read_ids(name))}


def test_the_documentation_names_every_file_of_ids() -> None:
    page = (ROOT / "docs" / "benchmark.md").read_text("utf-8")
    assert set(re.findall(r"benchmarks/ids/([\w-]+)\.txt", page)) == {
        path.stem for path in IDS_FOLDER.iterdir()
    }
