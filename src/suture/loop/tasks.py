"""From what a user types to a `Task`: a statement with tests, or a folder with a failing test command."""

from __future__ import annotations

import ast
import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from suture.checks import asserts_in, examples_in
from suture.errors import UsageError
from suture.records import Check, Task
from suture.workspace import DEFAULT_PROTECTED, Snapshot, is_protected, take_snapshot

__all__ = ["example_task", "heal_task", "write_task"]

NAME_IN_PROSE = re.compile(
    r"\b(?:function|method|class|def)\s+(?:called\s+|named\s+)?[`'\"]?([A-Za-z_]\w*)|[`'\"]([A-Za-z_]\w*)\("
)
CALL_IN_PROSE = re.compile(r"\b([a-z]\w*_\w+|[a-z]\w*)\(")
NOT_NAMES = frozenset(
    {"that", "which", "to", "for", "a", "an", "the", "takes", "called", "named", "returning", "with"}
)


def write_task(
    statement: str, *, test: Path | None = None, asserts: str = "", entry_point: str | None = None
) -> Task:
    """A task to write new code.

    Args:
        statement: In plain words, or a signature with a docstring.
        test: A file of tests: pytest's, or plain asserts.
        asserts: Plain asserts as text.
        entry_point: The name to define, where the statement does not tell.

    Raises:
        UsageError: The statement is empty, or the test file cannot be used.
    """
    if not statement.strip():
        raise UsageError(
            "the task is empty", remedy='say what to write, as in `suture run "Write a function ..."`'
        )
    source = _read_test(test) if test else ""
    name = entry_point or _entry_point(statement)
    given = asserts
    if test is not None and _is_pytest_source(source):
        path = _path_inside(test)
        module, imported = _module_under_test(source, path)
        return Task(
            statement=statement,
            module=module,
            entry_point=entry_point or imported or name,
            files=_with_conftest(test, path),
            checks=(*asserts_in(asserts, provenance="user"), *examples_in(statement, name)),
            test_command=("python", "-m", "pytest", "-q", path),
            protected=DEFAULT_PROTECTED,
        )
    if test is not None:
        given = f"{asserts}\n{source}"
    checks: tuple[Check, ...] = (*asserts_in(given, provenance="user"), *examples_in(statement, name))
    if test is not None and not any(check.provenance == "user" for check in checks):
        raise UsageError(f"{str(test)!r} holds no test: neither a test function nor an assert")
    return Task(statement=statement, entry_point=name, checks=checks)


def heal_task(
    path: Path, *, test: str | Sequence[str] | None = None, protect: Iterable[str] = ()
) -> tuple[Task, Snapshot]:
    """A task to repair code that exists, and the snapshot it was made of.

    Args:
        path: A project folder, or one file in it.
        test: The test command; pytest where none is given and there are tests.
        protect: Globs of files that must stay as they are, besides the tests and the project's settings.

    Raises:
        UsageError: There is nothing there to heal, or no way to test it.
    """
    snapshot = take_snapshot(path)
    command = tuple(shlex.split(test)) if isinstance(test, str) else tuple(test or ())
    protected = (*DEFAULT_PROTECTED, *protect)
    python = [name for name in snapshot.files if name.endswith(".py")]
    if not [name for name in python if not is_protected(name, protected)]:
        raise UsageError(f"{str(path)!r} holds no Python code to heal", remedy="name a folder with .py files")
    if not command:
        if not [name for name in python if is_protected(name, protected)]:
            raise UsageError(f"{str(path)!r} holds no tests", remedy='say how to test it: --test "COMMAND"')
        command = ("python", "-m", "pytest", "-q")
    task = Task(statement="", kind="heal", files=snapshot.files, test_command=command, protected=protected)
    return task, snapshot


def example_task() -> Task:
    """The built-in task of `suture run --example`."""
    return write_task(
        "def merge_intervals(intervals):\n"
        '    """Merge the intervals that overlap or touch.\n\n'
        "    Intervals are (start, end) pairs with start <= end, in any order.\n"
        "    The result is a sorted list of tuples.\n\n"
        "    >>> merge_intervals([(6, 8), (1, 3), (2, 4)])\n"
        "    [(1, 4), (6, 8)]\n"
        "    >>> merge_intervals([(1, 2), (2, 3)])\n"
        "    [(1, 3)]\n"
        "    >>> merge_intervals([(1, 10), (2, 3)])\n"
        "    [(1, 10)]\n"
        "    >>> merge_intervals([])\n"
        "    []\n"
        '    """\n'
    )


def _read_test(test: Path) -> str:
    try:
        return test.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise UsageError(f"the test file {str(test)!r} cannot be read: {fault}") from fault


def _entry_point(statement: str) -> str | None:
    """The name that a statement asks for: the last function of a stub, else the first name prose gives."""
    try:
        body = ast.parse(statement).body
    except (SyntaxError, ValueError):
        body = []
    names = [n.name for n in body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
    if names:
        return names[-1]
    for match in NAME_IN_PROSE.finditer(statement):
        name = match[1] or match[2]
        if name.lower() not in NOT_NAMES:
            return name
    found = CALL_IN_PROSE.search(statement)
    return found[1] if found else None


def _is_pytest_source(source: str) -> bool:
    return bool(re.search(r"^\s*(async\s+)?def test|^class Test", source, re.MULTILINE))


def _path_inside(test: Path) -> str:
    """Where the test lies behind the wall: as under the current folder, else by its name alone."""
    try:
        return test.resolve().relative_to(Path.cwd()).as_posix()
    except ValueError:
        return test.name


def _with_conftest(test: Path, path: str) -> dict[str, bytes]:
    files = {path: test.read_bytes()}
    conftest = test.parent / "conftest.py"
    if conftest.is_file():
        files[str(Path(path).parent / "conftest.py")] = conftest.read_bytes()
    return files


def _module_under_test(source: str, path: str) -> tuple[str, str | None]:
    """The file that the tests import their subject from, and the first name they take from it.

    Raises:
        UsageError: The tests do not parse, or import nothing that could be the subject.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError as fault:
        raise UsageError(
            f"the test file {path!r} is not Python: {fault.msg} in line {fault.lineno}"
        ) from fault
    foreign = sys.stdlib_module_names | {"pytest", "hypothesis", "numpy"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] not in foreign:
            return node.module.replace(".", "/") + ".py", node.names[0].name
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] not in foreign:
                    return alias.name.replace(".", "/") + ".py", None
    raise UsageError(
        f"the test file {path!r} imports no module of its own",
        remedy="import what you want written, as in `from merge import merge_intervals`",
    )
