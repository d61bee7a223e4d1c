"""Tests that are broken in themselves: a file that is no Python, a loop that nothing ends."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from posixpath import basename

from suture.core.records import CheckOutcome
from suture.judge.suite import Suite
from suture.project.python_source.parsing import parsed
from suture.project.workspace import is_test_file

NO_PYTHON = ("SyntaxError", "IndentationError", "TabError")
EXITS = (ast.Break, ast.Return, ast.Raise, ast.Assert, ast.Yield, ast.YieldFrom, ast.Await)
HARMLESS = ("print", "len", "sleep", "range")
"""Calls that end no loop."""
LOOPS = re.compile(rb"\bwhile[\s(]+[\dT\"']")
PROBE_S = 5.0
"""Seconds in which a test whose text shows an endless loop may prove the contrary."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


def describe_unreadable_test(
    outcome: CheckOutcome, files: Mapping[str, bytes], tests: Collection[str]
) -> str:
    """Why a test's own file cannot be read; empty where it can, or where the fault lies in the code.

    Args:
        outcome: The outcome of a failing test.
        files: The project's files, path -> content.
        tests: Files that hold tests, whatever they are called.
    """
    fact = outcome.counterexample
    if fact is None or not fact.exception.startswith(NO_PYTHON) or fact.file not in files:
        return ""
    if not (is_test_file(fact.file) or basename(fact.file) == "conftest.py" or fact.file in tests):
        return ""
    return f"{fact.file} is no Python, line {fact.line}: {fact.exception}"


async def find_endless_tests(suite: Suite) -> dict[str, int]:
    """Tests that never end, whatever the code does: their ids, with the line of the loop.

    Their text shows it, and a short run that does not end confirms it.

    Args:
        suite: The suite; only pytest's tests can be run by themselves.

    Raises:
        SandboxError: The wall failed.
    """
    if suite.command is None or not suite.command.is_pytest:
        return {}
    shown: dict[str, int] = {}
    for path in suite.test_files:
        tree = parsed(suite.task.files.get(path, b""))
        shown |= {f"{path}::{name}": line for name, line in endless_loops(tree)} if tree is not None else {}
    if not shown:
        return {}
    ran = await suite.command.run_selected(suite.task.files, shown, PROBE_S)
    return {o.check_id: shown[o.check_id] for o in ran if o.status == "timeout"}


def has_endless_loops(files: Mapping[str, bytes]) -> bool:
    """Whether some test's text has such a loop, so that not all are run without a look at them."""
    suspects = [path for path, content in files.items() if path.endswith(".py") and LOOPS.search(content)]
    return any(
        is_test_file(path) or "test" in name
        for path in suspects
        if (tree := parsed(files[path])) is not None
        for name, _ in endless_loops(tree)
    )


def endless_loops(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Functions with such a loop among their own statements, by their names in a test's id."""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    for prefix, body in (("", tree.body), *((f"{c.name}::", c.body) for c in classes)):
        for function in body:
            if isinstance(function, Function):
                loops = (s for s in function.body if isinstance(s, ast.While) and _never_ends(s))
                yield from ((f"{prefix}{function.name}", loop.lineno) for loop in loops)


def _never_ends(loop: ast.While) -> bool:
    """Whether a condition stays true and the body can neither leave the loop nor raise."""
    if not (isinstance(loop.test, ast.Constant) and loop.test.value):
        return False
    return not any(
        isinstance(node, (*EXITS, ast.Subscript)) or (isinstance(node, ast.Call) and not _is_harmless(node))
        for statement in loop.body
        for node in ast.walk(statement)
    )


def _is_harmless(call: ast.Call) -> bool:
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    return name in HARMLESS
