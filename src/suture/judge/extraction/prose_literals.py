"""Literals inside prose: where one begins, the longest that ends sensibly."""

from __future__ import annotations

import ast
import re
from typing import Any

from suture.project.python_source.parsing import PARSE_FAULTS

WORDS = {"true": "True", "false": "False", "none": "None", "null": "None"}
WORD_RE = re.compile(r"(true|false|none|null)\b", re.IGNORECASE)
# What may follow a value: the end of the line, a remark, the end of the sentence, the same value again, the
# next example.
AFTER_RE = re.compile(
    r"""[ \t]*(?:$|\n|\#|//|\(|--|["']{3}|[.;!](?:\s|$)|,?[ ](?:and|but|because|since)\b)"""
)
NEXT_RE = re.compile(r",[ \t]*`?[A-Za-z_][\w.]*\([^\n]{0,200}?\)`?[ \t]*(?:==|->|=>|→|returns?\b|gives?\b)")
EQUALS_RE = re.compile(r"[ \t]*={1,2}[ \t]*(?!>)")
METHOD_RE = re.compile(r"\.\w+\(")
LONGEST_CHAIN = 10
"""Calls of methods, one on the other."""
LONGEST = 2000
OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod)
LITERAL_NODES = (
    ast.Expression, ast.Constant, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.UnaryOp, ast.USub, ast.UAdd,
    ast.BinOp, *OPERATORS, ast.Load,
)  # fmt: skip


def _parsed(source: str) -> ast.Expression | None:
    try:
        return ast.parse(source.strip(), mode="eval")
    except PARSE_FAULTS:
        return None


def is_literal(node: ast.AST) -> bool:
    """Whether an expression is made of constants, containers and arithmetic; `set()` is one too."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            if not (
                isinstance(part.func, ast.Name) and part.func.id in ("set", "frozenset") and not part.keywords
            ):
                return False
        elif isinstance(part, ast.Name):
            if part.id not in ("set", "frozenset"):
                return False
        elif isinstance(part, ast.BinOp):
            numbers = (side for side in (part.left, part.right) if isinstance(side, ast.Constant))
            if not all(isinstance(side.value, (int, float, complex)) for side in numbers):
                return False
        elif not isinstance(part, LITERAL_NODES):
            return False
    return True


def value_of(source: str) -> Any:
    """The value of a literal.

    Raises:
        ValueError: It has none, such as a division by zero or an unhashable key.
    """
    try:
        return eval(source, {"__builtins__": {}, "set": set, "frozenset": frozenset})
    except (ArithmeticError, TypeError, SyntaxError, NameError) as fault:
        raise ValueError(str(fault)) from fault


def literal_at(text: str, start: int, close: str = "") -> tuple[str, int] | None:
    """The literal that begins at a place in a text.

    Args:
        text: The text.
        start: The place.
        close: What must stand behind it before anything else, such as the backtick that ends code.

    Returns:
        Its source and where it ends; `None` where there is none, or where what follows makes it doubtful.
    """
    word = WORD_RE.match(text, start)
    if word:
        end = word.end() + len(close)
        ends_well = text.startswith(close, word.end()) and AFTER_RE.match(text, end)
        return (WORDS[word[0].lower()], word.end()) if ends_well else None
    # The parser is asked last, and not beyond the next example: many on one line would keep it busy.
    following = NEXT_RE.search(text, start, start + LONGEST)
    last = following.start() if following else len(text)
    for end in _ends(text, start):
        if end > last or not _may_end(text, end, close):
            continue
        source = text[start:end]
        if re.search(r"\d\.\s*$", source):
            continue  # the dot ends the sentence
        tree = _parsed(source)
        if tree is None or not is_literal(tree) or (isinstance(tree.body, ast.Tuple) and source[0] != "("):
            continue
        shown = source.strip() if source[0] == "(" else ast.unparse(tree)
        return (shown, end) if _ends_well(text, source, end + len(close)) else None
    return None


def _may_end(text: str, end: int, close: str) -> bool:
    """Whether what stands behind a place lets a value end there."""
    behind = end + len(close)
    if not text.startswith(close, end):
        return False
    return any(pattern.match(text, behind) for pattern in (AFTER_RE, EQUALS_RE, NEXT_RE))


def _ends(text: str, start: int) -> list[int]:
    """Places where a literal could end, the longest first; further lines only in open brackets."""
    depth = 0
    quote = ""
    ends: list[int] = []
    position = start
    limit = min(len(text), start + LONGEST)
    while position < limit:
        char = text[position]
        if quote:
            if char == "\\":
                position += 1
            elif char == quote:
                quote = ""
        elif char in "\"'":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
            if depth < 0:
                break
        elif char == "\n" and not depth:
            break
        position += 1
        if not depth and not quote:
            ends.append(position)
    return ends[::-1]


def _ends_well(text: str, source: str, end: int) -> bool:
    if AFTER_RE.match(text, end) or NEXT_RE.match(text, end):
        return True
    again = EQUALS_RE.match(text, end)  # `f(2) -> 1 + 1 = 2`
    other = literal_at(text, again.end()) if again else None
    if other is None:
        return False
    try:
        return bool(value_of(source.strip()) == value_of(other[0]))
    except ValueError:
        return False


def call_at(text: str, start: int) -> tuple[ast.Call, int] | None:
    """The call that begins at a place in a text, with calls of methods behind it, and where it ends."""
    end = _closing(text, text.index("(", start))
    for _ in range(LONGEST_CHAIN):
        method = METHOD_RE.match(text, end) if end is not None else None
        if method is None:
            break
        end = _closing(text, method.end() - 1)
    tree = _parsed(text[start:end]) if end is not None else None
    return (tree.body, end) if tree and end is not None and isinstance(tree.body, ast.Call) else None


def _closing(text: str, opening: int) -> int | None:
    """Behind the bracket that closes the one at a place."""
    return next((end for end in reversed(_ends(text, opening)) if text[end - 1] == ")"), None)
