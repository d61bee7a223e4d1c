"""The prefill of a coder's reply: the fence and the known signature; the model writes the body."""

from __future__ import annotations

import ast
import builtins
import re
import string
from collections.abc import Iterator, Sequence
from dataclasses import replace

from suture.agents.prompting.fitting import Prefill
from suture.agents.replies.fenced_blocks import fenced_blocks
from suture.project.python_source.parsing import first_line, parse_module
from suture.project.python_source.statements import Definition, defined_names, is_docstring, split_lines

FENCE = "```python"
FENCE_END = ("\n```",)
"""Text that ends a block of code."""
MARGIN_STOPS = tuple(f"\n{first}" for first in (*string.ascii_letters, *"_@#(['\""))
"""Texts that start the next statement at the left margin; blank and indented lines do not stop the reply."""
RESULT_MARK = re.compile(r"==|->|→|\breturns?\b|\bgives?\b")
MEMBER_STARTS = ("def ", "async def ", "@", "class ")
"""How the next member of a class starts."""


def prefill_module(statement: str, entry_point: str | None, *, certain: bool, tests: str) -> Prefill:
    """Return the prefill for a module: the given stub, else the name that the tests call.

    Args:
        statement: The task, in words or as a stub.
        entry_point: The required name, if known.
        certain: Whether the name is reliable; otherwise it is used only if the task itself shows a call's
            result.
        tests: Source of the tests that call it.
    """
    stub = _find_stub(statement, entry_point)
    alone = Prefill(text=FENCE, stop=FENCE_END)
    if stub:
        return Prefill(text=f"{FENCE}\n{stub}", stop=(*FENCE_END, *MARGIN_STOPS))
    if entry_point is None or not _call_is_shown(entry_point, statement, tests if certain else ""):
        return alone
    keyword = _keyword(entry_point, statement, tests)
    if not keyword:
        return alone
    opening = "(" if keyword == "def" else ""
    return Prefill(text=f"{FENCE}\n{keyword} {entry_point}{opening}", stop=(*FENCE_END, *MARGIN_STOPS))


def _keyword(name: str, statement: str, tests: str) -> str:
    """Return `def` or `class`; empty if neither is certain, or if several things are wanted."""
    text = f"{statement}\n{tests}"
    if re.search(rf"\b(?:await|asyncio\.run\(|with|async\s+\w+)\s*{re.escape(name)}\s*\(|\basync\b", text):
        return ""
    tree = parse_module(tests) or parse_module(statement)
    others = _called_names(tree) - {name} if tree is not None else set()
    if others:
        return ""
    if re.search(rf"\bclass\s+[`'\"]?{re.escape(name)}\b", statement):
        return "class"
    asked = rf"\b{re.escape(name)}\((?:[^()\n]|\([^()\n]*\))*\)\.\w|(?<![=!<>])=\s*{re.escape(name)}\("
    if not re.search(asked, text):
        return "def"
    return "class" if name[0].isupper() else ""


def _called_names(tree: ast.Module) -> set[str]:
    """Return functions that a text calls, and that it neither defines, imports, nor has as built-ins."""
    called = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    return called - defined_names(ast.unparse(tree)) - set(dir(builtins))


def _call_is_shown(name: str, statement: str, tests: str) -> bool:
    """Return whether tests call the name, or the task shows a call with its result."""
    call = re.compile(rf"\b{re.escape(name)}\s*\(")
    if call.search(tests):
        return True
    for line in statement.splitlines():
        found = call.search(line)
        if found and (line.lstrip().startswith(">>>") or RESULT_MARK.search(line, found.end())):
            return True
    return False


def open_comment(beginning: Prefill) -> Prefill | None:
    """Return a prefill with a comment opened in the body; `None` unless it ends before a body."""
    margin = beginning.text.rpartition("\n")[2]
    if not margin.isspace():
        return None
    return replace(beginning, text=f"{beginning.text} #")


def prefill_function(path: str, text: str, names: Sequence[str]) -> tuple[str, Prefill] | None:
    """Return the prefill for the new text of one function, with its file's name and its class around it.

    Args:
        path: The file.
        text: The file's text.
        names: Function names; the first that occurs in the file is used.

    Returns:
        The function's name and the prefill; `None` if the file has none of them, or several with one name.
    """
    tree = parse_module(text)
    for name in names if tree is not None else ():
        found = [(node, owner) for node, owner in _functions(tree) if node.name == name]
        if len(found) != 1:
            continue
        node, owner = found[0]
        lines = split_lines(text)
        head = _header(node, lines)
        if not head:
            continue
        stop = (*FENCE_END, *MARGIN_STOPS)
        if owner is not None:
            given = ", ".join(map(ast.unparse, (*owner.bases, *owner.keywords)))
            head = f"class {owner.name}({given}):\n{head}" if given else f"class {owner.name}:\n{head}"
            line = lines[node.lineno - 1]
            margin = line[: len(line) - len(line.lstrip())]
            stop = (*stop, *(f"\n{margin}{member}" for member in MEMBER_STARTS))
        return name, Prefill(text=f"### {path}\n{FENCE}\n{head}", stop=stop)
    return None


def _functions(
    tree: ast.Module | None,
) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, ast.ClassDef | None]]:
    """Yield the module's functions and the methods of its classes, each with its class."""
    for node in tree.body if tree is not None else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node, None
        elif isinstance(node, ast.ClassDef):
            members = (m for m in node.body if isinstance(m, ast.FunctionDef | ast.AsyncFunctionDef))
            yield from ((member, node) for member in members)


def _find_stub(statement: str, entry_point: str | None) -> str:
    """Return the stub that the task is, or that its only block of code is; empty if there is none."""
    if stub := _stub_head(statement):
        return stub
    blocks = [block.code for block in fenced_blocks(statement)]
    found = [(stub, code) for code in blocks if (stub := _stub_head(code))]
    if len(found) != 1:
        return ""
    stub, code = found[0]
    return stub if entry_point is None or entry_point in defined_names(code) else ""


def _stub_head(code: str) -> str:
    """Return code up to the body of its last definition; empty if it is not a stub."""
    tree = parse_module(code)
    wanted = tree.body[-1] if tree is not None and tree.body else None
    if tree is None or not isinstance(wanted, Definition) or any(map(_is_open, tree.body[:-1])):
        return ""  # of several the reply would have to end each before the next
    lines = split_lines(code)
    if isinstance(wanted, ast.ClassDef) and not _is_open(wanted):
        method = wanted.body[-1]
        if not _is_open(method) or any(map(_is_open, wanted.body[:-1])):
            return ""
        return _text_through_header(method, lines)
    return _text_through_header(wanted, lines) if _is_open(wanted) else ""


def _text_through_header(node: ast.stmt, lines: Sequence[str]) -> str:
    """Return the text above a definition with its header; empty if it has no header of its own."""
    head = _header(node, lines) if isinstance(node, Definition) else ""
    return "".join(lines[: first_line(node) - 1]) + head if head else ""


def _is_open(node: ast.stmt) -> bool:
    """Return whether a statement is a definition without a body."""
    return isinstance(node, Definition) and all(map(_is_placeholder, node.body))


def _is_placeholder(node: ast.stmt) -> bool:
    """Return whether a statement stands for a missing body."""
    if isinstance(node, ast.Raise):
        return "NotImplementedError" in ast.dump(node)
    return isinstance(node, ast.Pass) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and node.value.value is not None
    )


def _header(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, lines: Sequence[str]) -> str:
    """Return decorators, signature and docstring as written, and the indentation of the next line.

    Without that indentation small models take a docstring for the whole function, one time in four. Its last
    blank is left to the model, because tokens of words start with one.
    """
    first, above = node.body[0], "".join(lines[first_line(node) - 1 : node.lineno - 1])
    if first.lineno == node.lineno:  # `def f(x): ...`
        head = above + lines[node.lineno - 1].encode()[: first.col_offset].decode()
        line = lines[node.lineno - 1]
        margin = line[: len(line) - len(line.lstrip())] + "    "
    elif is_docstring(first) and len(node.body) > 1 and node.body[1].lineno == first.end_lineno:
        return ""  # `"""..."""; return 1`
    else:
        last = first.end_lineno if is_docstring(first) else first_line(first) - 1
        head = "".join(lines[first_line(node) - 1 : last])
        line = lines[first_line(first) - 1]
        margin = line[: len(line) - len(line.lstrip())]
    return f"{head.rstrip()}\n{margin[:-1]}"
