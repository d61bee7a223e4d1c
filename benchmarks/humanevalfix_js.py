"""HumanEvalFix in JavaScript, healed as `humanevalfix.py` heals its Python form, on `node --test`.

    SUTURE_DATA=... python benchmarks/humanevalfix_js.py [--sample N] [--arm search|model:NAME] [--only ID]

Each `console.assert` of a record's example test becomes one test. A repair is correct if none of the hidden
assertions fails; no run sees these. `--sample N` draws the same problems as `humanevalfix.py` does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from data_files import read_data
from healing import Program, RepairGrade, run_benchmark
from script_exit import run_script

from suture.core.settings import Settings
from suture.judge.sandbox_programs import make_test_limits
from suture.mutation.tree_sitter.syntax_tree import walk
from suture.mutation.tree_sitter.value_kinds import parse_source_tree
from suture.project.languages import program_environment
from suture.sandbox import BOX, RunRequest, Sandbox, discover_programs, mounts_for_interpreter

COMMAND = ("node", "--test")
HIDDEN_S = 10.0
COMPLAINT = b"Assertion failed"


def create_project(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the module and its example tests, as a user would have them."""
    name = record["entry_point"]
    code = f"{record['prompt']}{record['buggy_solution']}\nmodule.exports = {{ {name} }};\n"
    tests = [
        f"test('example {number}', () => {{\n{before}  assert.ok({condition});\n}});\n"
        for number, (before, condition) in enumerate(_examples(record["example_test"]))
    ]
    needed = "const test = require('node:test');\nconst assert = require('node:assert');"
    head = f"{needed}\nconst {{ {name} }} = require('./solution.js');\n"
    return {"solution.js": code, "solution.test.js": "\n".join([head, *tests])} if tests else {}


def _examples(source: str) -> Iterator[tuple[str, str]]:
    """Yield each assertion of a test, and the other statements before it."""
    before = ""
    blocks = [
        node
        for node in walk(parse_source_tree(source, "a.js", "javascript"))
        if node.type == "statement_block"
    ]
    for statement in blocks[0].named_children if blocks else ():
        call = statement.named_children[0] if statement.named_children else None
        called = call.child_by_field_name("function") if call is not None else None
        text = (statement.text or b"").decode()
        if call is not None and called is not None and called.text == b"console.assert":
            given = call.child_by_field_name("arguments")
            condition = given.named_children[0].text if given is not None else b""
            yield before, (condition or b"").decode()
        else:
            before += f"  {text}\n"


async def grade(
    record: Mapping[str, Any], files: Mapping[str, str], folder: Path, settings: Settings, sandbox: Sandbox
) -> RepairGrade:
    """Run the hidden tests on a repair, if the reference passes them."""
    reference = record["prompt"] + record["canonical_solution"]
    if not await _passes(reference, record["test"], settings, sandbox):
        return RepairGrade(correct=False, compared=0, agreed=0)
    right = await _passes(files["solution.js"], record["test"], settings, sandbox)
    return RepairGrade(correct=right, compared=0, agreed=0)


async def _passes(code: str, tests: str, settings: Settings, sandbox: Sandbox) -> bool:
    node = discover_programs(None, os.environ, "javascript")
    result = await sandbox.run(
        RunRequest(
            argv=("node", "hidden.js"),
            files={"hidden.js": f"{code}\n{tests}\n".encode()},
            env=program_environment(node, BOX),
            mounts=mounts_for_interpreter(node),
            limits=make_test_limits(settings.sandbox, HIDDEN_S, "javascript"),
        )
    )
    return result.status == "ok" and COMPLAINT not in result.stderr + result.stdout


def programs() -> list[Program]:
    """Return the programs of the set that have example tests.

    Raises:
        PrerequisiteError: The set is not on this machine.
        UsageError: Its file is damaged.
    """
    return [
        Program(name=record["task_id"], files=files, grade=partial(grade, record), command=COMMAND)
        for record in read_data("humanevalfix/js")
        if (files := create_project(record))
    ]


if __name__ == "__main__":
    sys.exit(run_script(partial(run_benchmark, __doc__, "humanevalfix_js", programs)))
