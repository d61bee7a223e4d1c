"""Where a test program ends itself, and the tests of unittest that it runs: both made explicit.

Runs behind the wall. A `SystemExit` says nothing about who raised it; so the exits that stand in the test's
own text become a call of ours, and any other one is a failure.
"""

from __future__ import annotations

import ast
import sys
from typing import Any

EXITS = frozenset(("exit", "quit", "sys.exit"))
RUNNERS = frozenset(("unittest.main", "unittest.TestProgram"))


class OwnEnd(SystemExit):
    """The test program ends itself, where its text says so."""


class TestsFailed(AssertionError):
    """The test program's unittest tests did not all pass."""


def own_ends(tree: ast.Module, hook: str) -> ast.Module:
    """Turn a program's exits and its `unittest.main()` into calls of the object that it knows as `hook`."""
    changed = _OwnEnds(_imported_names(tree), hook).visit(tree)
    assert isinstance(changed, ast.Module)
    return changed


def _imported_names(tree: ast.Module) -> dict[str, str]:
    """What the program's own imports make of a name: `main` -> `unittest.main`."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return names


class _OwnEnds(ast.NodeTransformer):
    def __init__(self, names: dict[str, str], hook: str) -> None:
        self.names = names
        self.hook = hook

    def visit(self, node: ast.AST) -> Any:
        return node if isinstance(node, ast.expr) else super().visit(node)  # there are no statements in it

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        call = node.value
        if not isinstance(call, ast.Call):
            return node
        called = self._dotted(call.func)
        if called in RUNNERS:
            return self._made(node, ast.Expr(self._hook("run_tests", [])))
        if called in EXITS and len(call.args) <= 1 and not call.keywords:
            return self._made(node, ast.Raise(self._hook("own_end", call.args)))
        return node

    def visit_Raise(self, node: ast.Raise) -> ast.stmt:
        raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        if node.cause is not None or not isinstance(raised, ast.Name) or raised.id != "SystemExit":
            return node
        given = node.exc.args if isinstance(node.exc, ast.Call) else []
        return self._made(node, ast.Raise(self._hook("own_end", given)))

    def _dotted(self, node: ast.expr) -> str:
        text = ast.unparse(node)
        first, dot, rest = text.partition(".")
        return f"{self.names.get(first, first)}{dot}{rest}"

    def _hook(self, method: str, arguments: list[ast.expr]) -> ast.Call:
        return ast.Call(ast.Attribute(ast.Name(self.hook, ast.Load()), method, ast.Load()), arguments, [])

    @staticmethod
    def _made(old: ast.stmt, new: ast.stmt) -> ast.stmt:
        return ast.fix_missing_locations(ast.copy_location(new, old))


def run_tests(module: Any, may_skip: bool) -> None:
    """Run all unittest tests of a program, in place of its `unittest.main()`.

    Args:
        module: The program.
        may_skip: Whether its text skips tests.

    Raises:
        TestsFailed: One failed, did not run, or was skipped though the program's text skips none.
    """
    import unittest

    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    wanted = suite.countTestCases()
    result = unittest.TextTestRunner(stream=sys.stderr, verbosity=0).run(suite)
    bad = [*result.failures, *result.errors]
    if bad:
        raise TestsFailed(f"{bad[0][0]}: {(bad[0][1].strip().splitlines() or [''])[-1]}")
    if result.testsRun < wanted or not result.wasSuccessful():
        raise TestsFailed(f"{result.testsRun} of {wanted} tests ran")
    if result.skipped and not may_skip:
        raise TestsFailed(f"{result.skipped[0][0]} was skipped")
