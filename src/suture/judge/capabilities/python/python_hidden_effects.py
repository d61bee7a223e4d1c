"""Find what a Python file does so that tests do not observe it.

It writes past the stream that a test reads, puts back the times of a file that it wrote, hides rows of a database
behind a temporary view, or takes the failure of a child process for a success.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from suture.core.records import CapabilityCode, CapabilityUse
from suture.judge.capabilities.use import Use
from suture.project.python_source.module_names import ModuleNames

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
OUTPUT_DESCRIPTORS = (1, 2)
DESCRIPTOR_CALLS = ("os.write", "os.writev", "os.fdopen", "os.dup", "os.dup2", "open", "io.open", "io.FileIO")
"""Functions whose first argument may be a file descriptor to which they write, or which they open for that."""
OUTPUT_FILE = re.compile(r"/dev/(?:stdout|stderr|fd/[12])")
ORIGINAL_OUTPUT = re.compile(r"sys\.__std(?:out|err)__(?:\.buffer)?(?:\.write(?:lines)?)?")
TIME_READERS = ("os.stat", "os.lstat", "os.path.getmtime", "os.path.getatime")
STAT_METHODS = ("stat", "lstat")
SHADOWING = re.compile(
    r"\bCREATE\s+TEMP(?:ORARY)?\s+(?:(?:VIEW|TABLE)\s+(?:IF\s+NOT\s+EXISTS\s+)?[\"'`\[]?(\w+)"
    r"|TRIGGER\b.*?\bON\s+(?:main\.)?[\"'`\[]?(\w+))",
    re.IGNORECASE | re.DOTALL,
)
"""A statement of SQL after which queries of a table may find other rows, on the same connection."""
SQL_DEFINITIONS = ("create_function", "create_aggregate", "create_window_function", "create_collation")
SQL_FUNCTIONS = frozenset((
    "abs", "avg", "binary", "coalesce", "count", "date", "datetime", "group_concat", "hex", "ifnull", "instr",
    "length", "like", "lower", "ltrim", "max", "min", "nocase", "nullif", "quote", "replace", "round", "rtrim",
    "substr", "sum", "time", "total", "trim", "typeof", "upper",
))  # fmt: skip
"""Functions and collations that SQLite defines."""
OBSERVERS: tuple[tuple[CapabilityCode, re.Pattern[str], str], ...] = (
    (
        "hides_effects",
        re.compile(r".*\([12]\)|/dev/.*|sys\.__std.*"),
        r"capsys|redirect_std|sys\.std|Runner\b",
    ),
    ("hides_effects", re.compile(r"os\.utime"), r"_mtime|_atime|getmtime|getatime|\.stat\(|filecmp"),
    (
        "hides_effects",
        re.compile(r".*\.(?:__copy__|__deepcopy__|__reduce\w*|copy|clone)"),
        r"copy|clone|pickle",
    ),
    ("hooks_interpreter", re.compile(r"tracemalloc\..*"), r"tracemalloc"),
    ("loosens_comparison", re.compile(r".*\.__match_args__"), r"(?m)^\s*case\b"),
)
"""Code and name of a use, and what a test contains that observes it."""


def is_unobserved(use: CapabilityUse, tests: Iterable[str]) -> bool:
    """Return whether a use can only deceive tests that observe something which none of the tests does.

    Args:
        tests: The sources of the tests.
    """
    wanted = [pattern for code, name, pattern in OBSERVERS if code == use.code and name.fullmatch(use.name)]
    if use.code == "hides_effects" and use.name.startswith("SQL "):
        wanted = [rf"(?i)\b{re.escape(use.name.rpartition(' ')[2])}\b"]
    return bool(wanted) and not any(re.search(wanted[0], text) for text in tests)


def find_hidden_effects(node: ast.AST, names: ModuleNames) -> Iterator[Use]:
    """Yield what a node does past the means by which tests observe it."""
    found = ""
    if isinstance(node, ast.Call):
        found = _find_output(node, names) or _find_definition(node, names)
    elif isinstance(node, ast.Compare) and _accepts_failure(node, names):
        found = "exitcode"
    elif isinstance(node, FUNCTIONS):
        for call in _find_restored_times(node, names):
            yield Use(code="hides_effects", name="os.utime", line=call.lineno, key="os.utime")
    if _changes_owner(node, names):
        yield Use(
            code="inspects_callers", name="__self__", line=getattr(node, "lineno", 1), key="__self__ changed"
        )
    if found:
        yield Use(code="hides_effects", name=found, line=getattr(node, "lineno", 1), key=found)


def find_hiding_texts(text: str, line: int) -> Iterator[Use]:
    """Yield what a string refers to: a file that is the output of the process, or a table that another one hides."""
    if OUTPUT_FILE.fullmatch(text):
        yield Use(code="hides_effects", name=text, line=line, key="output")
    for match in SHADOWING.finditer(text):
        name = f"SQL temporary {match[1] or match[2]}"
        yield Use(code="hides_effects", name=name, line=line, key=name)


def _find_output(node: ast.Call, names: ModuleNames) -> str:
    """Return the name of what writes to the output of the process itself, whatever `sys.stdout` is."""
    function = names.resolve(node.func)
    if function in DESCRIPTOR_CALLS:
        descriptors = node.args[1:2] if function == "os.dup2" else node.args[:1]
        numbers = [value for part in descriptors if type(value := names.fold(part)) is int]
        return next((f"{function}({number})" for number in numbers if number in OUTPUT_DESCRIPTORS), "")
    values = [node.func, *node.args, *(word.value for word in node.keywords)]
    written = (names.resolve(value) for value in values if isinstance(value, ast.Name | ast.Attribute))
    return next((name for name in written if ORIGINAL_OUTPUT.fullmatch(name)), "")


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


def _find_definition(node: ast.Call, names: ModuleNames) -> str:
    """Return which function or collation of SQLite itself a call redefines."""
    is_definition = isinstance(node.func, ast.Attribute) and node.func.attr in SQL_DEFINITIONS
    name = names.fold_text(node.args[0]) if is_definition and node.args else None
    return f"SQL function {name}" if name is not None and name.lower() in SQL_FUNCTIONS else ""


def _accepts_failure(node: ast.Compare, names: ModuleNames) -> bool:
    """Return whether a comparison distinguishes exit codes of a child process that all mean failure."""
    if not isinstance(node.left, ast.Attribute) or node.left.attr != "exitcode":
        return False
    codes = names.fold(node.comparators[0])
    codes = codes if isinstance(codes, list | tuple | set | frozenset) else [codes]
    return any(isinstance(code, int) and code > 0 for code in codes)


def _find_restored_times(function: ast.AST, names: ModuleNames) -> Iterator[ast.Call]:
    """Yield the calls that give a file the times that it had before, as the function has read them."""
    calls = [part for part in ast.walk(function) if isinstance(part, ast.Call)]
    changed = [
        call
        for call in calls
        if call.args
        and names.resolve(call.func) == "os.utime"
        and (call.args[1:] or call.keywords)
        and not any(map(_is_shift, ast.walk(call)))
    ]
    if not changed:
        return
    read = {
        ast.unparse(call.args[0]) for call in calls if call.args and names.resolve(call.func) in TIME_READERS
    }
    read |= {
        ast.unparse(call.func.value)
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr in STAT_METHODS
    }
    yield from (call for call in changed if ast.unparse(call.args[0]) in read)


def _is_shift(node: ast.AST) -> bool:
    """Return whether an expression is another time than the one that it is computed from."""
    is_sum = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub)
    return is_sum and any(isinstance(part, ast.Constant) and part.value for part in ast.walk(node))
