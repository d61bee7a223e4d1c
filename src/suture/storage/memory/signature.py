"""What an error is called when its particulars are taken out: two bugs of one kind get the same words."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Sized
from typing import Any

from suture.core.records import Counterexample
from suture.project.python_source.parsing import parsed

MOST_CHARS = 200
MOST_LITERAL_CHARS = 2000
"""Of a value that is read to compare it with another."""
MOST_SHAPE = 24
"""Node kinds that a shape names."""
WRONG = "WrongResult"
"""What a failure without an exception is called: a check wanted another value."""
NO_ERROR = "Failure"
"""What a failure is called of which nothing is known."""

TYPES = frozenset(
    {name for name, value in vars(builtins).items() if isinstance(value, type)}
    | {
        "NoneType",
        "function",
        "method",
        "module",
        "generator",
        "coroutine",
        "dict_keys",
        "Decimal",
        "datetime",
    }
)
"""Quoted words that stay: they say what kind of value it was, not which."""
HEADED = re.compile(
    r"^(?:E\s+)?(?P<type>[A-Za-z_][\w.]*(?:Error|Exception|Warning|Exit|Interrupt|Timeout|Iteration))\b"
)
QUOTED = re.compile(r"'(?:[^'\\\n]|\\.){0,400}'|\"(?:[^\"\\\n]|\\.){0,400}\"|`[^`\n]{0,400}`|‘[^’\n]{0,400}’")
PLAIN = (
    (re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s'\"]+"), "<path>"),
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "<address>"),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b(?=\w*\d)[0-9a-f]{12,}\b"), "<id>"),
    (
        re.compile(
            r"(?:\b[A-Za-z]:)?(?:[\w.~-]*[/\\])+[\w.-]+(?::\d+)*|\b[\w-]+\.(?:py|pyi|js|ts|go|json|toml)\b(?::\d+)*"
        ),
        "<path>",
    ),
    (re.compile(r"(?<![\w<])[-+]?\d[\d_]*(?:\.\d+)?(?:[eE][-+]?\d+)?\b"), "<number>"),
)
LITERAL = re.compile(r"(?<!\w)[\[({](?:[\s,:]|<value>|<number>|<path>|<id>|None|True|False)*[\])}]")


def signature(error: str) -> str:
    """An error without paths, numbers, addresses and quoted values; its type stays.

    Args:
        error: What was raised, as `TypeError: ...`; of a log the last line that names an error.

    Returns:
        One line of at most 200 characters; `Failure` where nothing is said.
    """
    line = _telling_line(error)
    if not line:
        return NO_ERROR
    line = QUOTED.sub(_kept_type, line)
    for pattern, name in PLAIN:
        line = pattern.sub(name, line)
    while (simpler := LITERAL.sub("<value>", line)) != line:
        line = simpler
    return " ".join(line.split())[:MOST_CHARS]


def signature_of(fact: Counterexample) -> str:
    """The signature of a failing check: of what it raised, else of how its value was wrong."""
    if fact.exception:
        return signature(fact.exception)
    if fact.got or fact.expected:
        return f"{WRONG}: {difference(fact.got, fact.expected)}"
    return NO_ERROR


def kind_of(sign: str) -> str:
    """The class of error, such as `TypeError`; with the relation where only a value was wrong."""
    return sign if sign.startswith(WRONG) else sign.partition(":")[0]


def difference(got: str, expected: str) -> str:
    """How a value differs from what was wanted, without either of them.

    Args:
        got: A value as source; whatever is none tells nothing.
        expected: Another.
    """
    have, want = _value(got), _value(expected)
    if have is _UNKNOWN or want is _UNKNOWN:
        return "another value"
    if type(have) is not type(want) and not _are_numbers(have, want):
        return f"{type(have).__name__} in place of {type(want).__name__}"
    if isinstance(want, bool):
        return f"{have} in place of {want}"
    if _are_numbers(have, want):
        return f"{type(want).__name__}, {_number_apart(have, want)}"
    if isinstance(want, (str, bytes, list, tuple, dict, set, frozenset)):
        return f"{type(want).__name__}, {_sized_apart(have, want)}"
    return f"another {type(want).__name__}"


def shape_of(source: str, line: int | None) -> str:
    """The kinds of syntax around a line: what encloses its statement, outermost first, then what is in it.

    Args:
        source: Python text; other text has no shape.
        line: From 1.
    """
    tree = parsed(source)
    if tree is None or line is None:
        return ""
    chain: list[ast.AST] = []
    node: ast.AST | None = tree
    while node is not None:
        node = next((child for child in _statements(node) if _spans(child, line)), None)
        if node is not None:
            chain.append(node)
    if not chain:
        return ""
    inner = [type(one).__name__ for one in ast.walk(chain[-1]) if isinstance(one, (ast.expr, ast.operator))]
    names = [type(one).__name__ for one in chain] + list(dict.fromkeys(inner))
    return " ".join(names[:MOST_SHAPE])


def _telling_line(error: str) -> str:
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    headed = [line for line in lines if HEADED.match(line)]
    line = headed[-1] if headed else (lines[0] if lines else "")
    return re.sub(r"^E\s+", "", line)[: 10 * MOST_CHARS]


def _kept_type(match: re.Match[str]) -> str:
    word = match.group()[1:-1]
    return f"'{word}'" if word in TYPES else "<value>"


def _statements(node: ast.AST) -> list[ast.AST]:
    kinds = (ast.stmt, ast.ExceptHandler, ast.match_case)
    return [child for child in ast.iter_child_nodes(node) if isinstance(child, kinds)]


def _spans(node: ast.AST, line: int) -> bool:
    first, last = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
    if first is None and isinstance(node, ast.match_case):
        first, last = node.pattern.lineno, node.body[-1].end_lineno
    return first is not None and last is not None and first <= line <= last


class _Unknown:
    """A text that is no value."""


_UNKNOWN = _Unknown()


def _value(text: str) -> Any:
    if len(text) > MOST_LITERAL_CHARS:
        return _UNKNOWN
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return _UNKNOWN


def _are_numbers(one: Any, two: Any) -> bool:
    return all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in (one, two))


def _number_apart(have: float, want: float) -> str:
    if have == -want:
        return "of the other sign"
    if abs(have - want) == 1:
        return "one too many" if have > want else "one too few"
    return "too large" if have > want else "too small"


def _sized_apart(have: Sized, want: Sized) -> str:
    if len(have) != len(want):
        if not len(have):
            return "empty"
        return "too long" if len(have) > len(want) else "too short"
    if isinstance(have, (list, tuple, str)) and isinstance(want, (list, tuple, str)):
        if sorted(map(repr, have)) == sorted(map(repr, want)):
            return "in another order"
        apart = sum(one != two for one, two in zip(have, want, strict=True))
        return "one item differs" if apart == 1 else "items differ"
    return "items differ"
