"""Heal QuixBugs by the search, by a model, or by both; report plausible and correct repairs.

    SUTURE_DATA=... python benchmarks/quixbugs.py [--arm search|model:NAME|both:NAME ...] [--only PROGRAM ...]

`SUTURE_DATA` must have `quixbugs/tasks.jsonl.gz`. The tests of a record play the part of the user's failing
suite, as a pytest file that may run for 10 s. Rows are written to a file (`--rows`), and a rerun continues with
it. After a run, its repair is compared with the reference on inputs that the run never saw: values near those of
the tests, and random graphs if the tests create objects. Inputs on which the reference raises or does not end in
time are outside its domain.
"""

from __future__ import annotations

import ast
import os
import random
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from healing import COMMAND, Program, RepairGrade, run_benchmark
from quixbugs_graphs import WRAPPERS
from script_exit import run_script

from suture.bench import Problem, load_problems
from suture.core.settings import Settings
from suture.judge import prepare_suite
from suture.judge.differential.input_generation import mutate_inputs, read_arguments
from suture.judge.runners.test_command import TestCommand
from suture.judge.trials.baseline import run_baseline
from suture.judge.trials.command_trials import compare_calls
from suture.judge.trials.trial_records import Proposal
from suture.loop.intake.heal_task import build_heal_task
from suture.mutation import Edit
from suture.sandbox import Sandbox, discover_interpreter

WANTED = 500
"""Number of generated inputs; at least `ENOUGH` must be in the domain."""
ENOUGH = 200
GRADER_SEED = 20261
REACH = 400
LONG_S = 3.0
"""CPU seconds for each answer of a repair. An input for which the reference needs `CALL_S` does not count."""
SHIM = ("_approx", "pytest")


def create_project(problem: Problem) -> dict[str, str]:
    """Return the program and its tests; the records' stand-in for pytest is removed."""
    name = problem.entry_point
    kept = []
    for node in ast.parse(problem.hidden).body:
        stand_in = isinstance(node, ast.ClassDef) and node.name in SHIM
        if not stand_in and "_qb_abs" not in ast.unparse(node) and not _calls_a_test(node):
            kept.append(node)
    tests = ast.unparse(ast.Module(body=kept, type_ignores=[]))
    header = f"import pytest\nfrom {name} import *\nfrom {name} import {name}\n\npytest.run_slow = False\n\n"
    return {f"{name}.py": problem.given, f"test_{name}.py": f"{header}{tests}\n"}


def _calls_a_test(node: ast.stmt) -> bool:
    called = node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
    return isinstance(called, ast.Name) and called.id.startswith("test")


async def grade(
    problem: Problem, files: Mapping[str, str], folder: Path, settings: Settings, sandbox: Sandbox
) -> RepairGrade:
    """Compare a repair with the reference on inputs of its domain."""
    name = problem.entry_point
    path = f"{name}.py"
    wrapper = WRAPPERS.get(name)
    if wrapper is not None:
        (folder / "graded.py").write_text(wrapper, "utf-8")
    task, _ = build_heal_task(folder, test=COMMAND)
    suite = await prepare_suite(task, sandbox, settings.sandbox, discover_interpreter(folder, os.environ))
    assert suite.command is not None
    buggy = problem.given
    whole = [_instead(path, buggy, text) for text in (problem.reference, files.get(path, buggy))]
    if wrapper is not None:
        calls = [("graded.py", "graded", f"({seed},)") for seed in range(WANTED)]
    else:
        calls = await _calls(suite.command, path, name, buggy)
    texts = {path: buggy}
    right = (await compare_calls(suite.command, whole[:1], calls, texts, 240)).get(0, [])
    domain = [(call, said) for call, said in zip(calls, right, strict=False) if not said.startswith("!")]
    asked = [call for call, _ in domain]
    given = (await compare_calls(suite.command, whole[1:], asked, texts, 600, call_cpu_s=LONG_S)).get(0, [])
    agreed = sum(one == two for (_, one), two in zip(domain, given, strict=False))
    return RepairGrade(correct=ENOUGH <= len(domain) == agreed, compared=len(domain), agreed=agreed)


async def _calls(command: TestCommand, path: str, name: str, text: str) -> list[tuple[str, str, str]]:
    seen = (await run_baseline(command, [path], (), 60)).calls
    texts = [call.arguments for call in seen if call.function == name]
    seeds = read_arguments(list(dict.fromkeys(texts)))
    return [
        (path, name, repr(new))
        for new in mutate_inputs(seeds, WANTED, random.Random(GRADER_SEED), reach=REACH)
    ]


def _instead(path: str, old: str, new: str) -> Proposal:
    edit = Edit(start=0, end=len(old.encode("utf-8")), text=new)
    return Proposal(path=path, edits=(edit,), label="", score=1.0, operators=())


def programs() -> list[Program]:
    """Return the programs of the set.

    Raises:
        PrerequisiteError: The set is not on this machine.
        UsageError: Its file is damaged.
    """
    return [
        Program(name=problem.entry_point, files=create_project(problem), grade=partial(grade, problem))
        for problem in load_problems("quixbugs")
    ]


if __name__ == "__main__":
    sys.exit(run_script(partial(run_benchmark, __doc__, "quixbugs", programs)))
