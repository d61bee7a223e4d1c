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
"""Variables of a module that make pytest leave out tests."""
OUTCOME_HOOKS = frozenset((
    "pytest_collection_modifyitems", "pytest_ignore_collect", "pytest_collect_file", "pytest_pycollect_makeitem",
    "pytest_itemcollected", "pytest_deselected", "pytest_runtest_makereport", "pytest_runtest_protocol",
    "pytest_runtest_call", "pytest_runtest_setup", "pytest_pyfunc_call", "pytest_report_teststatus",
    "pytest_sessionfinish", "pytest_exception_interact", "pytest_runtestloop", "pytest_cmdline_main",
    "pytest_load_initial_conftests", "pytest_runtest_logreport",
))  # fmt: skip
"""Hooks of pytest whose purpose is to change which tests run or how they end."""
STATUS_NAMES = frozenset(("_exit", "abort", "exitstatus"))
"""Attributes with which any hook can decide the exit status of the run."""
HARMLESS_HOOKS = frozenset((
    "pytest_addoption", "pytest_report_header", "pytest_make_parametrize_id", "pytest_assertrepr_compare",
    "pytest_terminal_summary", "pytest_addhooks",
))  # fmt: skip
"""Hooks of pytest that only add options or write something. All others can do anything to the tests."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


def read_python_tests(source: str) -> TestFile:
    """Return the tests of a Python file; none if it is empty or has a syntax error."""
    file, tree = TestFile(), parse_module(source)
    for statement in tree.body if tree is not None else ():
        _read_member(statement, file, "", ())
    return file


def _read_member(node: ast.stmt, file: TestFile, prefix: str, decorators: tuple[ast.expr, ...]) -> None:
    """Add a test, the tests of a class, or support of tests."""
    kind: SupportKind
    match node:
        case ast.ClassDef():
            for member in node.body:
                _read_member(member, file, f"{prefix}{node.name}::", (*decorators, *node.decorator_list))
        case ast.FunctionDef() | ast.AsyncFunctionDef() if node.name.startswith("test"):
            test = _read_test(f"{prefix}{node.name}", node, (*decorators, *node.decorator_list))
            file.tests[test.name] = test
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            kind = _read_kind(node) if not prefix else "support"
            file.support[f"{prefix}{node.name}"] = SourcePiece(
                source=ast.dump(node),
                line=node.lineno,
                text=show_source(node),
                kind=kind,
                assertions=tuple(iter_assertions(node.body)),
            )
            if _is_automatic_fixture(node):
                file.new_support_counts.add(f"{prefix}{node.name}")
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            name = ", ".join(map(ast.unparse, targets))
            kind = "skip" if name in COLLECTION_NAMES or _marks_as_skipped(name, node) else "support"
            kind = "any_hook" if name == "pytest_plugins" else kind
            file.support[f"{prefix}{name}"] = SourcePiece(
                source=ast.dump(node), line=node.lineno, text=show_source(node), kind=kind
            )


def _read_kind(node: Function) -> SupportKind:
    """Return whether a function of a module is a hook of pytest."""
    names = [node.name]
    for decorator in node.decorator_list:
        keywords = decorator.keywords if isinstance(decorator, ast.Call) else ()
        names += [
            ast.unparse(keyword.value).strip("'\"") for keyword in keywords if keyword.arg == "specname"
        ]
    name = names[-1]
    sets_status = any(
        isinstance(part, ast.Attribute) and part.attr in STATUS_NAMES for part in ast.walk(node)
    )
    if name in OUTCOME_HOOKS or (name.startswith("pytest_") and sets_status):
        return "hook"
    is_harmless = name in HARMLESS_HOOKS or (name == "pytest_configure" and _only_declares(node))
    return "any_hook" if name.startswith("pytest_") and not is_harmless else "support"


def _only_declares(node: Function) -> bool:
    """Return whether a function only declares settings of pytest, such as markers."""
    return all(
        isinstance(statement, ast.Expr)
        and (isinstance(statement.value, ast.Constant) or ".addinivalue_line(" in ast.unparse(statement))
        for statement in node.body
    )


def _read_test(name: str, node: Function, decorators: Sequence[ast.expr]) -> TestCase:
    assertions = tuple(iter_assertions(node.body))
    first_line = assertions[0].line if assertions else None
    rows = [*_iter_rows(decorators)]
    parts = [part for statement in node.body for part in ast.walk(statement)]
    return TestCase(
        name=name,
        line=node.lineno,
        source="\n".join(map(ast.dump, [node.args, *_drop_docstring(node.body), *decorators])),
        assertions=assertions,
        skips=tuple(
            SourcePiece(source=ast.dump(skip), line=skip.lineno, text=show_source(skip))
            for skip in (*_iter_skips(node, decorators, first_line), *filter(_is_skipped_row, rows))
        ),
        rows=tuple(
            SourcePiece(source=ast.dump(_values_of(row)), line=row.lineno, text=show_source(row))
            for row in rows
        ),
        calls_something=any(isinstance(part, ast.Call) for part in parts),
        names=frozenset(_iter_used_names(parts)),
    )


def _iter_used_names(parts: Sequence[ast.AST]) -> Iterator[str]:
    """Yield the names that a test reads and does not bind, and its strings."""
    bound = {part.id for part in parts if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)}
    for part in parts:
        match part:
            case ast.Name(id=name) if name not in bound:
                yield name
            case (
                ast.Attribute(attr=name) | ast.keyword(arg=str() as name) | ast.Constant(value=str() as name)
            ):
                yield name


def _drop_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    has_docstring = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    return body[1:] if has_docstring else body


def _iter_skips(
    node: Function, decorators: Sequence[ast.expr], first_assertion: int | None
) -> Iterator[ast.expr | ast.stmt]:
    for decorator in decorators:
        function = decorator.func if isinstance(decorator, ast.Call) else decorator
        if ast.unparse(function).rpartition(".")[2] in SKIPPING_DECORATORS:
            yield decorator
    for statement in node.body:
        for leaving in _iter_returns(statement):
            if first_assertion is None or leaving.lineno < first_assertion:
                yield leaving
        for part in ast.walk(statement):
            if isinstance(part, ast.Call) and ast.unparse(part.func).rpartition(".")[2] in SKIPPING_CALLS:
                yield part


def _iter_returns(statement: ast.stmt) -> Iterator[ast.Return]:
    """Yield the places where a statement leaves the test, also those under a condition."""
    if isinstance(statement, ast.Return):
        yield statement
    elif not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        for part in ast.iter_child_nodes(statement):
            if isinstance(part, ast.stmt):
                yield from _iter_returns(part)


def _iter_rows(decorators: Sequence[ast.expr]) -> Iterator[ast.expr]:
    """Yield the rows of literal `parametrize` lists."""
    for decorator in decorators:
        if not isinstance(decorator, ast.Call) or not ast.unparse(decorator.func).endswith("parametrize"):
            continue
        values = [*decorator.args[1:2], *(k.value for k in decorator.keywords if k.arg == "argvalues")]
        for value in values:
            if isinstance(value, ast.List | ast.Tuple):
                yield from value.elts


def _values_of(row: ast.expr) -> ast.expr:
    """Return the values of a row of a table, without the marks and the name of `pytest.param`."""
    if not isinstance(row, ast.Call) or ast.unparse(row.func).rpartition(".")[2] != "param":
        return row
    return row.args[0] if len(row.args) == 1 else ast.Tuple(elts=row.args, ctx=ast.Load())


def _is_skipped_row(row: ast.expr) -> bool:
    marks = (
        [keyword.value for keyword in row.keywords if keyword.arg == "marks"]
        if isinstance(row, ast.Call)
        else []
    )
    return any(
        isinstance(part, ast.Attribute) and part.attr in SKIPPING_DECORATORS
        for mark in marks
        for part in ast.walk(mark)
    )


def _marks_as_skipped(name: str, node: ast.stmt) -> bool:
    return name == "pytestmark" and any(
        isinstance(part, ast.Attribute) and part.attr in SKIPPING_DECORATORS for part in ast.walk(node)
    )


def _is_automatic_fixture(node: Function) -> bool:
    return any(
        isinstance(decorator, ast.Call) and any(keyword.arg == "autouse" for keyword in decorator.keywords)
        for decorator in node.decorator_list
    )
