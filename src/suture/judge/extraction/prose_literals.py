"""Finding Python literals and calls inside prose.

A literal is the longest one that starts at a position and is followed by something that may follow a value,
such as the end of a sentence.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from suture.judge.tuning import MAX_EXPRESSION_CHARS, MAX_METHOD_CALLS
from suture.project.python_source.parsing import PARSE_FAULTS

WORD_LITERALS = {"true": "True", "false": "False", "none": "None", "null": "None"}
"""Words that people write for a value, in any case -> the literal of Python."""
WORD_RE = re.compile(r"(true|false|none|null)\b", re.IGNORECASE)
VALUE_END_RE = re.compile(
    r"""[ \t]*(?:$|\n|\#|//|\(|--|["']{3}|[.;!](?:\s|$)|,?[ ](?:and|but|because|since)\b)"""
)
"""What may follow a value: the end of the line, a comment, the end of the sentence or a conjunction."""
# The longest arguments, 200 characters, are chosen by judgement; not measured.
NEXT_EXAMPLE_RE = re.compile(
    r",[ \t]*`?[A-Za-z_][\w.]*\([^\n]{0,200}?\)`?[ \t]*(?:==?|->|=>|→|returns?\b|gives?\b|is\b|should\b|must\b)"
)
EQUALS_RE = re.compile(r"[ \t]*={1,2}[ \t]*(?!>)")
METHOD_CALL_RE = re.compile(r"\.\w+\(")
OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod)
LITERAL_NODES = (
    ast.Expression, ast.Constant, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.UnaryOp, ast.USub, ast.UAdd,
    ast.BinOp, *OPERATORS, ast.Load,
)  # fmt: skip


def _parse_expression(source: str) -> ast.Expression | None:
    try:
        return ast.parse(source.strip(), mode="eval")
    except PARSE_FAULTS:
        return None


def is_literal(node: ast.AST) -> bool:
    """Whether an expression consists of constants, containers and arithmetic; `set()` counts too."""
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


def evaluate_literal(source: str) -> Any:
    """Return the value of a literal.

    Raises:
        ValueError: The literal has no value, for example because of a division by zero or an unhashable key.
    """
    try:
        return eval(source, {"__builtins__": {}, "set": set, "frozenset": frozenset})
    except (ArithmeticError, TypeError, SyntaxError, NameError) as fault:
        raise ValueError(str(fault)) from fault


def find_literal(text: str, start: int, closing: str = "") -> tuple[str, int] | None:
    """Return the literal that begins at a position in a text.

    Args:
        closing: What must directly follow the literal, such as the backtick that ends code.

    Returns:
        (source, end): the literal's source and the position behind it. `None` if there is none, or if the
        text that follows makes it doubtful.
    """
    word = WORD_RE.match(text, start)
    if word:
        end = word.end() + len(closing)
        is_followed_well = text.startswith(closing, word.end()) and VALUE_END_RE.match(text, end)
        return (WORD_LITERALS[word[0].lower()], word.end()) if is_followed_well else None
    # Parsing comes last and stops at the next example, because many examples on one line would be slow.
    next_example = NEXT_EXAMPLE_RE.search(text, start, start + MAX_EXPRESSION_CHARS)
    limit = next_example.start() if next_example else len(text)
    for end in list_literal_ends(text, start):
        if end > limit or not _may_end(text, end, closing):
            continue
        source = text[start:end]
        if re.search(r"\d\.\s*$", source):
            continue  # the dot ends the sentence and is no decimal point
        tree = _parse_expression(source)
        # Values without brackets, such as `1, 2`, may be an enumeration and no tuple.
        if tree is None or not is_literal(tree) or (isinstance(tree.body, ast.Tuple) and source[0] != "("):
            continue
        literal = source.strip() if source[0] == "(" else ast.unparse(tree)
        return (literal, end) if _is_followed_well(text, source, end + len(closing)) else None
    return None


def _may_end(text: str, end: int, closing: str) -> bool:
    """Whether the text behind a position lets a value end there."""
    behind = end + len(closing)
    if not text.startswith(closing, end):
        return False
    return any(pattern.match(text, behind) for pattern in (VALUE_END_RE, EQUALS_RE, NEXT_EXAMPLE_RE))


def list_literal_ends(text: str, start: int) -> list[int]:
    """Return the positions where a literal could end, longest first; further lines only inside brackets."""
    depth = 0
    quote = ""
    ends: list[int] = []
    position = start
    limit = min(len(text), start + MAX_EXPRESSION_CHARS)
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


def _is_followed_well(text: str, source: str, end: int) -> bool:
    """Whether the text behind a literal, or the same value written in another way, ends the example."""
    if VALUE_END_RE.match(text, end) or NEXT_EXAMPLE_RE.match(text, end):
        return True
    equals = EQUALS_RE.match(text, end)  # as in `f(2) -> 1 + 1 = 2`
    second_literal = find_literal(text, equals.end()) if equals else None
    if second_literal is None:
        return False
    try:
        return bool(evaluate_literal(source.strip()) == evaluate_literal(second_literal[0]))
    except ValueError:
        return False


def find_call(text: str, start: int) -> tuple[ast.Call, int] | None:
    """Return (call, end): the call at a position in a text, with the method calls behind it, and its end."""
    end = _find_closing_bracket(text, text.index("(", start))
    for _ in range(MAX_METHOD_CALLS):
        method = METHOD_CALL_RE.match(text, end) if end is not None else None
        if method is None:
            break
        end = _find_closing_bracket(text, method.end() - 1)
    tree = _parse_expression(text[start:end]) if end is not None else None
    return (tree.body, end) if tree and end is not None and isinstance(tree.body, ast.Call) else None


def _find_closing_bracket(text: str, opening: int) -> int | None:
    """Return the position behind the bracket that closes the one at a position."""
    return next((end for end in reversed(list_literal_ends(text, opening)) if text[end - 1] == ")"), None)
