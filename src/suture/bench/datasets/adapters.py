"""From one record of a set to a problem.

Two shapes are read: the one that a set is published in, and the common one (`id`, `prompt`, `reference`,
`buggy`, `visible_tests`, `hidden_tests`) that local collections are kept in.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from suture.bench.problem import Problem
from suture.project.python_source.parsing import parsed

Record = Mapping[str, Any]
Make = Callable[..., Problem]
"""`Problem` with what is the same for the whole set filled in."""
Adapter = Callable[[Any, Make], Problem | None]
"""From a record to a problem; `None` where the record cannot be judged as data."""


def humaneval(record: Record, make: Make) -> Problem:
    """HumanEval. Visible are the examples in the docstring."""
    if "task_id" not in record:
        return _common(record, make, statement=record["prompt"])
    prompt, name = record["prompt"], record["entry_point"]
    return make(
        id=record["task_id"],
        kind="write",
        statement=prompt,
        entry_point=name,
        hidden=f"{record['test']}\n\ncheck({name})\n",
        reference=prompt + record["canonical_solution"],
    )


def mbpp(record: Record, make: Make) -> Problem:
    """MBPP. Visible is the first of the tests, which stands in the statement and is graded too."""
    if "test_list" not in record:
        return _common(record, make, statement=record["prompt"], visible=record["visible_tests"])
    imports = list(record.get("test_imports", ()))
    first, *_ = record["test_list"]
    return make(
        id=f"MBPP/{record['task_id']}",
        kind="write",
        statement=f"{record['prompt']}\n{first}",
        entry_point=_defined_and_called(record["code"], first),
        visible="\n".join([*imports, first]),
        hidden="\n".join([*imports, *record["test_list"]]),
        reference=record["code"],
    )


def quixbugs(record: Record, make: Make) -> Problem:
    """QuixBugs: a program with a one-line bug, and its failing suite, which a user would have too."""
    return _common(record, make, kind="heal", given=record["buggy"], visible=record["hidden_tests"])


def humanevalfix(record: Record, make: Make) -> Problem:
    """HumanEvalFix with docstrings: a HumanEval function with a bug planted in it.

    One record's example tests are no Python; there the examples in the statement are visible.
    """
    published = "buggy_solution" in record
    visible = record["example_test" if published else "visible_tests"]
    visible = visible if parsed(visible) else ""
    if not published:
        return _common(record, make, kind="heal", given=record["buggy"], visible=visible)
    return make(
        id=record["task_id"],
        kind="heal",
        statement=record["prompt"],
        entry_point=record["entry_point"],
        given=record["prompt"] + record["buggy_solution"],
        visible=visible,
        hidden=record["test"],
        reference=record["prompt"] + record["canonical_solution"],
    )


def _common(
    record: Record,
    make: Make,
    *,
    kind: str = "write",
    statement: str = "",
    given: str = "",
    visible: str = "",
) -> Problem:
    return make(
        id=record["id"],
        kind=kind,
        statement=statement or record["instruction"],
        entry_point=record["entry_point"],
        given=given,
        visible=visible,
        hidden=record["hidden_tests"],
        reference=record["reference"],
    )


def _defined_and_called(code: str, test: str) -> str:
    """The function of the code that a test calls."""
    called = {node.id for node in ast.walk(ast.parse(test)) if isinstance(node, ast.Name)}
    defined = [node.name for node in ast.parse(code).body if isinstance(node, ast.FunctionDef)]
    return next((name for name in reversed(defined) if name in called), defined[-1])
