"""Heal DebugBench and Refactory: one half is for tuning, the other for reporting.

    SUTURE_DATA=... python benchmarks/public_bugs.py SET [--arm search ...] [--first N] [--only ID ...]

SET is `syntax` (DebugBench's programs that are not valid Python), `debugbench` (its others) or `refactory`, with
the suffix `:even` or `:odd` for half of the records by their number, and `:every=N` for each Nth of these. The
visible tests of a record play the part of the user's failing suite, one test for each assert. A repair is
correct if the hidden tests pass, which no run has seen; they run with it as one program, whose exit status
counts.
"""

from __future__ import annotations

import ast
import sys
import textwrap
import warnings
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from data_files import read_data
from healing import Program, RepairGrade, run_benchmark
from script_exit import run_script

from suture.core.settings import Settings
from suture.errors import UsageError
from suture.sandbox import RunRequest, Sandbox, discover_interpreter, mounts_for_interpreter
from suture.sandbox.contract import ProgramLimits

SETS = {"syntax": "debugbench", "debugbench": "debugbench", "refactory": "refactory"}
MODULE = "solution.py"
GRADED = "graded.py"
GRADE_S = 30.0


def is_python(text: str) -> bool:
    """Return whether a program compiles."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "given", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


def create_project(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the module and its visible tests, as a user would have them."""
    tests = "\n\n".join(
        f"def test_{number}():\n{textwrap.indent(body, '    ')}\n"
        for number, body in enumerate(extract_asserts(record["visible_tests"]))
    )
    return {MODULE: record["buggy"], "test_solution.py": f"from solution import *\n\n\n{tests}"}


def extract_asserts(visible: str) -> list[str]:
    """Return the asserts one by one, each with what it needs: of `def check(candidate)`, or of the top level."""
    tree = ast.parse(visible)
    checks = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "check"]
    calls = [
        n.value
        for n in tree.body
        if isinstance(n, ast.Expr) and isinstance(n.value, ast.Call) and ast.unparse(n.value.func) == "check"
    ]
    if checks and calls:
        head = f"{checks[0].args.args[0].arg} = {ast.unparse(calls[0].args[0])}"
        body: list[ast.stmt] = checks[0].body
    else:
        head, body = "", tree.body
    before = [ast.unparse(n) for n in body if not isinstance(n, (ast.Assert, ast.Expr, ast.FunctionDef))]
    return [
        "\n".join([*before, *([head] if head else []), ast.unparse(n)])
        for n in body
        if isinstance(n, ast.Assert)
    ]


async def grade(
    record: Mapping[str, Any], files: Mapping[str, str], folder: Path, settings: Settings, sandbox: Sandbox
) -> RepairGrade:
    """Run the hidden tests on a repair."""
    python = discover_interpreter(folder, {})
    program = f"{files.get(MODULE, record['buggy'])}\n\n{record['hidden_tests']}"
    done = await sandbox.run(
        RunRequest(
            argv=(python.executable, GRADED),
            files={GRADED: program.encode()},
            mounts=mounts_for_interpreter(python),
            limits=ProgramLimits(wall_s=GRADE_S),
        )
    )
    return RepairGrade(correct=done.status == "ok", compared=1, agreed=int(done.status == "ok"))


def programs(wanted: str) -> list[Program]:
    """Return the programs of a set.

    Raises:
        PrerequisiteError: The set is not on this machine.
        UsageError: There is no such set.
    """
    name, *more = wanted.split(":")
    if name not in SETS:
        raise UsageError(f"there is no set {name!r}", remedy=f"one of {', '.join(SETS)}")
    records = list(enumerate(read_data(f"{SETS[name]}/tasks")))
    if "even" in more or "odd" in more:
        records = [(n, record) for n, record in records if n % 2 == ("odd" in more)]
    if name != "refactory":
        records = [(n, r) for n, r in records if is_python(r["buggy"]) == (name == "debugbench")]
    step = next((int(part.removeprefix("every=")) for part in more if part.startswith("every=")), 1)
    return [
        Program(name=f"{n}:{record['id']}", files=create_project(record), grade=partial(grade, record))
        for n, record in records[::step]
        if extract_asserts(record["visible_tests"])
    ]


def main() -> None:
    """Read the name of the set, and run the shared command line.

    Raises:
        UsageError: No set was given.
    """
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        raise UsageError("no set is named", remedy=f"one of {', '.join(SETS)}, first")
    wanted = sys.argv.pop(1)
    run_benchmark(__doc__ or "", wanted.replace(":", "-"), partial(programs, wanted))


if __name__ == "__main__":
    sys.exit(run_script(main))
