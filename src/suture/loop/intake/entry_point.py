"""The name that a statement asks for, as far as it can be read from it."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable, Iterator

from suture.project.python_source.parsing import parsed
from suture.project.python_source.statements import Definition

NAME = r"([A-Za-z_]\w*)"
STUB = re.compile(rf"^[ \t]*(?:async[ \t]+)?def[ \t]+{NAME}[ \t]*\(", re.MULTILINE)
KIND = r"\b(?:function|method|class|def)"
GIVEN = re.compile(
    rf"{KIND}\s+(?:called|named)\s+[`'\"]?{NAME}|\b(?:name it|call it|with (?:the )?name)\s+[`'\"]?{NAME}"
    rf"|\b(?:called|named)\s+[`'\"]{NAME}|{KIND}\s*:?\s+[`'\"]{NAME}|\b(?:class)\s+([A-Z]\w*)"
    rf"|\b(?:function|method)\s+([a-z]\w*_\w+)\b"
)
"""Words that say outright what is a name; a bare word behind `function` is one only if it looks like it."""
BEFORE_CALL = re.compile(rf"{KIND}\s+{NAME}\(|[`'\"]{NAME}\(")
CALL = re.compile(rf"(?<![\w.]){NAME}\(")
RESULT = re.compile(
    r"(?:\.\w+\([^()\n]*\))*[`'\"]?\s*(?:===?|->|=>|→|⇒|➞|(?:should |must |will )?(?:returns?|gives?)\b)"
)
NO_NAMES = frozenset(
    {
        "Python",
        "a",
        "after",
        "an",
        "at",
        "before",
        "by",
        "each",
        "every",
        "it",
        "its",
        "of",
        "on",
        "once",
        "python",
        "returning",
        "takes",
        "taking",
        "that",
        "the",
        "this",
        "to",
        "twice",
        "when",
        "which",
    }
)
LONGEST_CALL = 500


def entry_point_of(statement: str) -> str | None:
    """The function or class to write: the last one of a stub, else the likeliest name in the prose.

    Likeliest is a name that is both given as one (`called NAME`) and called with a result (`NAME(1) == 2`),
    then one that is given, then one that is called with a result, then any that is called.
    """
    tree = parsed(statement)
    names = [node.name for node in tree.body if isinstance(node, Definition)] if tree else []
    names = names or STUB.findall(statement)
    if names:
        return str(names[-1])
    given = list(_found(GIVEN, statement))
    introduced = list(_found(BEFORE_CALL, statement))
    calls = list(_calls(statement))
    results = [name for name, has_result in calls if has_result]
    both = [name for name in (*given, *introduced) if name in results]
    ranked = [*both, *given, *results, *introduced, *(name for name, _ in calls)]
    return _first(ranked) or next(iter(name for name in results if not keyword.iskeyword(name)), None)


def _first(names: Iterable[str]) -> str | None:
    return next((name for name in names if not hasattr(builtins, name)), None)


def _found(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    for match in pattern.finditer(text):
        name = next(group for group in match.groups() if group)
        if not keyword.iskeyword(name) and name not in NO_NAMES:
            yield name


def _calls(text: str) -> Iterator[tuple[str, bool]]:
    """Each name with a bracket behind it, and whether a result follows the closing one."""
    for match in CALL.finditer(text):
        if not keyword.iskeyword(match[1]):
            end = _closing_bracket(text, match.end())
            yield match[1], end is not None and RESULT.match(text, end) is not None


def _closing_bracket(text: str, start: int) -> int | None:
    depth = 1
    for position in range(start, min(len(text), start + LONGEST_CALL)):
        depth += (text[position] in "([{") - (text[position] in ")]}")
        if depth == 0:
            return position + 1
    return None
