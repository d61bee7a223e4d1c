"""HumanEval+ and MBPP+ records in EvalPlus's format: their inputs are decoded and answers compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from suture.bench import Problem, grade_code, load_problems
from suture.core.settings import SandboxSettings
from suture.sandbox import Sandbox

SETTINGS = SandboxSettings(check_timeout_s=60)
FILES = {"humaneval+": "HumanEvalPlus.jsonl", "mbpp+": "MbppPlus.jsonl"}


def make_problem(
    data_folder: Path, code: str, *inputs: Any, number: int = 900, name: str = "mbpp+", atol: float = 0
) -> Problem:
    """Make a problem with these inputs, whose reference is the function `code`."""
    record = {
        "task_id": f"{'Mbpp' if name == 'mbpp+' else 'HumanEval'}/{number}",
        "prompt": '"""\nWrite a function.\n"""\n',
        "entry_point": code.removeprefix("def ").partition("(")[0],
        "canonical_solution": code,
        "base_input": inputs[:1],
        "plus_input": inputs[1:],
        "atol": atol,
    }
    (data_folder / FILES[name]).write_text(json.dumps(record) + "\n", "utf-8")
    (problem,) = load_problems(name)
    return problem


def read_cases(problem: Problem) -> list[str]:
    """Return the arguments of each case in the hidden tests."""
    return [line.removeprefix("_case") for line in problem.hidden.splitlines() if line.startswith("_case(")]


@pytest.mark.parametrize(
    ("number", "arguments", "expected"),
    [
        (900, [[1, 2], "ab"], "([1, 2], 'ab')"),
        (2, [[1, 2], [3]], "((1, 2), (3,))"),
        (809, [[1], []], "((1,), ())"),
        (63, [[[1, 2], [3, 4]]], "([(1, 2), (3, 4)])"),
        (75, [[[1, 2]], 3], "([(1, 2)], 3)"),
        (106, [[1], [2, 3]], "([1], (2, 3))"),
        (250, [[1, [2]], 2], "((1, [2]), 2)"),
        (307, [[1, []], 2, 3], "((1, []), 2, 3)"),
        (259, [[[1], [2]], [[3]]], "(((1,), (2,)), ((3,),))"),
        (278, [[1, [2], 3]], "((1, (2,), 3))"),
        (580, [[1, [2, [3]]]], "((1, (2, (3,))))"),
        (722, [{"a": [1.5, 2]}, 6, 70], "({'a': (1.5, 2)}, 6, 70)"),
        (115, [[[1], []]], "([{1}, {}])"),
        (124, ["1.5", "(2+3j)"], "(1.5, (2+3j))"),
        (252, ["1j"], "(1j)"),
    ],
)
def test_arguments_of_a_record_are_decoded(
    data_folder: Path, number: int, arguments: list[Any], expected: str
) -> None:
    problem = make_problem(data_folder, "def f(*xs): return 0", arguments, arguments, number=number)
    assert read_cases(problem) == [expected, expected]
    problem = make_problem(data_folder, "def f(*xs): return 0", arguments, number=number, name="humaneval+")
    assert read_cases(problem) == [f"({', '.join(map(repr, arguments))})"]


async def is_solution_right(problem: Problem, code: str, sandbox: Sandbox) -> bool:
    """Grade a solution, and return whether it is right."""
    grade = await grade_code(problem, code, sandbox, SETTINGS)
    assert grade.status in ("right", "wrong")
    assert grade.evidence == "split"
    return grade.right


async def test_values_without_literals_reach_the_candidate(data_folder: Path, sandbox: Sandbox) -> None:
    code = "def kinds(*xs): return [type(x).__name__ + str(x) for x in xs]"
    arguments: list[Any] = [float("inf"), -float("inf"), float("nan"), [float("inf")]]
    assert await is_solution_right(make_problem(data_folder, code, arguments), code, sandbox)

    infinite_problem = make_problem(data_folder, code, ["1e999", "(infj)"], number=124)
    assert await is_solution_right(infinite_problem, code, sandbox)
    assert not await is_solution_right(infinite_problem, "def kinds(*xs): return []", sandbox)

    decoded: dict[int, list[Any]] = {2: [[1, 2], [3]], 115: [[[1, 2], []]], 124: ["1", "2j"]}
    for number, arguments in decoded.items():
        assert await is_solution_right(
            make_problem(data_folder, code, arguments, number=number), code, sandbox
        )


async def test_a_right_answer_to_tuples_is_right(data_folder: Path, sandbox: Sandbox) -> None:
    code = "def counted(pairs): return {pair: pairs.count(pair) for pair in pairs}"
    problem = make_problem(data_folder, code, [[[1, 2], [3, 4], [1, 2]]], number=237)
    assert await is_solution_right(problem, code, sandbox)


@pytest.mark.parametrize(
    ("name", "code", "arguments", "answer", "is_right"),
    [
        ("humaneval+", "def find_zero(xs): return 1.0", [[-1, 0, 1]], "-1.0", True),
        ("humaneval+", "def find_zero(xs): return 1.0", [[-1, 0, 1]], "1.1", False),
        ("mbpp+", "def similar_elements(a): return (1, 2)", [[1, 2]], "[2, 1, 1]", True),
        ("mbpp+", "def similar_elements(a): return (1, 2)", [[1, 2]], "(1, 3)", False),
        ("humaneval+", "def similar_elements(a): return (1, 2)", [[1, 2]], "(2, 1)", False),
        ("mbpp+", "def check_str(a): return __import__('re').match('a', a)", ["ab"], "True", True),
        ("mbpp+", "def check_str(a): return __import__('re').match('a', a)", ["ab"], "'yes'", True),
        ("mbpp+", "def check_str(a): return __import__('re').match('a', a)", ["ab"], "None", False),
        ("mbpp+", "def check_str(a): return __import__('re').match('a', a)", ["b"], "False", True),
        ("mbpp+", "def are_equivalent(a, b): return True", [1, 2], "False", True),
        ("mbpp+", "def sum_div(a, b): return 7", [1, 2], "0", True),
        ("mbpp+", "def sum_div(a, b): return 7", [1, 2], "6", False),
        ("mbpp+", "def surface_Area(b, h): return 33", [3, 4], "35", True),
        ("mbpp+", "def surface_Area(b, h): return 33", [3, 4], "34", False),
        ("mbpp+", "def digit_distance_nums(a, b): return -1", [1, 21], "2", True),
        ("mbpp+", "def digit_distance_nums(a, b): return -1", [1, 21], "3", False),
        ("mbpp+", "def f(a): return (1, 2)", [0], "[1, 2]", False),
        ("mbpp+", "def f(a): return 2.0", [0], "2", True),
        ("mbpp+", "def f(a): return 2.0", [0], "2 + 1e-7j", False),
        ("mbpp+", "def f(a): return [0.5, 1.0]", [0], "[0.5, 1.0000005]", True),
        ("mbpp+", "def f(a): return [0.5, 1.0]", [0], "(0.5, 1.0000005)", False),
        ("mbpp+", "def f(a): return [0.5, 1.0]", [0], "[0.5, 1.0, 1.0]", False),
        ("mbpp+", "def f(a): return {'a': 0.5}", [0], "{'a': 0.5000001}", False),
        ("mbpp+", "def f(a): return float('inf')", [0], "float('inf')", True),
        ("mbpp+", "def f(a): return 'a'", [0], "'b'", False),
    ],
)
async def test_answers_are_compared_as_evalplus_does(
    data_folder: Path,
    sandbox: Sandbox,
    name: str,
    code: str,
    arguments: list[Any],
    answer: str,
    is_right: bool,
) -> None:
    problem = make_problem(data_folder, code, arguments, name=name, atol=1e-4 if "find_zero" in code else 0)
    function_head = code.partition(":")[0]
    assert await is_solution_right(problem, f"{function_head}: return {answer}", sandbox) == is_right


async def test_a_match_object_of_the_candidate_is_a_right_answer(data_folder: Path, sandbox: Sandbox) -> None:
    code = "import re\ndef check_str(a):\n    return re.match('a', a)"
    problem = make_problem(
        data_folder, "def check_str(a): return __import__('re').match('a', a)", ["ab"], ["b"]
    )
    assert (await grade_code(problem, code, sandbox, SETTINGS)).right
    assert not (await grade_code(problem, code.replace("'a', a", "'b', a"), sandbox, SETTINGS)).right


async def test_after_a_float_result_later_results_get_a_tolerance(
    data_folder: Path, sandbox: Sandbox
) -> None:
    """EvalPlus keeps the tolerance until the end of the base inputs."""
    code = "def f(a): return a"
    almost_equal = "def f(a): return a if isinstance(a, float) else [a[0], a[1] + 1e-9]"

    assert await is_solution_right(
        make_problem(data_folder, code, [1.5], [2.5], [[1, 1.0]]), almost_equal, sandbox
    )
    assert not await is_solution_right(
        make_problem(data_folder, code, [1.5], [[1, 1.0]]), almost_equal, sandbox
    )
