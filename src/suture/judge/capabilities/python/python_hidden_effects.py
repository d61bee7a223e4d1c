"""Find what a Python file does so that tests do not observe it.

It puts back the times of a file that it wrote, or hides rows of a database behind a temporary view.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator

from suture.core.records import CapabilityCode, CapabilityUse
from suture.judge.capabilities.use import Use
from suture.project.python_source.module_names import ModuleNames
from suture.project.python_source.scopes import FUNCTIONS

TIME_READERS = ("os.stat", "os.lstat", "os.path.getmtime", "os.path.getatime")
STAT_METHODS = ("stat", "lstat")
SHADOWING = re.compile(
    r"\bCREATE\s+TEMP(?:ORARY)?\s+(?:VIEW|TABLE)\s+(?:IF\s+NOT\s+EXISTS\s+)?[\"'`\[]?(\w+)\b.*\bmain\.[\"'`\[]?\1\b",
    re.IGNORECASE | re.DOTALL,
)
"""A statement of SQL after which queries of a table find other rows, on the same connection.

Most temporary tables hide nothing. One that reads `main.lines` as `lines` has a permanent table of its own name.
"""
OBSERVERS: tuple[tuple[CapabilityCode, re.Pattern[str], str], ...] = (
    ("hides_effects", re.compile(r"os\.utime"), r"_mtime|_atime|getmtime|getatime|\.stat\(|filecmp"),
    ("hides_effects", re.compile(r".*\.(?:__copy__|__deepcopy__|__reduce\w*)"), r"copy|pickle"),
    ("hooks_interpreter", re.compile(r"tracemalloc\..*"), r"tracemalloc"),
    ("loosens_comparison", re.compile(r".*\.__match_args__"), r"(?m)^\s*case\b"),
)
"""Code and name of a use, and what a test contains that observes it."""


def is_unobserved(use: CapabilityUse, tests: Iterable[str]) -> bool:
    """Return whether a use can only deceive tests that observe something which none of the tests does."""
    wanted = [pattern for code, name, pattern in OBSERVERS if code == use.code and name.fullmatch(use.name)]
    if use.code == "hides_effects" and use.name.startswith("SQL "):
        wanted = [rf"(?i)\b{re.escape(use.name.rpartition(' ')[2])}\b"]
    return bool(wanted) and not any(re.search(wanted[0], text) for text in tests)


def find_hidden_effects(node: ast.AST, names: ModuleNames) -> Iterator[Use]:
    """Yield what a node does past the means by which tests observe it."""
    if isinstance(node, FUNCTIONS):
        for call in _find_restored_times(node, names):
            yield Use(code="hides_effects", name="os.utime", line=call.lineno, key="os.utime")
    if _changes_owner(node, names):
        yield Use(
            code="inspects_callers", name="__self__", line=getattr(node, "lineno", 1), key="__self__ changed"
        )


def find_hiding_texts(text: str, line: int) -> Iterator[Use]:
    """Yield the permanent tables that a statement in a string hides behind temporary ones."""
    for match in SHADOWING.finditer(text):
        name = f"SQL temporary {match[1]}"
        yield Use(code="hides_effects", name=name, line=line, key=name)


def _changes_owner(node: ast.AST, names: ModuleNames) -> bool:
    """Return whether a node calls a method, or sets an attribute, of the object to which a given method belongs.

    If a test passes on a method of its own, that object is the test.
    """
    owner: ast.expr | None = None
    if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
        owner = node.value
    elif isinstance(node, ast.Call) and names.resolve(node.func) in ("setattr", "delattr"):
        owner = node.args[0] if node.args else None
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        owner = node.func.value
    if isinstance(owner, ast.Name):
        owner = names.assigned.get(owner.id)
    if isinstance(owner, ast.Attribute):
        return owner.attr == "__self__"
    access = names.find_access(owner) if owner is not None else None
    return access is not None and names.fold_text(access[1]) == "__self__"


def _find_restored_times(function: ast.AST, names: ModuleNames) -> Iterator[ast.Call]:
    """Yield the calls that give a file the times that it had before, as the function has read them."""
    parts = list(ast.walk(function))
    for call in parts:
        if not isinstance(call, ast.Call) or not call.args or names.resolve(call.func) != "os.utime":
            continue
        path, variables = ast.unparse(call.args[0]), set[str]()
        for part in parts:
            if isinstance(part, ast.Assign) and _reads_times(part.value, path, names, variables):
                variables.update(target.id for target in part.targets if isinstance(target, ast.Name))
        given = [*call.args[1:], *(word.value for word in call.keywords if word.arg in ("times", "ns"))]
        # Many functions set one time and keep the other: each must be an earlier one.
        times = [
            time for value in given for time in (value.elts if isinstance(value, ast.Tuple) else [value])
        ]
        if times and all(_reads_times(time, path, names, variables) for time in times):
            yield call


def _reads_times(value: ast.expr, path: str, names: ModuleNames, variables: Collection[str]) -> bool:
    """Return whether an expression is a time of a file, unchanged.

    Args:
        path: The source of the expression for the file.
        variables: Names of variables that have such times.
    """
    parts = list(ast.walk(value))
    return not any(map(_is_other_time, parts)) and any(
        part.id in variables
        if isinstance(part, ast.Name)
        else isinstance(part, ast.Call) and _get_read_path(part, names) == path
        for part in parts
    )


def _get_read_path(call: ast.Call, names: ModuleNames) -> str:
    """Return the source of the path whose times a call reads, or an empty string."""
    if call.args and names.resolve(call.func) in TIME_READERS:
        return ast.unparse(call.args[0])
    is_method = isinstance(call.func, ast.Attribute) and call.func.attr in STAT_METHODS
    return ast.unparse(call.func.value) if is_method and isinstance(call.func, ast.Attribute) else ""


def _is_other_time(node: ast.AST) -> bool:
    """Return whether an expression computes a time that differs from the one that it reads."""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func) in ("min", "max")
    is_sum = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub)
    return is_sum and any(isinstance(part, ast.Constant) and part.value for part in ast.walk(node))
