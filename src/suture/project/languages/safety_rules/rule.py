"""A rule of the safety scan, and a place where code does what it speaks of."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

from suture.project.languages.grammars import Grammars, load_grammar, parse_tree

if TYPE_CHECKING:
    from tree_sitter import Node, Query

SafetyLevel = Literal["block", "ask", "warn", "off"]
"""What becomes of a new use: it never runs, a person is asked first, it is told with the result, nothing."""
MOST_SHOWN = 160
"""Characters of a piece of code that are quoted."""


@dataclass(frozen=True, kw_only=True)
class SafetyRule:
    """One thing that code can do.

    Attributes:
        name: Its language and what it is about, such as `python.eval`.
        why: What is dangerous about it, in a few words.
        level: What becomes of a new use where no setting says otherwise.
    """

    name: str
    why: str
    level: SafetyLevel = "warn"


UNREADABLE = SafetyRule(name="unread", why="it is too large, or nests too deeply, to be looked through")
"""Of every language."""


@dataclass(frozen=True, kw_only=True)
class UnsafeUse:
    """A place where code does what a rule speaks of.

    Attributes:
        rule: The rule's name.
        line: In its file, from 1.
        code: The piece of code in one line, shortened: two of the same text are the same use.
    """

    rule: str
    line: int
    code: str


FindUses = Callable[[str, str], Iterable[UnsafeUse]]
"""Finds uses in a file: its path, its text."""


def quoted(code: str) -> str:
    """A piece of code in one line of bounded length."""
    line = " ".join(code[: 4 * MOST_SHOWN].split())
    return line if len(line) <= MOST_SHOWN else f"{line[: MOST_SHOWN - 3]}..."


MOST_MATCHES = 10_000
"""States that tree-sitter keeps of a query: it drops the rest rather than take ever more time."""
DEEPEST = 400
"""Nodes within one another: the time that a query takes grows with their number too."""
MOST_TORN = 1000
"""Parts of what is no code, which cannot run either."""
WINDOW_BYTES = 16_000
MOST_S = 5.0
"""For one file; looked at after each window of it. Code that people write takes a tenth of it."""


def find_uses_by_query(
    grammars: Grammars, queries: Mapping[str, str], path: str, text: str
) -> Iterator[UnsafeUse]:
    """Find uses by queries.

    Args:
        grammars: The language's.
        queries: The name of a rule -> its query, whose capture `use` is the place.
        path: The file.
        text: Its text.
    """
    # One query for all rules goes over a tree once; the place is then told by the name of its capture.
    whole = "\n".join(query.replace("@use", f"@{rule}") for rule, query in queries.items())
    root = parse_tree(text, path, grammars)
    ending = next((known for known in grammars if known and path.endswith(known)), "")
    query = _query(*grammars[ending], whole)
    found = _places(root, query) if _is_shallow(root) else None
    for line, _, rule, code in sorted(found or ()):
        yield UnsafeUse(rule=rule, line=line, code=quoted(code))
    if found is None:
        yield UnsafeUse(rule=UNREADABLE.name, line=1, code="it nests too deeply, or does too much")


def _places(root: Node, query: Query) -> set[tuple[int, int, str, str]] | None:
    """Line, column, rule and code of each use; `None` where that takes too long."""
    from tree_sitter import QueryCursor

    cursor, until = QueryCursor(query, match_limit=MOST_MATCHES), time.monotonic() + MOST_S
    places: set[tuple[int, int, str, str]] = set()
    for start in range(0, root.end_byte, WINDOW_BYTES):
        cursor.set_byte_range(start, start + WINDOW_BYTES)
        for rule, nodes in cursor.captures(root).items():
            if "." in rule:  # the others serve the conditions
                places |= {(node.start_point[0] + 1, node.start_byte, rule, _text(node)) for node in nodes}
        if time.monotonic() > until or cursor.did_exceed_match_limit:
            return None
    return places


def _is_shallow(root: Node) -> bool:
    """Whether no node lies too deep, and none that is no code holds too much."""
    cursor, deep, torn = root.walk(), 0, root.has_error
    while True:
        if torn and cursor.node and cursor.node.type == "ERROR" and cursor.node.child_count > MOST_TORN:
            return False
        if cursor.goto_first_child():
            deep += 1
            if deep > DEEPEST:
                return False
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return True
            deep -= 1


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


@cache
def _query(package: str, name: str, source: str) -> Query:
    from tree_sitter import Query

    return Query(load_grammar(package, name), source)
