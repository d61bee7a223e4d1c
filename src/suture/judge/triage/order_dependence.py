"""Reruns of failing tests, together, alone and after others, to find flaky and order-dependent tests."""

from __future__ import annotations

import ast
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import dedent

from suture.judge.minimisation.delta_debugging import ddmin
from suture.judge.runners.pytest_runner import RunAddition
from suture.judge.runners.test_command import TestCommand
from suture.judge.suite import Suite
from suture.judge.tuning import (
    MAX_FLAKY_RERUNS,
    MAX_ISOLATED_RERUNS,
    MAX_OTHER_TESTS,
    MAX_OTHER_TESTS_RUNS,
    MIN_FRESH_RUN_TIMEOUT_S,
)
from suture.project.python_source.parsing import first_line, parse_module
from suture.project.python_source.statement_edits import split_lines
from suture.project.workspace import decode_text

STATE_CHANGERS = {
    "a list": ("append", "extend", "insert", "remove", "reverse", "sort"),
    "a set or a mapping": ("add", "clear", "discard", "pop", "popitem", "setdefault", "update"),
    "a file": ("unlink", "write", "write_text"),
    "the process": ("chdir", "putenv", "seed", "setlocale"),
}
STATE_CHANGING_NAMES = frozenset(name for names in STATE_CHANGERS.values() for name in names)
"""Methods and functions that change the object they are called on, or the process."""

HASHING_NAMES = ("set", "frozenset", "hash")
OTHER_HASH_SEED = RunAddition(variables={"PYTHONHASHSEED": "1"})
"""Gives a run another hash seed than the warm interpreter that runs without this variable share. A test that depends on
the order of a set ends the same way in all of those."""
NEW_HASH_SEED = RunAddition(variables={"PYTHONHASHSEED": "random"})
"""Gives each run another hash seed, for runs that may differ from each other."""
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(kw_only=True)
class Reruns:
    """Runs tests of the task again on the unchanged files."""

    suite: Suite
    command: TestCommand
    timeout_s: float

    async def find_failing(self, tests: Collection[str]) -> frozenset[str]:
        """Return those of some tests that fail when they run together, without any other test; empty for all tests."""
        outcomes = await self.command.run_selected(self.suite.task.files, tests, self.timeout_s)
        return frozenset(outcome.check_id for outcome in outcomes if not outcome.passed)

    async def find_passing_with_other_hash_seed(self, tests: Collection[str]) -> frozenset[str]:
        """Return those of some tests that pass under another hash seed; none if the project's files have no sets.

        The run starts an interpreter, so it is not made for projects in which it could show nothing.
        """
        files = self.suite.task.files
        if not any(has_sets(content) for path, content in files.items() if path.endswith(".py")):
            return frozenset()
        timeout_s = max(MIN_FRESH_RUN_TIMEOUT_S, self.timeout_s)
        outcomes = await self.command.run_selected(files, tests, timeout_s, addition=OTHER_HASH_SEED)
        return frozenset(outcome.check_id for outcome in outcomes if outcome.passed)

    async def split_failing_and_passing_alone(
        self, tests: Sequence[str]
    ) -> tuple[frozenset[str], frozenset[str]]:
        """Return (tests that fail when only these tests run, tests that pass when each of them runs alone).

        Of many tests only the first few run alone. Both runs use one process that imports the project once.
        """
        files, alone = self.suite.task.files, tests[:MAX_ISOLATED_RERUNS]
        together, isolated = await self.command.run_together_and_isolated(files, tests, alone, self.timeout_s)
        failed = frozenset(outcome.check_id for outcome in together if not outcome.passed)
        return failed, frozenset(outcome.check_id for outcome in isolated if outcome.passed)

    async def find_polluters(self, victim: str, before: Sequence[str]) -> tuple[str, ...]:
        """Return the fewest tests after which the victim fails; empty if there are none.

        Args:
            victim: A test that passes when it runs alone.
            before: The tests that run before it.
        """

        async def fails_after(tests: Sequence[str]) -> bool:
            return victim in await self.find_failing([*tests, victim])

        return await find_deciding_tests(before, fails_after)


async def rerun_flaky_tests(
    tests: Collection[str],
    command: TestCommand,
    files: Mapping[str, bytes],
    *,
    passes: bool,
    max_runs: int = MAX_FLAKY_RERUNS,
    among_all: bool = False,
) -> frozenset[str]:
    """Run tests again until each of them has ended in one way; return those that never did in a few runs.

    Args:
        files: The project's files in which they run.
        passes: Whether each test must pass once, or fail once.
        among_all: Whether all tests of the command run, and not only these.
    """
    waiting = frozenset(tests)
    for number in range(max_runs):
        if not waiting:
            break
        # Triage may have seen a test end in another way only with the fixed seed.
        addition = NEW_HASH_SEED if number else OTHER_HASH_SEED
        selected = () if among_all else waiting
        outcomes = await command.run_selected(files, selected, addition=addition)
        waiting -= {outcome.check_id for outcome in outcomes if outcome.passed == passes}
    return waiting


def has_sets(source: bytes) -> bool:
    """Return whether Python source makes a set or computes a hash, so that the hash seed may decide what it does."""
    tree = parse_module(source)
    return tree is not None and any(
        isinstance(node, ast.Set | ast.SetComp) or (isinstance(node, ast.Name) and node.id in HASHING_NAMES)
        for node in ast.walk(tree)
    )


async def find_deciding_tests(
    before: Sequence[str], has_outcome: Callable[[Sequence[str]], Awaitable[bool]]
) -> tuple[str, ...]:
    """Return the fewest tests after which another one ends in a certain way, by delta debugging.

    The result is empty if the other test does not end that way after all of them, or only after many.

    Args:
        before: The tests that run before the other one.
        has_outcome: Returns whether the other test has the outcome in question after some of them.
    """
    runs = 0

    def is_over() -> bool:
        return runs >= MAX_OTHER_TESTS_RUNS

    async def count_and_run(tests: Sequence[str]) -> bool:
        nonlocal runs
        runs += 1
        return not is_over() and await has_outcome(tests)

    if not before or not await count_and_run(before):
        return ()
    others, _ = await ddmin(list(before), count_and_run, is_over)
    return tuple(others) if len(others) <= MAX_OTHER_TESTS else ()


def find_state_change(tests: Sequence[str], files: Mapping[str, bytes]) -> str:
    """Return the first statement by which one of some tests changes state that outlives it; empty if there is none."""
    for test in tests:
        path, _, name = test.partition("::")
        tree = parse_module(files.get(path, b""))
        statement = find_shared_state_write(tree, name.partition("[")[0].split("::")[-1]) if tree else ""
        if statement:
            return statement
    return ""


def get_test_source(test: str, files: Mapping[str, bytes]) -> str:
    """Return the source of a test function with its decorators; empty if its file does not show it."""
    path, _, name = test.partition("::")
    text = decode_text(files.get(path, b""))
    tree = parse_module(text)
    function_name = name.partition("[")[0].split("::")[-1]
    nodes = ast.walk(tree) if tree is not None else ()
    functions = [node for node in nodes if isinstance(node, FunctionNode) and node.name == function_name]
    lines = split_lines(text)[first_line(functions[-1]) - 1 : functions[-1].end_lineno] if functions else []
    return dedent("".join(lines))


def find_shared_state_write(tree: ast.Module, name: str) -> str:
    """Return the statement by which a test, or its set-up, changes state that outlives the test.

    Objects that the test itself makes, or gets from a fixture, do not count. The result is source, and empty
    if there is no such statement. `tree` is the file of the test function `name`.
    """
    shared = set(_find_module_names(tree))
    for function in _iter_test_and_setup(tree, name):
        for node in ast.walk(function):
            if isinstance(node, ast.stmt) and _changes_state(node, shared - _find_local_names(function)):
                return ast.unparse(node)
    return ""


def _find_module_names(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                yield (alias.asname or alias.name).partition(".")[0]
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                yield from (part.id for part in ast.walk(target) if isinstance(part, ast.Name))
        elif isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.AnnAssign):
            yield ast.unparse(node.target)


def _iter_test_and_setup(tree: ast.Module, name: str) -> Iterator[FunctionNode]:
    """Yield the test, the fixtures that it names itself, and every set-up function of the file.

    Set-up functions of other classes are included: the class of a test is not known here.
    """
    functions = [node for node in ast.walk(tree) if isinstance(node, FunctionNode)]
    fixtures = {arg.arg for function in functions if function.name == name for arg in function.args.args}
    for function in functions:
        if function.name in (name, *fixtures) or function.name.lower().startswith(("setup", "set_up")):
            yield function


def _find_local_names(function: FunctionNode) -> set[str]:
    assigned: set[str] = set()
    global_names: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            assigned.add(node.id)
        elif isinstance(node, ast.Global):
            global_names.update(node.names)
    arguments = {arg.arg for arg in (*function.args.args, *function.args.kwonlyargs)}
    return (assigned - global_names) | arguments


def _changes_state(node: ast.stmt, shared: set[str]) -> bool:
    if isinstance(node, ast.Global):
        return True
    targets: list[ast.expr] = []
    if isinstance(node, (ast.Assign, ast.Delete)):
        targets = node.targets
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        targets = [node.target]
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        function = node.value.func
        if isinstance(function, ast.Attribute) and function.attr in STATE_CHANGING_NAMES:
            return _get_root_name(function) in shared
    return any(
        isinstance(target, (ast.Attribute, ast.Subscript)) and _get_root_name(target) in shared
        for target in targets
    )


def _get_root_name(node: ast.expr) -> str:
    """Return the first name of an expression: `a` of `a.b[0].c()`."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""
