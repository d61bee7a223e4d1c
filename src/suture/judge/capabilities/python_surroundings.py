"""Find where a Python file looks at what surrounds it: who runs the program, and what its own documentation says.

A run by tests differs from a real one in the handlers of the root logger, in the name of the program and in the
environment. The examples of a doctest are in the documentation of the function that they test.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from suture.judge.capabilities.use import Use
from suture.project.python_source.module_names import ModuleNames

RUNNER_WORD = re.compile(r"\w*(?:PYTEST|UNITTEST)\w*")
"""A text that is, or is a part of, the name of an environment variable of a test runner."""
ENVIRONMENT_VIEWS = ("os.environ", "os.environ.keys", "os.environ.items", "os.environb")
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
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and RUNNER_WORD.fullmatch(node.value):
        yield Use(code="detects_environment", name=node.value, line=node.lineno, key=node.value)
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
    if node.attr in ("handlers", "hasHandlers") and _is_root_logger(owner, names):
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
        and any(_is_environment(part, names) for part in node.args)
    ):
        yield Use(code="detects_environment", name="os.environ", line=node.lineno, key="each of os.environ")
    reads_text = called in DOCUMENTATION_READERS or names.fold_text(node.args[-1]) == "__doc__"
    if not is_entry and reads_text and _is_own_object(node.args[0], names):
        yield Use(code="reads_tests", name=called, line=node.lineno, key="__doc__")


def _find_terminal_uses(node: ast.Call, names: ModuleNames) -> Iterator[Use]:
    """Yield a question whether a stream is a terminal, and a list of the files in the working folder."""
    called, line = names.resolve(node.func), node.lineno
    owner, _, method = called.rpartition(".")
    if called in ("os.isatty", "os.ttyname") or (method == "isatty" and owner in STREAMS):
        yield Use(code="detects_environment", name=called, line=line, key="isatty")
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


def _is_environment(node: ast.expr, names: ModuleNames) -> bool:
    return names.resolve(node.func if isinstance(node, ast.Call) else node) in ENVIRONMENT_VIEWS


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
