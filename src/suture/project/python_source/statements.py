"""What a piece of Python text defines, and which part of it is sound."""

from __future__ import annotations

import ast
import builtins
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence

from suture.project.python_source.parsing import first_line, parsed

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def split_lines(code: str) -> list[str]:
    """The lines as Python counts them, endings kept."""
    # Not str.splitlines: that also splits at form feeds and at characters inside string literals.
    return io.StringIO(code, newline="").readlines()


def is_valid_python(code: str) -> bool:
    """Whether Python can parse it."""
    return parsed(code) is not None


def has_only_imports(code: str) -> bool:
    """Whether it is import statements and nothing else."""
    tree = parsed(code)
    body = tree.body if tree else []
    return bool(body) and all(isinstance(node, ast.Import | ast.ImportFrom) for node in body)


def defined_names(code: str) -> frozenset[str]:
    """Names that the module's top level defines, imports included; empty where it does not parse."""
    tree = parsed(code)
    return frozenset(name for node in (tree.body if tree else ()) for name in bound_names(node))


def bound_names(node: ast.stmt) -> frozenset[str]:
    """Names that one statement defines in its scope, also inside `if`, `try`, `with` and loops."""
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
    """The statements inside an `if`, `try`, `with` or loop; a function or class is a scope of its own."""
    if isinstance(node, Definition):
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        elif isinstance(child, ast.ExceptHandler | ast.match_case):
            yield from child.body


def _bound(target: ast.expr) -> Iterator[str]:
    # `d["k"] = 1` and `a.b = 1` change something that exists, and define nothing.
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Starred):
        yield from _bound(target.value)
    elif isinstance(target, ast.Tuple | ast.List):
        for element in target.elts:
            yield from _bound(element)


def read_names(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Every name that is read anywhere in the nodes."""
    return frozenset(
        name.id
        for node in nodes
        for name in ast.walk(node)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Load)
    )


def is_open_ended(code: str) -> bool:
    """Whether a text ends inside a bracket or a string of several lines."""
    try:
        for _ in tokenize.generate_tokens(io.StringIO(code, newline="").readline):
            pass
    except tokenize.TokenError as fault:
        return "EOF in multi-line" in str(fault) or "triple-quoted" in str(fault)  # as of 3.12
    except SyntaxError:
        return False
    return False


def complete_prefix(code: str) -> str:
    """The whole top-level statements at the start of a text that was cut short.

    A statement is whole when another one has begun after it at the left margin. The last one never is, even
    where it parses: nobody knows what was to follow.
    """
    lines = split_lines(code)
    for end in range(len(lines), 0, -1):
        tree = parsed("".join(lines[:end]))
        if tree is None:
            continue
        following = next((line for line in lines[end:] if line.strip()), "")
        if following and not following[0].isspace():
            return "".join(lines[:end])
        return "".join(lines[: tree.body[-2].end_lineno]) if len(tree.body) > 1 else ""
    return ""


def strip_examples(code: str) -> str:
    """The module without top-level asserts and prints: a model's own examples decide nothing."""
    tree = parsed(code)
    return remove_statements(code, tree, [node for node in tree.body if _is_demo(node)]) if tree else code


def _is_demo(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assert):
        return True
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "print"


def remove_statements(code: str, tree: ast.Module, nodes: list[ast.stmt]) -> str:
    """The module without some of its top-level statements; one that shares a line with another stays."""
    kept = {line for node in tree.body if node not in nodes for line in _line_numbers(node)}
    gone = {line for node in nodes if kept.isdisjoint(_line_numbers(node)) for line in _line_numbers(node)}
    return "".join(text for number, text in enumerate(split_lines(code), 1) if number not in gone)


def _line_numbers(node: ast.stmt) -> range:
    return range(first_line(node), (node.end_lineno or node.lineno) + 1)


def is_docstring(node: ast.stmt) -> bool:
    """Whether the statement is a lone string."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def is_main_guard(node: ast.stmt) -> bool:
    """Whether the statement is `if __name__ == "__main__":`."""
    return isinstance(node, ast.If) and "__name__" in read_names([node.test])


HEAD_COMMENT = re.compile(r"#!|#.*coding[:=]")


def insert_after_preamble(code: str, extra: str) -> str:
    """`extra` before the code's own statements, after its docstring and its `__future__` imports."""
    tree = parsed(code)
    lines = split_lines(code)
    at = count_preamble_lines(tree.body) if tree else 0
    while at < min(2, len(lines)) and HEAD_COMMENT.match(lines[at]):
        at += 1  # only there do they say what they say
    return "".join([*lines[:at], extra if extra.endswith("\n") else f"{extra}\n", *lines[at:]])


def reindent(source: str, prefix: str, *, drop: int = 0) -> str:
    """Move code to the right, and first `drop` characters to the left; the inside of strings stays."""
    inside = _inside_strings(source)
    moved: list[str] = []
    for number, line in enumerate(split_lines(source), 1):
        if number in inside:
            moved.append(line)
        else:
            margin = len(line) - len(line.lstrip(" \t"))
            moved.append(prefix + line[min(drop, margin) :] if line.strip() else line)
    return "".join(moved)


def _inside_strings(source: str) -> set[int]:
    """Numbers of the lines that begin inside a string."""
    starts, ends = ("STRING", "FSTRING_START", "TSTRING_START"), ("FSTRING_END", "TSTRING_END")
    inside: set[int] = set()
    opened: list[int] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            kind = tokenize.tok_name[token.type]
            if kind in starts:
                opened.append(token.start[0])
            if kind == "STRING" or kind in ends:
                inside.update(range(opened.pop() + 1, token.end[0] + 1))
    except (tokenize.TokenError, SyntaxError):
        pass  # a part of a file need not be a whole program; what came before counts
    return inside


def count_preamble_lines(body: Sequence[ast.stmt]) -> int:
    """How many lines the docstring and the `__future__` imports take."""
    after = 0
    for node in body:
        if not (is_docstring(node) or (isinstance(node, ast.ImportFrom) and node.module == "__future__")):
            break
        after = node.end_lineno or after
    return after


Scope = tuple[ast.stmt, ...]
"""The statements before one, in their order."""
BUILTINS = frozenset(dir(builtins))


def find_setup_statements(node: ast.stmt, scope: Scope, entry_point: str | None) -> list[ast.stmt]:
    """The statements that a statement needs of those before it, in their order.

    Statements that import or define the entry point are left out: it is what the candidate gives. So are
    those that nothing needs, such as calls for show, since one that fails would fail the test.

    Args:
        node: The statement.
        scope: What stands before it.
        entry_point: What is tested, where known.
    """
    needed = read_names([node])
    kept: list[ast.stmt] = []
    for earlier in reversed(scope):
        part = _without(earlier, entry_point)
        if part is None or not (_defines(part) & needed or _prepares(part, needed, entry_point)):
            continue
        kept.append(part)
        needed |= read_names([part])
    return kept[::-1]


def known_names(nodes: Sequence[ast.stmt]) -> frozenset[str]:
    """Every name that the statements bind anywhere inside, and the built-in ones."""
    return BUILTINS | {name for node in nodes for part in ast.walk(node) for name in _bound_in(part)}


def _bound_in(part: ast.AST) -> Iterator[str]:
    if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
        yield part.id
    elif isinstance(part, ast.arg):
        yield part.arg
    elif isinstance(part, ast.ExceptHandler) and part.name:
        yield part.name
    elif isinstance(part, Definition | ast.Import | ast.ImportFrom):
        yield from bound_names(part)


def _without(node: ast.stmt, entry_point: str | None) -> ast.stmt | None:
    """A statement as far as it does not bring the entry point; `None` where nothing is left."""
    if isinstance(node, ast.ImportFrom):
        aliases = [alias for alias in node.names if alias.name not in (entry_point, "*")]
        return ast.ImportFrom(node.module, aliases, node.level) if aliases else None
    if entry_point is not None and entry_point in bound_names(node):
        return None
    tests = any(isinstance(part, ast.Assert) for part in ast.walk(node))
    return None if tests and not isinstance(node, Definition) else node


def _defines(node: ast.stmt) -> frozenset[str]:
    if isinstance(node, ast.For | ast.While | ast.If | ast.With | ast.Try):
        return frozenset(name for part in ast.walk(node) for name in _bound_in(part))
    return bound_names(node)


def _prepares(node: ast.stmt, needed: frozenset[str], entry_point: str | None) -> bool:
    """Whether a call or a block may change a needed value, such as `cart.add(3)`."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        called = node.value.func
        own = needed - BUILTINS - {entry_point or ""}
        shows = isinstance(called, ast.Name) and called.id == "print"
        return not shows and bool(read_names([node]) & own)
    return False
