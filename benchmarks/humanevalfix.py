"""Heal HumanEvalFix, a held-out set: no operator and no limit was chosen by looking at its even half.

    SUTURE_DATA=... python benchmarks/humanevalfix.py [--arm search|model:NAME|both:NAME ...] [--only ID ...]

The example tests of a record play the part of the user's failing suite, one test for each assert. A repair is
correct if the hidden tests pass, which no run has seen. If the example tests do not fail on the given code there
is nothing to heal, and the program counts as not repaired. Programs without an example test are left out.
"""

from __future__ import annotations

import ast
import sys
import textwrap
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from healing import Program, RepairGrade, run_benchmark
from script_exit import run_script

from suture.bench import Problem, grade_code, load_problems
from suture.core.settings import Settings
from suture.judge import extract_asserts, extract_examples
from suture.sandbox import Sandbox


def create_project(problem: Problem) -> dict[str, str]:
    """Return the module and its example tests, as a user would have them."""
    bodies = _bodies(problem)
    name = problem.entry_point
    tests = [f"def test_{number}():\n{textwrap.indent(body, '    ')}\n" for number, body in enumerate(bodies)]
    header = f"from solution import *\nfrom solution import {name}\n"
    return {**problem.given_files, "test_solution.py": "\n\n".join([header, *tests])}


def _bodies(problem: Problem) -> list[str]:
    """Return the example tests one by one, or the examples of the statement if there are none."""
    nodes = ast.parse(problem.visible).body
    function = nodes[0] if nodes else None
    if isinstance(function, ast.FunctionDef) and len(function.args.args) == 1:
        alias, name = function.args.args[0].arg, problem.entry_point
        head = [] if alias == name else [f"{alias} = {name}"]
        before = [ast.unparse(node) for node in function.body if not isinstance(node, ast.Assert)]
        asserts = [ast.unparse(node) for node in function.body if isinstance(node, ast.Assert)]
        if asserts:
            return ["\n".join([*head, *before, one]) for one in asserts]
    checks = extract_asserts(problem.visible, provenance="visible")
    return [check.source for check in checks or extract_examples(problem.statement, problem.entry_point)]


async def grade(
    problem: Problem, files: Mapping[str, str], folder: Path, settings: Settings, sandbox: Sandbox
) -> RepairGrade:
    """Run the hidden tests on a repair."""
    reference = await grade_code(problem, problem.solution, sandbox, settings.sandbox)
    if not reference.right:  # the row then shows that nothing was compared
        return RepairGrade(correct=False, compared=0, agreed=0)
    found = await grade_code(problem, files, sandbox, settings.sandbox, reference=reference)
    return RepairGrade(correct=found.right, compared=1, agreed=int(found.right))


def programs() -> list[Program]:
    """Return the programs of the set that have example tests: 158 of 164.

    Raises:
        PrerequisiteError: The set is not on this machine.
        UsageError: Its file is damaged.
    """
    return [
        Program(name=problem.id, files=create_project(problem), grade=partial(grade, problem))
        for problem in load_problems("humanevalfix")
        if _bodies(problem)
    ]


if __name__ == "__main__":
    sys.exit(run_script(partial(run_benchmark, __doc__, "humanevalfix", programs)))
