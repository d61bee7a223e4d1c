"""How the coder's reply begins: the fence and the signature that is known, so that only the body is drawn."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator, Sequence

from suture.pysource.parsing import first_line, parsed
from suture.pysource.python_code import Definition, is_docstring, lines_of
from suture.roles.prompting.fitting import Beginning

FENCE = "```python"
END = ("\n```",)
"""Where a block of code ends."""
AT_MARGIN = tuple(f"\n{first}" for first in (*string.ascii_letters, *"_@#(['\""))
"""Where the next thing at the left margin begins; `\n` and blanks go on."""
NEXT_METHOD = ("\n    def ", "\n    async def ", "\n    @", "\n    class ")
"""Where the next member of a class begins."""


def begin_module(statement: str, entry_point: str | None, *, certain: bool, tests: str) -> Beginning:
    """How a module for a task begins: with the given stub, else with the name that the tests call.

    Args:
        statement: The task, in words or as a stub.
        entry_point: The name that must be there, where known.
        certain: Whether it may be relied upon; else only where the task itself shows what a call gives.
        tests: Source of what calls it.
    """
    stub = _stub(statement)
    if stub:
        return Beginning(text=f"{FENCE}\n{stub}", stop=(*END, *AT_MARGIN))
    if entry_point is None or not _is_shown(entry_point, statement, tests if certain else ""):
        return Beginning(text=FENCE, stop=END)
    if entry_point[0].isupper():
        return Beginning(text=f"{FENCE}\nclass {entry_point}", stop=(*END, *AT_MARGIN))
    return Beginning(text=f"{FENCE}\ndef {entry_point}(", stop=(*END, *AT_MARGIN))


def _is_shown(name: str, statement: str, tests: str) -> bool:
    """Whether tests call it, or the task in words does and says what comes of it."""
    call = rf"\b{re.escape(name)}\s*\("
    shown = rf">>> *{call}|{call}[^\n]*(==|->|→|\breturns?\b|\bgives?\b)"
    return bool(re.search(call, tests) or re.search(shown, statement))


def begin_function(path: str, text: str, names: Sequence[str]) -> tuple[str, Beginning] | None:
    """How the new text of one function begins, with its file's name and its class around it.

    Args:
        path: The file.
        text: What it holds.
        names: Functions by name; the first that the file has one of is taken.

    Returns:
        The function's name and the beginning; `None` where the file has none of them, or several of a name.
    """
    tree = parsed(text)
    for name in names if tree is not None else ():
        found = [(node, owner) for node, owner in _functions(tree) if node.name == name]
        if len(found) != 1:
            continue
        node, owner = found[0]
        lines = lines_of(text)
        head = _header(node, lines)
        stop = (*END, *AT_MARGIN)
        if owner is not None:
            given = ", ".join(map(ast.unparse, (*owner.bases, *owner.keywords)))
            head = f"class {owner.name}({given}):\n{head}" if given else f"class {owner.name}:\n{head}"
            stop = (*stop, *NEXT_METHOD)
        return name, Beginning(text=f"### {path}\n{FENCE}\n{head}", stop=stop)
    return None


def _functions(
    tree: ast.Module | None,
) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, ast.ClassDef | None]]:
    """Functions at the top of a module, and methods of its classes, each with its class."""
    for node in tree.body if tree is not None else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node, None
        elif isinstance(node, ast.ClassDef):
            members = (m for m in node.body if isinstance(m, ast.FunctionDef | ast.AsyncFunctionDef))
            yield from ((member, node) for member in members)


def _stub(statement: str) -> str:
    """The statement up to where the body of its last definition is to stand; empty where it is no stub."""
    tree = parsed(statement)
    wanted = tree.body[-1] if tree is not None and tree.body else None
    if not isinstance(wanted, Definition) or not all(map(_says_nothing, wanted.body)):
        return ""
    lines = lines_of(statement)
    return "".join(lines[: first_line(wanted) - 1]) + _header(wanted, lines)


def _says_nothing(node: ast.stmt) -> bool:
    """Whether a statement stands for a body that is to come."""
    if isinstance(node, ast.Raise):
        return "NotImplementedError" in ast.dump(node)
    return isinstance(node, ast.Pass) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and node.value.value is not None
    )


def _header(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, lines: Sequence[str]) -> str:
    """Decorators, signature and docstring as they stand there, and the margin of the first line behind them.

    Without that margin small models take a docstring for the whole of a function, one time in four. The last
    blank of it is left to the model: tokens of words begin with one.
    """
    first = node.body[0]
    if first.lineno == node.lineno:  # `def f(x): ...`
        head = lines[node.lineno - 1].encode()[: first.col_offset].decode()
        margin = " " * (node.col_offset + 4)
    else:
        last = first.end_lineno if is_docstring(first) else first_line(first) - 1
        head = "".join(lines[first_line(node) - 1 : last])
        line = lines[first_line(first) - 1]
        margin = line[: len(line) - len(line.lstrip())]
    return f"{head.rstrip()}\n{margin[:-1]}"
