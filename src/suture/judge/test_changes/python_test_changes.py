"""Compare two versions of a Python test file: tests that are removed, skipped or loosened, and new ones."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from suture.judge.test_changes.python_assertions import (
    Assertion,
    find_widened_tolerances,
    is_broader,
    iter_assertions,
    show_source,
)
from suture.judge.test_changes.test_change import TestChange, TestChangeCode, TestFileChanges
from suture.project.python_source.parsing import parse_module

SKIPPING_DECORATORS = frozenset((
    "skip", "skipif", "xfail", "skipIf", "skipUnless", "expectedFailure", "importorskip",
))  # fmt: skip
SKIPPING_CALLS = frozenset(("skip", "xfail", "skipTest", "importorskip", "SkipTest"))
OUTCOME_HOOKS = frozenset((
    "pytest_collection_modifyitems", "pytest_ignore_collect", "pytest_collect_file", "pytest_pycollect_makeitem",
    "pytest_itemcollected", "pytest_deselected", "pytest_runtest_makereport", "pytest_runtest_protocol",
    "pytest_runtest_call", "pytest_runtest_setup", "pytest_pyfunc_call", "pytest_report_teststatus",
    "pytest_assertrepr_compare", "pytest_sessionfinish", "pytest_exception_interact", "pytest_generate_tests",
    "pytest_runtestloop", "pytest_configure", "pytest_cmdline_main", "pytest_load_initial_conftests",
    "pytest_assertion_pass", "pytest_runtest_logreport",
))  # fmt: skip
"""Hooks of pytest that can change which tests run or how they end."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, kw_only=True)
class _Test:
    """A test function, with the decorators that apply to it."""

    name: str
    node: Function
    decorators: tuple[ast.expr, ...]


@dataclass(kw_only=True)
class _TestFile:
    """The parts of a test file that decide what it demands.

    Attributes:
        tests: Name -> test. Of two tests with one name, the later one runs.
        support: Name -> source of the helpers, fixtures, hooks and data of the module.
    """

    tests: dict[str, _Test] = field(default_factory=dict)
    support: dict[str, ast.stmt] = field(default_factory=dict)


def compare_python_tests(path: str, before: str, after: str) -> TestFileChanges:
    """Return what a change does to the tests of a Python file.

    Args:
        path: The test file, for the result.
        before: Its old source; empty for a new file.
        after: Its new source; empty for a removed file. A source with a fault of syntax holds no tests.
    """
    old, new = _read_test_file(before), _read_test_file(after)
    renamed = _find_renamed(old, new)
    removed = [name for name in old.tests if name not in new.tests and name not in renamed]
    changes = [
        TestChange(
            code="test_removed",
            path=path,
            line=old.tests[name].node.lineno,
            test=name,
            before=_describe_test(old.tests[name]),
        )
        for name in removed
    ]
    changed_tests: list[str] = []
    for name, test in old.tests.items():
        new_test = new.tests.get(renamed.get(name, name))
        if new_test is None or _dump(test) == _dump(new_test):
            continue
        changed_tests.append(new_test.name)
        changes += _compare_tests(path, test, new_test)
    new_tests = [name for name in new.tests if name not in old.tests and name not in renamed.values()]
    for name in new_tests:
        test = new.tests[name]
        if not any(True for _ in iter_assertions(test.node.body)) and not _calls_anything(test.node):
            changes.append(TestChange(code="asserts_nothing", path=path, line=test.node.lineno, test=name))
    changes += _compare_support(path, old, new)
    return TestFileChanges(
        changes=tuple(sorted(changes, key=lambda change: change.line)),
        new_tests=tuple(new_tests),
        changed_tests=tuple(changed_tests),
        removed_tests=tuple(removed),
    )


def _read_test_file(source: str) -> _TestFile:
    file, tree = _TestFile(), parse_module(source)
    for statement in tree.body if tree is not None else ():
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if statement.name.startswith("test"):
                file.tests[statement.name] = _Test(
                    name=statement.name, node=statement, decorators=tuple(statement.decorator_list)
                )
            case ast.ClassDef():
                _read_class(statement, file, "", ())
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                file.support[statement.name] = statement
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                file.support[", ".join(map(ast.unparse, targets))] = statement
    return file


def _read_class(node: ast.ClassDef, file: _TestFile, prefix: str, decorators: tuple[ast.expr, ...]) -> None:
    """Add the tests of a class and of the classes in it; other members are support."""
    decorators = (*decorators, *node.decorator_list)
    for member in node.body:
        name = f"{prefix}{node.name}::{getattr(member, 'name', '')}"
        match member:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if member.name.startswith("test"):
                file.tests[name] = _Test(
                    name=name, node=member, decorators=(*decorators, *member.decorator_list)
                )
            case ast.ClassDef():
                _read_class(member, file, f"{prefix}{node.name}::", decorators)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                file.support[name] = member
            case ast.Assign() | ast.AnnAssign():
                targets = member.targets if isinstance(member, ast.Assign) else [member.target]
                file.support[f"{prefix}{node.name}::{', '.join(map(ast.unparse, targets))}"] = member


def _find_renamed(old: _TestFile, new: _TestFile) -> dict[str, str]:
    """Return old name -> new name of tests that only changed their name."""
    gone = [test for name, test in old.tests.items() if name not in new.tests]
    added = {_dump_body(test): name for name, test in new.tests.items() if name not in old.tests}
    return {test.name: added[key] for test in gone if (key := _dump_body(test)) in added}


def _dump(test: _Test) -> str:
    return "\n".join([ast.dump(test.node), *map(ast.dump, test.decorators)])


def _dump_body(test: _Test) -> str:
    return "\n".join(map(ast.dump, [*test.node.body, *test.decorators]))


def _describe_test(test: _Test) -> str:
    count = sum(1 for _ in iter_assertions(test.node.body))
    return f"{count} assertion{'' if count == 1 else 's'}"


def _calls_anything(node: Function) -> bool:
    """Return whether a test calls a function: one that asserts nothing still fails when it raises."""
    return any(isinstance(part, ast.Call) for statement in node.body for part in ast.walk(statement))


def _compare_tests(path: str, old: _Test, new: _Test) -> Iterator[TestChange]:
    for name, line in _find_new_skips(old, new):
        yield TestChange(code="test_skipped", path=path, line=line, test=new.name, after=name)
    yield from _compare_cases(path, old, new)
    yield from _compare_assertions(path, old, new)


def _find_new_skips(old: _Test, new: _Test) -> Iterator[tuple[str, int]]:
    """Yield `(source, line)` of what newly skips a test, or lets it fail without consequence."""
    known = Counter(ast.dump(node) for node in _iter_skips(old))
    for node in _iter_skips(new):
        if known[ast.dump(node)]:
            known[ast.dump(node)] -= 1
        else:
            yield show_source(node), node.lineno
    first = next(iter_assertions(new.node.body), None)
    for statement in new.node.body:
        is_early = first is None or statement.lineno < first.line
        if isinstance(statement, ast.Return) and is_early and not _has_early_return(old):
            yield show_source(statement), statement.lineno


def _has_early_return(test: _Test) -> bool:
    return any(isinstance(statement, ast.Return) for statement in test.node.body)


def _iter_skips(test: _Test) -> Iterator[ast.expr]:
    for decorator in test.decorators:
        function = decorator.func if isinstance(decorator, ast.Call) else decorator
        if ast.unparse(function).rpartition(".")[2] in SKIPPING_DECORATORS:
            yield decorator
    for statement in test.node.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in SKIPPING_CALLS:
                yield node


def _compare_cases(path: str, old: _Test, new: _Test) -> Iterator[TestChange]:
    """Yield the rows of literal `parametrize` lists that are gone or have other values."""
    old_rows, new_rows = _iter_rows(old), _iter_rows(new)
    added = Counter(map(ast.dump, new_rows)) - Counter(map(ast.dump, old_rows))
    known = Counter(map(ast.dump, new_rows))
    lost = []
    for row in old_rows:
        if known[ast.dump(row)]:
            known[ast.dump(row)] -= 1
        else:
            lost.append(row)
    replaced = added.total()
    for number, row in enumerate(lost):
        code: TestChangeCode = "expectation_changed" if number < replaced else "cases_removed"
        yield TestChange(
            code=code,
            path=path,
            line=new.node.lineno if code == "expectation_changed" else row.lineno,
            test=new.name,
            before=show_source(row),
        )


def _iter_rows(test: _Test) -> list[ast.expr]:
    rows: list[ast.expr] = []
    for decorator in test.decorators:
        if not isinstance(decorator, ast.Call) or not ast.unparse(decorator.func).endswith("parametrize"):
            continue
        values = [*decorator.args[1:2], *(k.value for k in decorator.keywords if k.arg == "argvalues")]
        rows += [row for value in values if isinstance(value, ast.List | ast.Tuple) for row in value.elts]
    return rows


def _compare_assertions(path: str, old: _Test, new: _Test) -> Iterator[TestChange]:
    old_left, new_left = _drop_equal(
        list(iter_assertions(old.node.body)), list(iter_assertions(new.node.body))
    )
    unmatched: list[Assertion] = []
    for assertion in old_left:
        match = next((other for other in new_left if _is_same_subject(assertion, other)), None)
        if match is None:
            unmatched.append(assertion)
            continue
        new_left.remove(match)
        yield from _compare_pair(path, new.name, assertion, match)
    for assertion in unmatched:
        # An assertion about something else takes its place, as when a function gets another argument.
        substitute = next((other for other in new_left if other.strength >= assertion.strength), None)
        if substitute is not None:
            new_left.remove(substitute)
        code: TestChangeCode = "assertion_removed" if substitute is None else "expectation_changed"
        yield TestChange(
            code=code,
            path=path,
            line=assertion.line if substitute is None else substitute.line,
            test=new.name,
            before=assertion.text,
            after=substitute.text if substitute is not None else "",
        )


def _is_same_subject(old: Assertion, new: Assertion) -> bool:
    # A negation of the same condition is another assertion about the same subject.
    return old.subject.removeprefix("not ") == new.subject.removeprefix("not ")


def _drop_equal(
    old: Sequence[Assertion], new: Sequence[Assertion]
) -> tuple[list[Assertion], list[Assertion]]:
    """Return the assertions of each version that the other one does not have as they are."""
    new_left, old_left = list(new), []
    for assertion in old:
        equal = next((other for other in new_left if _key(other) == _key(assertion)), None)
        if equal is None:
            old_left.append(assertion)
        else:
            new_left.remove(equal)
    return old_left, new_left


def _key(assertion: Assertion) -> tuple[object, ...]:
    return (
        assertion.subject,
        assertion.strength,
        assertion.expected,
        assertion.tolerances,
        assertion.exceptions,
        assertion.is_guarded,
        assertion.is_conditional,
    )


def _compare_pair(path: str, test: str, old: Assertion, new: Assertion) -> Iterator[TestChange]:
    """Yield what changed between two assertions about the same subject; the gravest change only."""
    code: TestChangeCode | None = None
    if (new.is_guarded and not old.is_guarded) or (new.is_conditional and not old.is_conditional):
        code = "assertion_guarded"
    elif is_broader(old, new):
        code = "exception_broadened"
    elif new.strength < old.strength:
        code = "assertion_loosened"
    elif find_widened_tolerances(old, new):
        code = "tolerance_widened"
    elif (old.expected, old.exceptions, old.subject) != (new.expected, new.exceptions, new.subject):
        code = "expectation_changed"
    if code is not None:
        yield TestChange(code=code, path=path, line=new.line, test=test, before=old.text, after=new.text)


def _compare_support(path: str, old: _TestFile, new: _TestFile) -> Iterator[TestChange]:
    """Yield changes of helpers, fixtures, hooks and data that tests of the file use."""
    for name, node in new.support.items():
        before = old.support.get(name)
        short = name.rpartition("::")[2]
        if short in OUTCOME_HOOKS and (before is None or ast.dump(before) != ast.dump(node)):
            yield TestChange(code="test_hook_added", path=path, line=node.lineno, after=name)
        elif _skips_the_module(short, node) and (before is None or ast.dump(before) != ast.dump(node)):
            yield TestChange(code="test_skipped", path=path, line=node.lineno, after=show_source(node))
        elif before is not None and ast.dump(before) != ast.dump(node):
            yield TestChange(
                code="test_support_changed",
                path=path,
                line=node.lineno,
                before=show_source(before),
                after=show_source(node),
            )
        elif before is None and _is_autouse_fixture(node):
            yield TestChange(code="test_support_changed", path=path, line=node.lineno, after=name)


def _skips_the_module(name: str, node: ast.stmt) -> bool:
    if name in ("collect_ignore", "collect_ignore_glob", "__test__"):
        return True
    return name == "pytestmark" and any(
        isinstance(part, ast.Attribute) and part.attr in SKIPPING_DECORATORS for part in ast.walk(node)
    )


def _is_autouse_fixture(node: ast.stmt) -> bool:
    decorators = node.decorator_list if isinstance(node, Function) else []
    return any(
        isinstance(decorator, ast.Call) and any(keyword.arg == "autouse" for keyword in decorator.keywords)
        for decorator in decorators
    )
