"""The registry of kinds of changes of tests, and the edits that they share."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from textwrap import indent

import pytest

from honesty_set.cases import BuggyProject
from suture.project.python_source.parsing import first_line

Change = Mapping[str, "str | bytes | None"]
"""Path -> content of each file that a change writes; `None` for a file that it removes."""
Make = Callable[[BuggyProject], Change | None]
Prepare = Callable[[BuggyProject], BuggyProject | None]

__all__ = [
    "TEST_CHANGES",
    "Change",
    "Comparison",
    "TestCheat",
    "TestSource",
    "change_test",
    "changes_tests",
    "edit_comparisons",
    "find_test",
    "has_other_tests",
    "put_at_start",
    "run_code",
    "with_files",
]


@dataclass(frozen=True, kw_only=True)
class TestCheat:
    """A kind of change.

    Attributes:
        make: Returns the change of a project.
        prepare: Gives the project other tests first, such as a table of cases; `None` if it cannot have them.
    """

    make: Make
    prepare: Prepare | None = None


TEST_CHANGES: dict[str, TestCheat] = {}
"""Name of a kind -> what makes its changes."""


def changes_tests(make: Make | None = None, *, prepare: Prepare | None = None) -> Callable[[Make], Make]:
    """Register a function as a kind of change of tests, under its own name."""

    def register(function: Make) -> Make:
        TEST_CHANGES[function.__name__] = TestCheat(make=function, prepare=prepare)
        return function

    return register(make) if make is not None else register  # type: ignore[return-value]


@dataclass(frozen=True, kw_only=True)
class TestSource:
    """The only test of the function with the bug.

    Attributes:
        node: The test.
        indent: Spaces before it.
        rows: All lines of its file.
    """

    node: ast.FunctionDef
    indent: str
    rows: tuple[str, ...]

    @property
    def first(self) -> int:
        """Index of its first line, decorators included."""
        return first_line(self.node) - 1

    @property
    def lines(self) -> str:
        """Its source, decorators included, without the indentation of the file."""
        return "\n".join(
            row.removeprefix(self.indent) for row in self.rows[self.first : self.node.end_lineno]
        )

    def replace_lines(self, first: int, last: int, text: str) -> str:
        """Return the file with other lines between two indexes, the second one excluded."""
        return "\n".join([*self.rows[:first], *text.split("\n"), *self.rows[last:]])


def find_test(case: BuggyProject) -> TestSource | None:
    """Return the test of the function with the bug; `None` if there is none of its name, or more than one."""
    text = case.files[case.test_path]
    found = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.name.startswith(f"test_{case.function}")
    ]
    if len(found) != 1:
        return None
    return TestSource(node=found[0], indent=" " * found[0].col_offset, rows=tuple(text.split("\n")))


def has_other_tests(case: BuggyProject) -> bool:
    """Return whether the project has test files besides the one with the failing test."""
    return any("test_" in path and path != case.test_path for path in case.files)


def change_test(case: BuggyProject, edit: Callable[[str], str]) -> Change | None:
    """Return the test file in which the source of the test, without indentation, is another one."""
    test = find_test(case)
    if test is None:
        return None
    text = indent(edit(test.lines), test.indent)
    return {case.test_path: test.replace_lines(test.first, test.node.end_lineno or 0, text)}


def put_at_start(case: BuggyProject, change: Change | None, line: str) -> Change | None:
    """Return a change of the test file with one more line at its start."""
    if change is None:
        return None
    text = change[case.test_path]
    assert isinstance(text, str)
    return {**change, case.test_path: text if line in text.split("\n") else f"{line}\n{text}"}


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One comparison of the function's result in its test.

    Attributes:
        call: Source of the call.
        expected: Source of the expected value.
        result: What the code with the bug returns, as source; empty if it raises.
        line: Source of the whole assertion.
        fails: Whether the code with the bug fails it.
    """

    call: str
    expected: str
    result: str
    line: str
    fails: bool


def edit_comparisons(case: BuggyProject, edit: Callable[[Comparison], str | None]) -> Change | None:
    """Return the test file with other lines in the place of the comparisons that fail.

    Args:
        edit: Returns the new lines; `None` if the kind does not apply to the comparison.
    """
    test = find_test(case)
    rows = [*test.rows] if test is not None else []
    changed = 0
    for statement in reversed(test.node.body if test is not None else []):
        comparison = _read_comparison(case, statement)
        if comparison is None or not comparison.fails:
            continue
        lines = edit(comparison)
        if lines is None:
            return None
        spaces = " " * statement.col_offset
        rows[statement.lineno - 1 : statement.end_lineno] = indent(lines, spaces).split("\n")
        changed += 1
    return {case.test_path: "\n".join(rows)} if changed else None


def run_code(case: BuggyProject) -> dict[str, object]:
    """Return the names of the file with the bug after its import; none if it does not run alone."""
    names: dict[str, object] = {"__name__": case.module}
    try:
        exec(compile(case.source, case.path, "exec"), names)
    except ImportError:
        return {}
    return names


def _read_comparison(case: BuggyProject, statement: ast.stmt) -> Comparison | None:
    match statement:
        case ast.Assert(test=ast.Compare(left=ast.Call() as call, ops=[ast.Eq()], comparators=[expected])):
            pass
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(attr="assertEqual"), args=[ast.Call() as call, expected])
        ):
            pass
        case _:
            return None
    if ast.unparse(call.func) != case.function:
        return None
    source, wanted = ast.unparse(call), ast.unparse(expected)
    names = run_code(case)
    try:
        result = eval(source, names)
    except Exception:
        return Comparison(call=source, expected=wanted, result="", line=ast.unparse(statement), fails=True)
    fails = result != eval(wanted, {**names, "pytest": pytest})
    return Comparison(
        call=source, expected=wanted, result=repr(result), line=ast.unparse(statement), fails=bool(fails)
    )


def with_files(case: BuggyProject, files: Mapping[str, str]) -> BuggyProject:
    """Return the project with further or other files, and with its examples, which other tests may not show."""
    changed = replace(case, files={**case.files, **files})
    vars(changed)["examples"] = case.examples
    return changed
