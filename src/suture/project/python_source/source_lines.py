"""Lines of code moved as they are: to the right or left, or in front of a module's own statements."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Sequence

from suture.project.python_source.parsing import parsed
from suture.project.python_source.python_code import is_docstring, lines_of

HEAD_COMMENT = re.compile(r"#!|#.*coding[:=]")


def put_in_front(code: str, extra: str) -> str:
    """`extra` before the code's own statements, after its docstring and its `__future__` imports."""
    tree = parsed(code)
    lines = lines_of(code)
    at = after_preamble(tree.body) if tree else 0
    while at < min(2, len(lines)) and HEAD_COMMENT.match(lines[at]):
        at += 1  # only there do they say what they say
    return "".join([*lines[:at], extra if extra.endswith("\n") else f"{extra}\n", *lines[at:]])


def indented(source: str, prefix: str, *, drop: int = 0) -> str:
    """Move code to the right, and first `drop` characters to the left; the inside of strings stays."""
    inside = _inside_strings(source)
    moved: list[str] = []
    for number, line in enumerate(lines_of(source), 1):
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


def after_preamble(body: Sequence[ast.stmt]) -> int:
    """How many lines the docstring and the `__future__` imports take."""
    after = 0
    for node in body:
        if not (is_docstring(node) or (isinstance(node, ast.ImportFrom) and node.module == "__future__")):
            break
        after = node.end_lineno or after
    return after
