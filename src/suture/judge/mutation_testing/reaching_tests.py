"""Finding the tests that run a changed function: no other test can notice a mutant of it."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from suture.core.records import Verdict
from suture.judge import Suite
from suture.judge.coverage.coverage_run import find_touched_by_file
from suture.judge.coverage.reached_functions import Place
from suture.project.python_source.parsing import first_line, parse_module
from suture.project.workspace import decode_text, overlay_candidate


async def find_reaching_tests(
    suite: Suite, files: Mapping[str, str], verdict: Verdict
) -> frozenset[str] | None:
    """Run all tests on a change once, and return those that pass and run a changed function.

    Args:
        suite: A suite whose command is pytest.
        files: The change, path -> text over the project's own files.
        verdict: The verdict on the change.

    Returns:
        The ids of the tests, with those of which nothing is known; `None` if the import of a file runs changed code, or
        nothing was recorded.
    """
    assert suite.command is not None
    after = overlay_candidate(suite.task.files, files)
    places: set[Place] = set()
    for path, statements in find_touched_by_file(suite.task.files, after).items():
        functions = find_functions_around(decode_text(after[path]), statements)
        if functions is None:
            return None
        places |= {(path, line) for line in functions}
    reach = await suite.command.record_reach(after)
    if not reach.known or not places.isdisjoint(reach.importing):
        return None
    unknown = verdict.passed - reach.known
    return verdict.passed & (reach.find_tests(places) | reach.starting_processes | unknown)


def find_functions_around(text: str, statements: Sequence[range]) -> frozenset[int] | None:
    """Return the first lines of the functions that hold some statements; `None` if a statement is in no function.

    Args:
        text: A Python file.
        statements: The statements, each as its lines.
    """
    tree = parse_module(text)
    functions = [
        range(first_line(node), (node.end_lineno or node.lineno) + 1)
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    lines: set[int] = set()
    for statement in statements:
        # The head of a function runs when the code around it does.
        around = [function.start for function in functions if function.start < statement.start in function]
        if not around:
            return None
        lines.add(max(around))
    return frozenset(lines)
