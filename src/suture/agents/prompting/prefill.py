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
from suture.project.python_source.statement_edits import Definition, defined_names, is_docstring, split_lines

FENCE = "```python"
FENCE_END = ("\n```",)
"""Text that ends a block of code."""
MARGIN_STOPS = tuple(f"\n{character}" for character in f"{string.ascii_letters}_@#(['\"")
"""Strings that start the next statement at the left margin; blank and indented lines do not stop the reply."""
RESULT_MARK = re.compile(r"==|->|→|\breturns?\b|\bgives?\b")
"""Matches what follows a call if the task states its result, as in `f(1) == 2`."""
MEMBER_STARTS = ("def ", "async def ", "@", "class ")
"""Matches the start of the next member of a class."""


def prefill_module(
    statement: str, entry_point: str | None, *, requires_entry_point: bool, tests: str
) -> Prefill:
    """Return the prefill for a module: the given stub, else the entry point's `def` or `class`, else a fence.

    Args:
        requires_entry_point: Whether the code must define the entry point. If not, its name was found in prose and may
            be wrong (see `WriteBrief`). It is then used only if the statement shows a call of it with its result.
    """
    beginning = _find_stub(statement, entry_point)
    shown_tests = tests if requires_entry_point else ""
    if not beginning and entry_point and _call_is_shown(entry_point, statement, shown_tests):
        keyword = _keyword(entry_point, statement, tests)
        opening = "(" if keyword == "def" else ""
        beginning = f"{keyword} {entry_point}{opening}" if keyword else ""
    if not beginning:
        return Prefill(text=FENCE, stop=FENCE_END)
    return Prefill(text=f"{FENCE}\n{beginning}", stop=(*FENCE_END, *MARGIN_STOPS))


def _keyword(name: str, statement: str, tests: str) -> str:
    """Return `def` or `class`; empty if neither is certain, or if the task asks for more than this name."""
    text = f"{statement}\n{tests}"
    # A coroutine needs `async def`, and a context manager may be a decorated function or a class.
    if re.search(rf"\b(?:await|asyncio\.run\(|with)\s*{re.escape(name)}\s*\(|\basync\b", text):
        return ""
    # No tests at all would parse as an empty module, which calls nothing.
    tree = (parse_module(tests) if tests.strip() else None) or parse_module(statement)
    if tree is not None and _called_names(tree) - {name}:
        return ""
    if re.search(rf"\bclass\s+[`'\"]?{re.escape(name)}\b", statement):
        return "class"
    # An attribute of the call's result, or a result in a variable: the name may be a class.
    used_as_object = (
        rf"\b{re.escape(name)}\((?:[^()\n]|\([^()\n]*\))*\)\.\w|(?<![=!<>])=\s*{re.escape(name)}\("
    )
    if not re.search(used_as_object, text):
        return "def"
    return "class" if name[0].isupper() else ""


def _called_names(tree: ast.Module) -> set[str]:
    """Return the functions that a module calls and that are not built-in and not defined or imported in it."""
    called = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    return called - defined_names(ast.unparse(tree)) - set(dir(builtins))


def _call_is_shown(name: str, statement: str, tests: str) -> bool:
    """Return whether tests call the name, or the task shows a call with its result."""
    call = re.compile(rf"\b{re.escape(name)}\s*\(")
    if call.search(tests):
        return True
    return any(
        line.lstrip().startswith(">>>") or RESULT_MARK.search(line, match.end())
        for line in statement.splitlines()
        if (match := call.search(line))
    )


def open_comment(prefill: Prefill) -> Prefill | None:
    """Return a prefill with a comment opened in the body, for a model that replied with nothing.

    Small models may take a docstring for a complete function. After a comment they have to write a body.
    Return `None` unless the prefill ends in the body's indentation.
    """
    ends_in_indentation = prefill.text.rpartition("\n")[2].isspace()
    return replace(prefill, text=f"{prefill.text} #") if ends_in_indentation else None


def prefill_function(path: str, text: str, name: str) -> Prefill | None:
    """Return the prefill for a function, with its file's name and its class; `None` unless there is exactly one."""
    tree = parse_module(text)
    functions = _functions(tree) if tree is not None else ()
    definitions = [(function, owner) for function, owner in functions if function.name == name]
    if len(definitions) != 1:
        return None
    function, owner = definitions[0]
    lines = split_lines(text)
    head = _header(function, lines)
    if not head:
        return None
    stop = (*FENCE_END, *MARGIN_STOPS)
    if owner is not None:
        bases = ", ".join(map(ast.unparse, (*owner.bases, *owner.keywords)))
        head = f"class {owner.name}({bases}):\n{head}" if bases else f"class {owner.name}:\n{head}"
        margin = _indentation(lines[function.lineno - 1])
        stop = (*stop, *(f"\n{margin}{member}" for member in MEMBER_STARTS))
    return Prefill(text=f"### {path}\n{FENCE}\n{head}", stop=stop)


def _functions(
    tree: ast.Module,
) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, ast.ClassDef | None]]:
    """Yield `(function, class)` for the functions of a module and the methods of its classes."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node, None
        elif isinstance(node, ast.ClassDef):
            methods = (m for m in node.body if isinstance(m, ast.FunctionDef | ast.AsyncFunctionDef))
            yield from ((method, node) for method in methods)


def _find_stub(statement: str, entry_point: str | None) -> str:
    """Return the statement itself if it is a stub, else the only stub in its blocks of code; empty for neither."""
    if stub := _stub_head(statement):
        return stub
    blocks = [block.code for block in fenced_blocks(statement)]
    stubs = [(stub, code) for code in blocks if (stub := _stub_head(code))]
    if len(stubs) != 1:
        return ""
    stub, code = stubs[0]
    return stub if entry_point is None or entry_point in defined_names(code) else ""


def _stub_head(code: str) -> str:
    """Return code up to the body of its last definition; empty unless only that one lacks its body."""
    tree = parse_module(code)
    body = tree.body if tree is not None else []
    if body and isinstance(body[-1], ast.ClassDef) and not _lacks_body(body[-1]):
        body = [*body[:-1], *body[-1].body]  # The last definition is then a method of this class.
    if not body or not _lacks_body(body[-1]) or any(map(_lacks_body, body[:-1])):
        return ""
    stub, lines = body[-1], split_lines(code)
    head = _header(stub, lines) if isinstance(stub, Definition) else ""
    return "".join(lines[: first_line(stub) - 1]) + head if head else ""


def _lacks_body(node: ast.stmt) -> bool:
    """Return whether a statement is a definition without a body."""
    return isinstance(node, Definition) and all(map(_is_placeholder, node.body))


def _is_placeholder(node: ast.stmt) -> bool:
    """Return whether a statement stands for a missing body."""
    if isinstance(node, ast.Raise):
        return "NotImplementedError" in ast.dump(node)
    # A constant is `...` or a docstring. A lone `None` also counts as a body.
    return isinstance(node, ast.Pass) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and node.value.value is not None
    )


def _header(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, lines: Sequence[str]) -> str:
    """Return decorators, signature and docstring as written, and the indentation of the next line.

    Without that indentation one reply in four was empty: small models take a docstring for the whole function.
    The last blank of it is left to the model, because tokens of words start with one.
    """
    body, above = node.body[0], "".join(lines[first_line(node) - 1 : node.lineno - 1])
    if body.lineno == node.lineno:  # `def f(x): ...`
        head = above + lines[node.lineno - 1].encode()[: body.col_offset].decode()
        margin = _indentation(lines[node.lineno - 1]) + "    "
    elif is_docstring(body) and len(node.body) > 1 and node.body[1].lineno == body.end_lineno:
        return ""  # `"""..."""; return 1`
    else:
        last_line = body.end_lineno if is_docstring(body) else first_line(body) - 1
        head = "".join(lines[first_line(node) - 1 : last_line])
        margin = _indentation(lines[first_line(body) - 1])
    return f"{head.rstrip()}\n{margin[:-1]}"


def _indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
