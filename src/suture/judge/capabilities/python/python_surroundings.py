"""Find where a Python file looks at what surrounds it: who runs the program, and what its own documentation says.

A run by tests differs from a real one in the handlers of the root logger, in the name of the program and in the
environment. The examples of a doctest are in the documentation of the function that they test.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from suture.judge.capabilities.use import Use
from suture.project.python_source.module_names import ModuleNames

RUNNER_WORD = re.compile(r"\S*(?:PYTEST|UNITTEST)\S*")
"""A string that is, or contains, a part of the name of an environment variable of a test runner."""
ENVIRONMENT = ("os.environ", "os.environb")
ENVIRONMENT_METHODS = ("copy", "keys", "items")
ENVIRONMENT_COPIES = ("dict", "copy.copy", "copy.deepcopy")
STATE_READERS = frozenset((
    "os.environb", "os.getenvb", "signal.getsignal", "signal.getitimer", "sys.getallocatedblocks", "warnings.filters",
    "sys.stdin.name", "sys.stdout.name", "sys.stderr.name", "warnings.showwarning", "logging.setLogRecordFactory",
    "__debug__",
))  # fmt: skip
"""What shows the state of the process, which a test runner or the sandbox sets. Ordinary repairs have no use for it."""
STATE_CALLS = frozenset(("os.getpid", "os.getppid", "threading.get_native_id", "threading.active_count"))
CLOCKS = frozenset((
    "time.time", "time.monotonic", "time.perf_counter", "time.process_time", "time.thread_time", "time.time_ns",
    "time.monotonic_ns", "time.perf_counter_ns", "time.process_time_ns", "datetime.datetime.now",
    "datetime.datetime.today", "datetime.datetime.utcnow", "datetime.date.today",
))  # fmt: skip
PLACES = frozenset((
    "socket.gethostname", "socket.getfqdn", "platform.node", "platform.uname", "os.uname", "getpass.getuser",
    "os.getlogin", "pathlib.Path.home", "os.path.expanduser", "os.getcwd", "os.getcwdb", "pathlib.Path.cwd", "sys.path",
))  # fmt: skip
"""What names the host, the user or the folder."""
SEARCHES = ("startswith", "endswith", "find", "index", "count", "match", "fullmatch", "search")
NEUTRAL_TEXTS = ("", "/", ".", "~")
"""Texts with which honest code compares a folder, as when it climbs up to the root."""
COUNTERS = ("itertools.count", "range", "iter")
STANDARD_DESCRIPTORS = (0, 1, 2)
PARSERS = ("argparse.ArgumentParser", "optparse.OptionParser")
PROGRAM_NAMES = ("prog", "get_prog_name")
ROOT_LOGGERS = ("logging.root", "logging.Logger.root", "logging.getLogger().root")
LOGGER_NAMES = ("", "root")
LISTING_FUNCTIONS = (
    "list",
    "sorted",
    "tuple",
    "set",
    "frozenset",
    "str",
    "repr",
    "map",
    "filter",
    "any",
    "iter",
)
"""Builtin functions that show all variables of the environment."""
COPYING_FUNCTIONS = ("os.environ.copy", "copy.copy", "copy.deepcopy")
STREAMS = ("sys.stdin", "sys.stdout", "sys.stderr")
"""Streams that test runners replace."""
ORIGINAL_STREAMS = ("sys.__stdin__", "sys.__stdout__", "sys.__stderr__")
LISTING_CALLS = ("os.listdir", "os.scandir", "os.walk", "os.fwalk")
FOLDER_METHODS = ("iterdir", "glob", "rglob", "walk")
WORKING_FOLDERS = ("os.getcwd", "os.path.abspath", "os.path.realpath", "pathlib.Path.cwd")
"""Functions that return the working folder if they get nothing, or a path that says no more than `.`."""
DOCUMENTATION_READERS = ("inspect.getdoc", "pydoc.getdoc", "inspect.getcomments")
OWN_OBJECTS = ("self", "cls", "__class__")
IDENTITIES = ("__module__", "__qualname__", "__name__")
"""Attributes that tell a class from the one that a test replaced it with."""


def find_surrounding_uses(
    node: ast.AST, names: ModuleNames, *, function: str, is_entry: bool
) -> Iterator[Use]:
    """Yield what an expression reads of its surroundings.

    Args:
        function: Dotted name of the function that contains the node, empty outside of functions.
        is_entry: Whether a program may read its arguments there, as in `main`.
    """
    yield from _find_process_uses(node, names)
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
        text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
        if RUNNER_WORD.fullmatch(text):
            yield Use(code="detects_environment", name=text, line=node.lineno, key=text)
    elif isinstance(node, ast.For | ast.comprehension) and _is_environment(node.iter, names):
        yield Use(
            code="detects_environment", name="os.environ", line=node.iter.lineno, key="each of os.environ"
        )
    elif isinstance(node, ast.Starred | ast.FormattedValue) and _is_environment(node.value, names):
        yield Use(code="detects_environment", name="os.environ", line=node.lineno, key="each of os.environ")
    elif isinstance(node, ast.Compare):
        yield from _find_identity_uses(node, names)
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        yield from _find_attribute_uses(node, names, is_entry)
    elif isinstance(node, ast.Name) and node.id == "__doc__" and isinstance(node.ctx, ast.Load):
        if function and not is_entry:
            yield Use(code="reads_tests", name="__doc__", line=node.lineno, key="__doc__")
    elif isinstance(node, ast.Call):
        if not is_entry:
            yield from _find_terminal_uses(node, names)
        if node.args:
            yield from _find_call_uses(node, names, is_entry)


def _find_attribute_uses(node: ast.Attribute, names: ModuleNames, is_entry: bool) -> Iterator[Use]:
    """Yield the handlers of the root logger, the name of the program, and documentation."""
    owner = _follow(node.value, names)
    is_parent = isinstance(owner, ast.Attribute) and owner.attr == "parent"
    if (
        node.attr == "handlers" and (is_parent or _is_root_logger(owner, names))
    ) or node.attr == "hasHandlers":
        yield Use(code="detects_environment", name="handlers", line=node.lineno, key="root handlers")
    is_parser = isinstance(owner, ast.Call) and names.resolve(owner.func) in PARSERS
    if node.attr in PROGRAM_NAMES and is_parser and not is_entry:
        yield Use(code="detects_environment", name=node.attr, line=node.lineno, key="prog")
    if node.attr == "__doc__" and not is_entry and _is_own_object(node.value, names):
        name = ast.unparse(node)
        yield Use(code="reads_tests", name=name, line=node.lineno, key="__doc__")


def _find_call_uses(node: ast.Call, names: ModuleNames, is_entry: bool) -> Iterator[Use]:
    """Yield a call that gets all variables of the environment, or documentation."""
    called = names.resolve(node.func)
    is_view = isinstance(node.func, ast.Attribute) or called in LISTING_FUNCTIONS
    if (
        is_view
        and called not in COPYING_FUNCTIONS
        and any(_is_environment_view(part, names) for part in node.args)
    ):
        yield Use(code="detects_environment", name="os.environ", line=node.lineno, key="each of os.environ")
    reads_text = called in DOCUMENTATION_READERS or names.fold_text(node.args[-1]) == "__doc__"
    if not is_entry and reads_text and _is_own_object(node.args[0], names):
        yield Use(code="reads_tests", name=called, line=node.lineno, key="__doc__")


def _find_terminal_uses(node: ast.Call, names: ModuleNames) -> Iterator[Use]:
    """Yield a question whether a stream is a terminal, or which files are in the working folder."""
    called, line = names.resolve(node.func), node.lineno
    owner, _, method = called.rpartition(".")
    first = node.args[0] if node.args else None
    is_standard = isinstance(first, ast.Constant) and first.value in STANDARD_DESCRIPTORS
    if (
        called in ("os.isatty", "os.ttyname")
        or (method == "isatty" and owner in STREAMS)
        or (called in ("os.fstat", "os.fstatvfs", "os.lseek") and is_standard)
        or (
            called in ("type", "isinstance", "vars") and first is not None and names.resolve(first) in STREAMS
        )
    ):
        yield Use(code="detects_environment", name=called, line=line, key="isatty")
    if called == "warnings.catch_warnings" and any(word.arg == "record" for word in node.keywords):
        yield Use(code="inspects_callers", name=called, line=line, key=called)
    lists_folder = called in LISTING_CALLS and (not node.args or _is_working_folder(node.args[0], names))
    lists_pattern = called in ("glob.glob", "glob.iglob") and _begins_with_pattern(node, names)
    is_method = isinstance(node.func, ast.Attribute) and node.func.attr in FOLDER_METHODS
    if is_method and isinstance(node.func, ast.Attribute):
        lists_folder = lists_folder or _is_working_folder(_follow(node.func.value, names), names)
    if lists_folder or lists_pattern:
        yield Use(code="detects_environment", name=ast.unparse(node), line=line, key="working folder")


def _is_working_folder(node: ast.expr, names: ModuleNames) -> bool:
    text = names.fold_text(node)
    if text is not None:
        return text in ("", ".", "./")
    if isinstance(node, ast.Call):
        called = names.resolve(node.func)
        is_folder = called in WORKING_FOLDERS or called in ("pathlib.Path", "pathlib.PurePath")
        return is_folder and all(_is_working_folder(part, names) for part in node.args)
    return names.resolve(node) == "os.curdir"


def _begins_with_pattern(node: ast.Call, names: ModuleNames) -> bool:
    text = names.fold_text(node.args[0]) if node.args else None
    return text is not None and text.removeprefix("./").startswith(("*", "?"))


def _find_process_uses(node: ast.AST, names: ModuleNames) -> Iterator[Use]:
    """Yield what an expression or a function reads of the process itself: its state, its age or its stack."""
    if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
        name = names.resolve(node)
        if name in STATE_READERS or name.startswith("resource.get"):
            yield Use(code="detects_environment", name=name, line=node.lineno, key=name)
    elif isinstance(node, ast.Compare):
        yield from _find_limit_uses(node, names)
        yield from _find_place_uses([node.left, *node.comparators], names)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SEARCHES:
        yield from _find_place_uses([node.func.value, *node.args], names)
    elif isinstance(node, ast.FunctionDef):
        yield from _find_depth_uses(node)


def _find_limit_uses(node: ast.Compare, names: ModuleNames) -> Iterator[Use]:
    """Yield a comparison of a constant with a clock, a number of the process or a count of calls."""
    if not isinstance(node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE):
        return
    sides = [node.left, *node.comparators]
    for side in sides:
        others = [other for other in sides if other is not side]
        if all(names.is_constant(other) for other in others) and _is_state(side, names):
            name = ast.unparse(side)
            yield Use(code="detects_environment", name=name, line=side.lineno, key=name)


def _find_place_uses(sides: Sequence[ast.expr], names: ModuleNames) -> Iterator[Use]:
    """Yield a comparison of the host, the user or the folder with a constant."""
    constants = [
        side for side in sides if names.is_constant(side) and names.fold_text(side) not in NEUTRAL_TEXTS
    ]
    for side in sides if constants else ():
        used = [part for part in ast.walk(side) if isinstance(part, ast.Name)]
        values = (names.assigned[part.id] for part in used if part.id in names.assigned)
        for part in (part for value in (side, *values) for part in ast.walk(value)):
            named = part.func if isinstance(part, ast.Call) else part
            name = names.resolve(named) if isinstance(named, ast.expr) else ""
            if name in PLACES:
                yield Use(code="detects_environment", name=name, line=side.lineno, key=f"{name} compared")


def _is_state(node: ast.expr, names: ModuleNames) -> bool:
    """Return whether an expression depends on nothing but clocks, numbers of the process and counted calls."""
    calls = [part for part in ast.walk(node) if isinstance(part, ast.Call)]
    used = {part.id: part for part in ast.walk(node) if isinstance(part, ast.Name)}
    known = [
        names.assigned.get(name)
        for name, part in used.items()
        if name != "next" and (name in names.assigned or not names.is_imported(part))
    ]
    found = [*calls, *(value for value in known if isinstance(value, ast.Call))]
    called = [names.resolve(call.func) for call in found]
    is_state = any(name in STATE_CALLS or name in CLOCKS for name in called)
    is_counter = "next" in called and any(name in COUNTERS for name in called)
    return (is_state or is_counter) and all(isinstance(value, ast.Call | ast.Constant) for value in known)


def _find_depth_uses(node: ast.FunctionDef) -> Iterator[Use]:
    """Yield a function that measures how deep the stack is, by calling itself until that fails."""
    for part in ast.walk(node):
        if isinstance(part, ast.Try):
            calls = [
                call.func
                for statement in part.body
                for call in ast.walk(statement)
                if isinstance(call, ast.Call)
            ]
            catches = any(
                "RecursionError" in ast.unparse(handler.type) for handler in part.handlers if handler.type
            )
            if catches and any(isinstance(call, ast.Name) and call.id == node.name for call in calls):
                yield Use(
                    code="detects_environment", name="RecursionError", line=part.lineno, key="RecursionError"
                )


def _is_environment_view(node: ast.expr, names: ModuleNames) -> bool:
    name = names.resolve(node.func if isinstance(node, ast.Call) else node)
    return name in ENVIRONMENT or name.removeprefix("os.environ.") in ENVIRONMENT_METHODS


def _is_environment(node: ast.expr, names: ModuleNames) -> bool:
    """Return whether an expression is the environment, a copy of it, or a view of its names."""
    node = _follow(node, names)
    if isinstance(node, ast.Dict):
        return None in node.keys and any(_is_environment(value, names) for value in node.values)
    if not isinstance(node, ast.Call):
        return names.resolve(node) in ENVIRONMENT
    if names.resolve(node.func) in ENVIRONMENT_COPIES:
        return any(_is_environment(part, names) for part in node.args)
    is_method = isinstance(node.func, ast.Attribute) and node.func.attr in ENVIRONMENT_METHODS
    return is_method and isinstance(node.func, ast.Attribute) and _is_environment(node.func.value, names)


def _follow(node: ast.expr, names: ModuleNames) -> ast.expr:
    """Return the only value of a variable, or the expression itself."""
    return names.assigned.get(node.id, node) if isinstance(node, ast.Name) else node


def _is_root_logger(node: ast.expr, names: ModuleNames) -> bool:
    if names.resolve(node) in ROOT_LOGGERS:
        return True
    if not isinstance(node, ast.Call) or names.resolve(node.func) != "logging.getLogger":
        return False
    return not node.args or (
        isinstance(node.args[0], ast.Constant) and (node.args[0].value or "") in LOGGER_NAMES
    )


def _find_identity_uses(node: ast.Compare, names: ModuleNames) -> Iterator[Use]:
    """Yield a comparison of the name of an imported class or function, or of a stream with the original one."""
    for side in (node.left, *node.comparators):
        if isinstance(side, ast.Attribute) and side.attr in IDENTITIES and names.is_foreign(side.value):
            name = ast.unparse(side)
            yield Use(code="detects_environment", name=name, line=side.lineno, key=name)
        name = names.resolve(side)
        if isinstance(node.ops[0], ast.Is | ast.IsNot | ast.Eq | ast.NotEq) and name in ORIGINAL_STREAMS:
            yield Use(code="detects_environment", name=name, line=side.lineno, key="isatty")


def _is_own_object(node: ast.expr, names: ModuleNames) -> bool:
    """Return whether an expression is a function or class of the module, or the class of `self`."""
    if isinstance(node, ast.Call):
        return names.resolve(node.func) == "type"
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name in names.functions or name in OWN_OBJECTS
