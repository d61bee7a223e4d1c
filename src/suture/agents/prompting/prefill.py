"""How the coder's reply begins: the fence and the signature that is known, so that only the body is drawn."""

from __future__ import annotations

import ast
import builtins
import re
import string
from collections.abc import Iterator, Sequence
from dataclasses import replace

from suture.agents.prompting.fitting import Beginning
from suture.agents.replies.fenced_blocks import fenced_blocks
from suture.project.python_source.parsing import first_line, parsed
from suture.project.python_source.statements import Definition, defined_names, is_docstring, lines_of

FENCE = "```python"
END = ("\n```",)
"""Where a block of code ends."""
AT_MARGIN = tuple(f"\n{first}" for first in (*string.ascii_letters, *"_@#(['\""))
"""Where the next thing at the left margin begins; `\n` and blanks go on."""
GIVES = re.compile(r"==|->|→|\breturns?\b|\bgives?\b")
MEMBERS = ("def ", "async def ", "@", "class ")
"""How the next member of a class begins."""


def begin_module(statement: str, entry_point: str | None, *, certain: bool, tests: str) -> Beginning:
    """How a module for a task begins: with the given stub, else with the name that the tests call.

    Args:
        statement: The task, in words or as a stub.
        entry_point: The name that must be there, where known.
        certain: Whether it may be relied upon; else only where the task itself shows what a call gives.
        tests: Source of what calls it.
    """
    stub = _given_stub(statement, entry_point)
    alone = Beginning(text=FENCE, stop=END)
    if stub:
        return Beginning(text=f"{FENCE}\n{stub}", stop=(*END, *AT_MARGIN))
    if entry_point is None or not _is_shown(entry_point, statement, tests if certain else ""):
        return alone
    keyword = _keyword(entry_point, statement, tests)
    if not keyword:
        return alone
    opening = "(" if keyword == "def" else ""
    return Beginning(text=f"{FENCE}\n{keyword} {entry_point}{opening}", stop=(*END, *AT_MARGIN))


def _keyword(name: str, statement: str, tests: str) -> str:
    """`def` or `class`; empty where neither is sure, or more than one thing is wanted."""
    text = f"{statement}\n{tests}"
    if re.search(rf"\b(?:await|asyncio\.run\(|with|async\s+\w+)\s*{re.escape(name)}\s*\(|\basync\b", text):
        return ""
    tree = parsed(tests) or parsed(statement)
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
    """Functions that a text calls, and neither defines nor imports nor has from Python itself."""
    called = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    return called - defined_names(ast.unparse(tree)) - set(dir(builtins))


def _is_shown(name: str, statement: str, tests: str) -> bool:
    """Whether tests call it, or the task in words does and says what comes of it."""
    call = re.compile(rf"\b{re.escape(name)}\s*\(")
    if call.search(tests):
        return True
    for line in statement.splitlines():
        found = call.search(line)
        if found and (line.lstrip().startswith(">>>") or GIVES.search(line, found.end())):
            return True
    return False


def with_comment(beginning: Beginning) -> Beginning | None:
    """A beginning that ends in front of a body, with a comment opened in it; `None` for others."""
    margin = beginning.text.rpartition("\n")[2]
    if not margin.isspace():
        return None
    return replace(beginning, text=f"{beginning.text} #")


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
        if not head:
            continue
        stop = (*END, *AT_MARGIN)
        if owner is not None:
            given = ", ".join(map(ast.unparse, (*owner.bases, *owner.keywords)))
            head = f"class {owner.name}({given}):\n{head}" if given else f"class {owner.name}:\n{head}"
            line = lines[node.lineno - 1]
            margin = line[: len(line) - len(line.lstrip())]
            stop = (*stop, *(f"\n{margin}{member}" for member in MEMBERS))
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


def _given_stub(statement: str, entry_point: str | None) -> str:
    """The stub that a task is, or that the one block of code in its words is; empty where there is none."""
    if stub := _stub(statement):
        return stub
    blocks = [block.code for block in fenced_blocks(statement)]
    found = [(stub, code) for code in blocks if (stub := _stub(code))]
    if len(found) != 1:
        return ""
    stub, code = found[0]
    return stub if entry_point is None or entry_point in defined_names(code) else ""


def _stub(code: str) -> str:
    """Code up to where the body of its last definition is to stand; empty where it is no stub."""
    tree = parsed(code)
    wanted = tree.body[-1] if tree is not None and tree.body else None
    if tree is None or not isinstance(wanted, Definition) or any(map(_is_open, tree.body[:-1])):
        return ""  # of several the reply would have to end each before the next
    lines = lines_of(code)
    if isinstance(wanted, ast.ClassDef) and not _is_open(wanted):
        method = wanted.body[-1]
        if not _is_open(method) or any(map(_is_open, wanted.body[:-1])):
            return ""
        return _down_to(method, lines)
    return _down_to(wanted, lines) if _is_open(wanted) else ""


def _down_to(node: ast.stmt, lines: Sequence[str]) -> str:
    """What stands above a definition, and its header; empty where that has none of its own."""
    head = _header(node, lines) if isinstance(node, Definition) else ""
    return "".join(lines[: first_line(node) - 1]) + head if head else ""


def _is_open(node: ast.stmt) -> bool:
    """Whether it is a definition whose body is to come."""
    return isinstance(node, Definition) and all(map(_says_nothing, node.body))


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
