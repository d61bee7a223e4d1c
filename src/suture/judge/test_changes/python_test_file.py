"""Read the tests of a Python file, of pytest and of unittest."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from suture.judge.test_changes.python_assertions import iter_assertions, show_source
from suture.judge.test_changes.test_case import SourcePiece, SupportKind, TestCase, TestFile
from suture.project.python_source.parsing import parse_module

SKIPPING_DECORATORS = frozenset((
    "skip", "skipif", "xfail", "skipIf", "skipUnless", "expectedFailure", "importorskip",
))  # fmt: skip
SKIPPING_CALLS = frozenset(("skip", "xfail", "skipTest", "importorskip", "SkipTest"))
COLLECTION_NAMES = ("collect_ignore", "collect_ignore_glob", "__test__")
"""Variables of a module with which pytest leaves out tests."""
OUTCOME_HOOKS = frozenset((
    "pytest_collection_modifyitems", "pytest_ignore_collect", "pytest_collect_file", "pytest_pycollect_makeitem",
    "pytest_itemcollected", "pytest_deselected", "pytest_runtest_makereport", "pytest_runtest_protocol",
    "pytest_runtest_call", "pytest_runtest_setup", "pytest_pyfunc_call", "pytest_report_teststatus",
    "pytest_sessionfinish", "pytest_exception_interact", "pytest_runtestloop", "pytest_cmdline_main",
    "pytest_load_initial_conftests", "pytest_runtest_logreport",
))  # fmt: skip
"""Hooks of pytest that can change which tests run or how they end."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


def read_python_tests(source: str) -> TestFile:
    """Return the tests of a Python file; none if it is empty or has a fault of syntax."""
    file, tree = TestFile(), parse_module(source)
    for statement in tree.body if tree is not None else ():
        _read_member(statement, file, "", ())
    return file


def _read_member(node: ast.stmt, file: TestFile, prefix: str, decorators: tuple[ast.expr, ...]) -> None:
    """Add a test, the tests of a class, or support of tests."""
    match node:
        case ast.ClassDef():
            for member in node.body:
                _read_member(member, file, f"{prefix}{node.name}::", (*decorators, *node.decorator_list))
        case ast.FunctionDef() | ast.AsyncFunctionDef() if node.name.startswith("test"):
            test = _read_test(f"{prefix}{node.name}", node, (*decorators, *node.decorator_list))
            file.tests[test.name] = test
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            kind: SupportKind = "hook" if not prefix and node.name in OUTCOME_HOOKS else "support"
            file.support[f"{prefix}{node.name}"] = SourcePiece(
                source=ast.dump(node), line=node.lineno, text=show_source(node), kind=kind
            )
            if _is_automatic_fixture(node):
                file.new_support_counts.add(f"{prefix}{node.name}")
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            name = ", ".join(map(ast.unparse, targets))
            kind = "skip" if name in COLLECTION_NAMES or _marks_as_skipped(name, node) else "support"
            file.support[f"{prefix}{name}"] = SourcePiece(
                source=ast.dump(node), line=node.lineno, text=show_source(node), kind=kind
            )


def _read_test(name: str, node: Function, decorators: Sequence[ast.expr]) -> TestCase:
    assertions = tuple(iter_assertions(node.body))
    first_line = assertions[0].line if assertions else None
    calls = (part for statement in node.body for part in ast.walk(statement))
    return TestCase(
        name=name,
        line=node.lineno,
        source="\n".join(map(ast.dump, [node.args, *node.body, *decorators])),
        assertions=assertions,
        skips=tuple(
            SourcePiece(source=ast.dump(skip), line=skip.lineno, text=show_source(skip))
            for skip in _iter_skips(node, decorators, first_line)
        ),
        rows=tuple(
            SourcePiece(source=ast.dump(row), line=row.lineno, text=show_source(row))
            for row in _iter_rows(decorators)
        ),
        calls_something=any(isinstance(part, ast.Call) for part in calls),
    )


def _iter_skips(
    node: Function, decorators: Sequence[ast.expr], first_assertion: int | None
) -> Iterator[ast.expr | ast.stmt]:
    for decorator in decorators:
        function = decorator.func if isinstance(decorator, ast.Call) else decorator
        if ast.unparse(function).rpartition(".")[2] in SKIPPING_DECORATORS:
            yield decorator
    for statement in node.body:
        if isinstance(statement, ast.Return) and (
            first_assertion is None or statement.lineno < first_assertion
        ):
            yield statement
        for part in ast.walk(statement):
            if isinstance(part, ast.Call) and ast.unparse(part.func).rpartition(".")[2] in SKIPPING_CALLS:
                yield part


def _iter_rows(decorators: Sequence[ast.expr]) -> Iterator[ast.expr]:
    """Yield the rows of literal `parametrize` lists."""
    for decorator in decorators:
        if not isinstance(decorator, ast.Call) or not ast.unparse(decorator.func).endswith("parametrize"):
            continue
        values = [*decorator.args[1:2], *(k.value for k in decorator.keywords if k.arg == "argvalues")]
        for value in values:
            if isinstance(value, ast.List | ast.Tuple):
                yield from value.elts


def _marks_as_skipped(name: str, node: ast.stmt) -> bool:
    return name == "pytestmark" and any(
        isinstance(part, ast.Attribute) and part.attr in SKIPPING_DECORATORS for part in ast.walk(node)
    )


def _is_automatic_fixture(node: Function) -> bool:
    return any(
        isinstance(decorator, ast.Call) and any(keyword.arg == "autouse" for keyword in decorator.keywords)
        for decorator in node.decorator_list
    )
