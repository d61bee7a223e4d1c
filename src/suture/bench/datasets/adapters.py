"""Turn a record of a data set into a problem.

Two formats are read: the published format of the set, and a common one (`id`, `prompt`, `reference`, `buggy`,
`visible_tests`, `hidden_tests`) for local collections.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from suture.bench.problem import Problem, ProblemFactory
from suture.project.python_source.parsing import parse_module

Record = Mapping[str, Any]
Adapter = Callable[[Any, ProblemFactory], Problem | None]
"""Turns a record into a problem, or into `None` if the record cannot be judged as data."""


def adapt_humaneval(record: Record, make: ProblemFactory) -> Problem:
    """Return a HumanEval problem. The examples in the docstring are visible."""
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


def adapt_mbpp(record: Record, make: ProblemFactory) -> Problem:
    """Return an MBPP problem. The first test is visible: it is in the statement, and it is graded too."""
    if "test_list" not in record:
        return _common(record, make, statement=record["prompt"], visible=record["visible_tests"])
    imports = list(record.get("test_imports", ()))
    first_test, *_ = record["test_list"]
    return make(
        id=f"MBPP/{record['task_id']}",
        kind="write",
        statement=f"{record['prompt']}\n{first_test}",
        entry_point=_tested_function(record["code"], first_test),
        visible="\n".join([*imports, first_test]),
        hidden="\n".join([*imports, *record["test_list"]]),
        reference=record["code"],
    )


def adapt_quixbugs(record: Record, make: ProblemFactory) -> Problem:
    """Return a QuixBugs problem: a program with a one-line bug and the failing tests a user would have."""
    # A user of such a program has all of its tests, so none is hidden.
    return _common(record, make, kind="heal", given=record["buggy"], visible=record["hidden_tests"])


def adapt_humanevalfix(record: Record, make: ProblemFactory) -> Problem:
    """Return a HumanEvalFix problem with docstrings: a HumanEval function with a planted bug.

    The example tests of one record are not valid Python; the examples in its statement are visible instead.
    """
    is_published_format = "buggy_solution" in record
    visible = record["example_test" if is_published_format else "visible_tests"]
    visible = visible if parse_module(visible) else ""
    if not is_published_format:
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
    make: ProblemFactory,
    *,
    kind: str = "write",
    statement: str = "",
    given: str = "",
    visible: str = "",
) -> Problem:
    """Return the problem of a record in the common format (see the module's docstring)."""
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


def _tested_function(code: str, test: str) -> str:
    """Return the function that the code defines and a test calls; the last function if there is none."""
    called = {node.id for node in ast.walk(ast.parse(test)) if isinstance(node, ast.Name)}
    defined = [node.name for node in ast.parse(code).body if isinstance(node, ast.FunctionDef)]
    return next((name for name in reversed(defined) if name in called), defined[-1])
