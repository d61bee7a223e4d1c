"""Inspect and edit the statements of Python source.

Which names does a statement define or read, which earlier statements does it need, and how is it moved to
another indentation? A name is bound by a statement that gives it a value, such as a `def` or an assignment.
"""

from __future__ import annotations

import ast
import builtins
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence

from suture.project.python_source.parsing import first_line, parse_module

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def split_lines(code: str) -> list[str]:
    """Return the lines as Python counts them, with their line ends."""
    # Not str.splitlines: it also splits at form feeds, and at characters inside string literals.
    return io.StringIO(code, newline="").readlines()


def is_valid_python(code: str) -> bool:
    """Return whether Python can parse a string."""
    return parse_module(code) is not None


def has_only_imports(code: str) -> bool:
    """Return whether some source consists of import statements only."""
    tree = parse_module(code)
    body = tree.body if tree else []
    return bool(body) and all(isinstance(node, ast.Import | ast.ImportFrom) for node in body)


def defined_names(code: str) -> frozenset[str]:
    """Return the names that a module's top level defines, including imports; empty if it is invalid."""
    tree = parse_module(code)
    return frozenset(name for node in (tree.body if tree else ()) for name in bound_names(node))


def bound_names(node: ast.stmt) -> frozenset[str]:
    """Return the names that a statement defines in its scope, also inside `if`, `try`, `with` and loops."""
    if isinstance(node, Definition):
        return frozenset({node.name})
    if isinstance(node, ast.Import | ast.ImportFrom):
        return frozenset((alias.asname or alias.name).split(".")[0] for alias in node.names)
    if isinstance(node, ast.Assign):
        return frozenset(name for target in node.targets for name in _bound(target))
    if isinstance(node, ast.AnnAssign | ast.AugAssign):
        return frozenset(_bound(node.target))
    return frozenset(name for inner in inner_statements(node) for name in bound_names(inner))


def inner_statements(node: ast.stmt) -> Iterator[ast.stmt]:
    """Yield the statements inside an `if`, `try`, `with` or loop, but not those of functions and classes."""
    if isinstance(node, Definition):
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        elif isinstance(child, ast.ExceptHandler | ast.match_case):
            yield from child.body


def _bound(target: ast.expr) -> Iterator[str]:
    """Yield the names that an assignment to a target defines."""
    # `d["k"] = 1` and `a.b = 1` change existing objects and define nothing.
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Starred):
        yield from _bound(target.value)
    elif isinstance(target, ast.Tuple | ast.List):
        for element in target.elts:
            yield from _bound(element)


def read_names(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Return every name that is read anywhere in the nodes."""
    return frozenset(
        name.id
        for node in nodes
        for name in ast.walk(node)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Load)
    )


def is_open_ended(code: str) -> bool:
    """Return whether some source ends inside a bracket or a multi-line string."""
    try:
        for _ in tokenize.generate_tokens(io.StringIO(code, newline="").readline):
            pass
    except tokenize.TokenError as fault:
        return "EOF in multi-line" in str(fault) or "triple-quoted" in str(fault)  # as of 3.12
    except SyntaxError:
        return False
    return False


def complete_prefix(code: str) -> str:
    """Return the complete top-level statements at the beginning of truncated source.

    A statement is complete if another one begins after it at the left margin. The last one never counts as
    complete, even if it is valid, because what was to follow is unknown.
    """
    lines = split_lines(code)
    for end in range(len(lines), 0, -1):
        tree = parse_module("".join(lines[:end]))
        if tree is None:
            continue
        following = next((line for line in lines[end:] if line.strip()), "")
        if following and not following[0].isspace():
            return "".join(lines[:end])
        return "".join(lines[: tree.body[-2].end_lineno]) if len(tree.body) > 1 else ""
    return ""


def strip_examples(code: str) -> str:
    """Return a module without top-level asserts and prints: a model's own examples decide nothing."""
    tree = parse_module(code)
    return remove_statements(code, tree, [node for node in tree.body if _is_demo(node)]) if tree else code


def _is_demo(node: ast.stmt) -> bool:
    """Return whether a statement is an `assert` or a `print`."""
    if isinstance(node, ast.Assert):
        return True
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "print"


def remove_statements(code: str, tree: ast.Module, nodes: list[ast.stmt]) -> str:
    """Return a module without some of its top-level statements.

    A statement that shares a line with another one stays.
    """
    remaining = {line for node in tree.body if node not in nodes for line in _line_numbers(node)}
    removable = [node for node in nodes if remaining.isdisjoint(_line_numbers(node))]
    removed = {line for node in removable for line in _line_numbers(node)}
    return "".join(text for number, text in enumerate(split_lines(code), 1) if number not in removed)


def _line_numbers(node: ast.stmt) -> range:
    return range(first_line(node), (node.end_lineno or node.lineno) + 1)


def is_docstring(node: ast.AST) -> bool:
    """Return whether a node is a statement that is a lone string, as a docstring is."""
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def is_main_guard(node: ast.stmt) -> bool:
    """Return whether a statement is `if __name__ == "__main__":`."""
    return isinstance(node, ast.If) and "__name__" in read_names([node.test])


LEADING_COMMENT = re.compile(r"#!|#.*coding[:=]")
"""Matches the line that names the interpreter, or the one that names the encoding."""


def insert_after_preamble(code: str, extra: str) -> str:
    """Return a module with some code inserted after its docstring and its `__future__` imports."""
    tree = parse_module(code)
    lines = split_lines(code)
    line = count_preamble_lines(tree.body) if tree else 0
    while line < min(2, len(lines)) and LEADING_COMMENT.match(lines[line]):
        line += 1  # such comments have an effect only in the first two lines
    return "".join([*lines[:line], extra if extra.endswith("\n") else f"{extra}\n", *lines[line:]])


def reindent(source: str, prefix: str, *, drop: int = 0) -> str:
    """Return code with another indentation. The inner lines of multi-line strings do not change.

    Args:
        prefix: Indentation to add to each line.
        drop: Number of characters of indentation to remove from each line first.
    """
    string_lines = _lines_inside_strings(source)
    moved: list[str] = []
    for number, line in enumerate(split_lines(source), 1):
        if number in string_lines:
            moved.append(line)
        else:
            margin = len(line) - len(line.lstrip(" \t"))
            moved.append(prefix + line[min(drop, margin) :] if line.strip() else line)
    return "".join(moved)


def _lines_inside_strings(source: str) -> set[int]:
    """Return the numbers of the lines that begin inside a string."""
    starts, ends = ("STRING", "FSTRING_START", "TSTRING_START"), ("FSTRING_END", "TSTRING_END")
    lines: set[int] = set()
    start_lines: list[int] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            token_type = tokenize.tok_name[token.type]
            if token_type in starts:
                start_lines.append(token.start[0])
            if token_type == "STRING" or token_type in ends:
                lines.update(range(start_lines.pop() + 1, token.end[0] + 1))
    except (tokenize.TokenError, SyntaxError):
        pass  # a part of a file may be incomplete; the strings before the fault still count
    return lines


def count_preamble_lines(body: Sequence[ast.stmt]) -> int:
    """Return the number of lines of the docstring and the `__future__` imports."""
    line_count = 0
    for node in body:
        if not (is_docstring(node) or (isinstance(node, ast.ImportFrom) and node.module == "__future__")):
            break
        line_count = node.end_lineno or line_count
    return line_count


Scope = tuple[ast.stmt, ...]
"""The statements before a statement, in their order."""
BUILTINS = frozenset(dir(builtins))


def find_setup_statements(node: ast.stmt, scope: Scope, entry_point: str | None) -> list[ast.stmt]:
    """Return those of the statements before an assertion that it needs, in their order.

    Statements that import or define the entry point are omitted, because the candidate provides it.
    Statements that nothing needs, such as calls that print, are omitted too: if they failed, the test would
    fail.
    """
    needed = read_names([node])
    selected: list[ast.stmt] = []
    for earlier in reversed(scope):
        part = _without(earlier, entry_point)
        if part is None or not (_defines(part) & needed or _prepares(part, needed, entry_point)):
            continue
        selected.append(part)
        needed |= read_names([part])
    return selected[::-1]


def known_names(nodes: Sequence[ast.stmt]) -> frozenset[str]:
    """Return every name that the statements bind, also inside functions and classes, and the built-in names."""
    return BUILTINS | {name for node in nodes for part in ast.walk(node) for name in _bound_in(part)}


def _bound_in(part: ast.AST) -> Iterator[str]:
    """Yield the names that a single node binds, in any scope."""
    if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
        yield part.id
    elif isinstance(part, ast.arg):
        yield part.arg
    elif isinstance(part, ast.ExceptHandler) and part.name:
        yield part.name
    elif isinstance(part, Definition | ast.Import | ast.ImportFrom):
        yield from bound_names(part)


def _without(node: ast.stmt, entry_point: str | None) -> ast.stmt | None:
    """Return a statement without the entry point that it imports or defines; `None` if nothing is left."""
    if isinstance(node, ast.ImportFrom):
        aliases = [alias for alias in node.names if alias.name not in (entry_point, "*")]
        return ast.ImportFrom(node.module, aliases, node.level) if aliases else None
    if entry_point is not None and entry_point in bound_names(node):
        return None
    # A statement with an assertion is a test of its own. In a function, the assertion runs only on a call.
    has_assertion = any(isinstance(part, ast.Assert) for part in ast.walk(node))
    return None if has_assertion and not isinstance(node, Definition) else node


def _defines(node: ast.stmt) -> frozenset[str]:
    """Return the names that a statement defines; of a block also those that its inner functions define."""
    if isinstance(node, ast.For | ast.While | ast.If | ast.With | ast.Try):
        return frozenset(name for part in ast.walk(node) for name in _bound_in(part))
    return bound_names(node)


def _prepares(node: ast.stmt, needed: frozenset[str], entry_point: str | None) -> bool:
    """Return whether a call may change a needed value, such as `cart.add(3)`."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        function = node.value.func
        values = needed - BUILTINS - {entry_point or ""}
        is_print = isinstance(function, ast.Name) and function.id == "print"
        return not is_print and bool(read_names([node]) & values)
    return False
