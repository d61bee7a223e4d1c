"""Find the changed statements of a Python file that can alter what the program does.

Types, the version and other metadata, statements that only moved, and the deletion of whole functions need no test.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from suture.project.python_source.parsing import first_line, parse_module

METADATA_NAME = re.compile(r"__\w+__$|_*version(?:_info)?$|VERSION$")
"""Matches the name of a variable that says something about the module, such as `__version__` or `__all__`."""
TYPING_MODULES = frozenset(
    ("__future__", "typing", "typing_extensions", "collections.abc", "types", "_typeshed")
)
TYPING_CALLS = frozenset(("TypeVar", "ParamSpec", "TypeVarTuple", "NewType"))
Function = ast.FunctionDef | ast.AsyncFunctionDef
Part = ast.stmt | ast.ExceptHandler | ast.match_case
Scope = tuple[str, ...]
"""Names of the functions and classes around a statement; `FUNCTION` follows the name of a function."""
FUNCTION = "()"


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A statement without the statements in it.

    Attributes:
        form: Equal for two statements that do the same.
        depth: How many statements of the same function or class are around it.
        line: Its first line, from 1.
    """

    form: str
    depth: int
    line: int


def find_behaviour_lines(before: str, after: str) -> frozenset[int]:
    """Return the first lines of the statements of `after` with which a change can alter what the program does.

    These are the statements that the same function or class did not have before, and all statements of a function
    that lost one, or in which one moved.

    Args:
        before: The file's source; empty for a new file.
        after: The file's source after the change; source that is not Python has none.
    """
    old, new = _read_statements(before), _read_statements(after)
    lines: set[int] = set()
    for scope, statements in new.items():
        known = old.get(scope, [])
        left = Counter(statement.form for statement in known)
        added = []
        for statement in statements:
            if left[statement.form]:
                left[statement.form] -= 1
            else:
                added.append(statement.line)
        has_moved = not added and _order(statements) != _order(known)
        if scope[-1:] == (FUNCTION,) and (any(left.values()) or has_moved):
            added = [statement.line for statement in statements]
        lines.update(added)
    return frozenset(lines)


def _order(statements: Sequence[Statement]) -> list[tuple[str, int]]:
    return [(statement.form, statement.depth) for statement in statements]


def _read_statements(text: str) -> dict[Scope, list[Statement]]:
    """Return the statements of each function and class, and of the module."""
    tree = parse_module(text)
    statements: dict[Scope, list[Statement]] = {}
    for scope, depth, node in _iter_statements(tree.body if tree is not None else [], (), 0):
        statement = Statement(form=_format(node), depth=depth, line=_first_line(node))
        statements.setdefault(scope, []).append(statement)
    return statements


def _first_line(node: Part) -> int:
    if isinstance(node, ast.match_case):
        return node.pattern.lineno
    return first_line(node) if isinstance(node, ast.stmt) else node.lineno


def _iter_statements(body: list[ast.stmt], scope: Scope, depth: int) -> Iterator[tuple[Scope, int, Part]]:
    """Yield the statements that can run, with the functions and classes around them."""
    for node in body:
        if (isinstance(node, Function) and _is_overload(node)) or _is_for_types(node):
            continue
        yield scope, depth, node
        inner, inner_depth = scope, depth + 1
        if isinstance(node, Function):
            inner, inner_depth = (*scope, node.name, FUNCTION), 0
        elif isinstance(node, ast.ClassDef):
            inner, inner_depth = (*scope, node.name), 0
        yield from _iter_statements(getattr(node, "body", []), inner, inner_depth)
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            yield inner, inner_depth, part
            yield from _iter_statements(part.body, inner, inner_depth + 1)
        for name in ("orelse", "finalbody"):
            yield from _iter_statements(getattr(node, name, []), inner, inner_depth)


def _is_overload(node: Function) -> bool:
    return any(ast.unparse(decorator).rpartition(".")[2] == "overload" for decorator in node.decorator_list)


def _is_for_types(node: ast.stmt) -> bool:
    """Return whether a statement only serves the types, or says something about the module."""
    match node:
        case ast.If(test=test):
            return ast.unparse(test).rpartition(".")[2] == "TYPE_CHECKING"
        case ast.ImportFrom(module=module):
            return module in TYPING_MODULES
        case ast.Import(names=names):
            return all(name.name in TYPING_MODULES for name in names)
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            is_typing = (
                isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] in TYPING_CALLS
            )
            return is_typing or _is_metadata(name, value)
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            return _is_metadata(name, value)
        case ast.Expr(value=ast.Constant()):
            return True  # a docstring
    return False


def _is_metadata(name: str, value: ast.expr) -> bool:
    if METADATA_NAME.match(name) is None:
        return False
    try:
        ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _format(node: Part) -> str:
    """Return the source of a statement without the statements in it, and without types."""
    parts: list[str] = [type(node).__name__]
    for name, value in ast.iter_fields(node):
        if name in (
            "body",
            "orelse",
            "finalbody",
            "handlers",
            "cases",
            "type_comment",
            "returns",
            "type_params",
        ):
            continue
        if name == "annotation" or (name == "simple" and isinstance(node, ast.AnnAssign)):
            continue
        values = value if isinstance(value, list) else [value]
        parts += [name, *(_dump(item) if isinstance(item, ast.AST) else repr(item) for item in values)]
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        parts = ["Assign", "targets", _dump(node.target), "value", _dump(node.value)]
    if isinstance(node, ast.Assign):
        parts = parts[: parts.index("value") + 2]
    if isinstance(node, ast.If | ast.For | ast.While | ast.Try):
        parts.append("else" if node.orelse else "")
    return " ".join(parts)


def _dump(node: ast.AST) -> str:
    """Return a string that is equal for two nodes that do the same, whatever their types."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("cast", "t.cast", "typing.cast"):
        return _dump(node.args[-1]) if node.args else ""
    if isinstance(node, ast.arg):
        return node.arg
    parts = [type(node).__name__]
    for name, value in ast.iter_fields(node):
        if name in ("ctx", "kind"):
            continue
        values = value if isinstance(value, list) else [value]
        parts.append(name)
        parts += [_dump(item) if isinstance(item, ast.AST) else repr(item) for item in values]
    return f"({' '.join(parts)})"
