"""Find the name of the function or class that a statement asks for."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterator

from suture.loop.tuning import MAX_CALL_CHARS
from suture.project.python_source.parsing import parse_module
from suture.project.python_source.statement_edits import Definition

NAME = r"([A-Za-z_]\w*)"
STUB_RE = re.compile(rf"^[ \t]*(?:async[ \t]+)?def[ \t]+{NAME}[ \t]*\(", re.MULTILINE)
KIND = r"\b(?:function|method|class|def)"
INTRODUCED_NAME_RE = re.compile(
    rf"{KIND}\s+(?:called|named)\s+[`'\"]?{NAME}|\b(?:name it|call it|with (?:the )?name)\s+[`'\"]?{NAME}"
    rf"|\b(?:called|named)\s+[`'\"]{NAME}|{KIND}\s*:?\s+[`'\"]{NAME}|\b(?:class)\s+([A-Z]\w*)"
    rf"|\b(?:function|method)\s+([a-z]\w*_\w+)\b"
)
"""Phrases that introduce a name. A bare word after `function` counts only if it looks like an identifier."""
CALLED_NAME_RE = re.compile(rf"{KIND}\s+{NAME}\(|[`'\"]{NAME}\(")
CALL_RE = re.compile(rf"(?<![\w.]){NAME}\(")
RESULT_RE = re.compile(
    r"(?:\.\w+\([^()\n]*\))*[`'\"]?\s*(?:===?|->|=>|→|⇒|➞|(?:should |must |will )?(?:returns?|gives?)\b)"
)
"""What follows the closing bracket of a call whose result is shown: methods, a quote, and then an arrow, a
comparison or a verb.
"""
NOT_A_NAME_RE = re.compile(
    "[Pp]ython|a|after|an|at|before|by|each|every|its?|of|on|once|returning|takes|taking|that|the|this|to|twice|"
    "when|which"
)
"""Words that follow `function` or `called` in prose."""


def find_entry_point(statement: str) -> str | None:
    """Return the function or class to write: the last one of a stub, else the most likely name in the prose.

    The most likely name is one that is both introduced (`called NAME`) and called with a result
    (`NAME(1) == 2`). After that comes a name that is introduced, then one that is called with a result, then
    any that is called. Return `None` if there is no such name.
    """
    tree = parse_module(statement)
    names = [node.name for node in tree.body if isinstance(node, Definition)] if tree else []
    names = names or STUB_RE.findall(statement)
    if names:
        return str(names[-1])
    introduced = list(_find_names(INTRODUCED_NAME_RE, statement))
    before_call = list(_find_names(CALLED_NAME_RE, statement))
    calls = list(_find_calls(statement))
    with_result = [name for name, has_result in calls if has_result]
    both = [name for name in (*introduced, *before_call) if name in with_result]
    ranked = [*both, *introduced, *with_result, *before_call, *(name for name, _ in calls)]
    for name in ranked:
        # A statement often mentions built-in functions, and seldom asks for one.
        if not hasattr(builtins, name):
            return name
    return next(iter(with_result), None)


def _find_names(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    for match in pattern.finditer(text):
        name = next(group for group in match.groups() if group)
        if not keyword.iskeyword(name) and not NOT_A_NAME_RE.fullmatch(name):
            yield name


def _find_calls(text: str) -> Iterator[tuple[str, bool]]:
    """Yield `(name, whether a result is shown)` for each call in the text."""
    for match in CALL_RE.finditer(text):
        if not keyword.iskeyword(match[1]):
            end = _find_closing_bracket(text, match.end())
            yield match[1], end is not None and RESULT_RE.match(text, end) is not None


def _find_closing_bracket(text: str, start: int) -> int | None:
    depth = 1
    for position in range(start, min(len(text), start + MAX_CALL_CHARS)):
        depth += (text[position] in "([{") - (text[position] in ")]}")
        if depth == 0:
            return position + 1
    return None
