"""The rules of the safety scan, and how a rule that is a tree-sitter query is applied to a file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

from suture.project.languages.reports import Grammars, find_grammar, get_node_text, load_grammar, parse_tree
from suture.project.tuning import (
    MAX_ERROR_CHILDREN,
    MAX_NODE_DEPTH,
    MAX_QUERY_STATES,
    MAX_QUOTED_CODE_CHARS,
    QUERY_TIMEOUT_S,
    QUERY_WINDOW_BYTES,
)

if TYPE_CHECKING:
    from tree_sitter import Node, Query

SafetyLevel = Literal["block", "ask", "warn", "off"]
"""What happens with a new use. The levels mean, in this order: code with it never runs; a person is asked; it is
reported with the result; nothing happens."""


@dataclass(frozen=True, kw_only=True)
class SafetyRule:
    """A rule about one thing that code can do and about which a person should know, such as running a shell.

    Attributes:
        name: The language and the topic, such as `python.eval`.
        why: What is dangerous about it, in a few words.
        level: What happens with a new use by default.
    """

    name: str
    why: str
    level: SafetyLevel = "warn"


UNREADABLE = SafetyRule(name="unread", why="it is too large, or nested too deeply, to be scanned")
"""The rule for files that cannot be scanned, in any language."""


@dataclass(frozen=True, kw_only=True)
class UnsafeUse:
    """A place where code does what a rule is about.

    Attributes:
        rule: Name of the rule.
        line: Line in its file, from 1.
        code: The piece of code in one line, shortened. Uses with equal code count as the same.
    """

    rule: str
    line: int
    code: str


FindUses = Callable[[str, str], Iterable[UnsafeUse]]
"""Takes path and text of a file; returns its uses."""


def quote_code(code: str) -> str:
    """Return a piece of code in one line of bounded length."""
    line = " ".join(code[: 4 * MAX_QUOTED_CODE_CHARS].split())
    return line if len(line) <= MAX_QUOTED_CODE_CHARS else f"{line[: MAX_QUOTED_CODE_CHARS - 3]}..."


def find_uses_by_query(
    grammars: Grammars, queries: Mapping[str, str], path: str, text: str
) -> Iterator[UnsafeUse]:
    """Find uses by tree-sitter queries.

    Args:
        queries: Name of a rule -> its query. The capture `use` marks the place.
    """
    # One query for all rules visits a tree once. The name of the capture then identifies the rule.
    combined = "\n".join(query.replace("@use", f"@{rule}") for rule, query in queries.items())
    root = parse_tree(text, path, grammars)
    query = _compile_query(*find_grammar(path, grammars), combined)
    uses = _find_captures(root, query) if _is_shallow(root) else None
    for line, _, rule, code in sorted(uses or ()):
        yield UnsafeUse(rule=rule, line=line, code=quote_code(code))
    if uses is None:
        yield UnsafeUse(rule=UNREADABLE.name, line=1, code="it is nested too deeply, or too large")


def _find_captures(root: Node, query: Query) -> set[tuple[int, int, str, str]] | None:
    """Return (line, byte offset, rule, code) of each use, or `None` if the search takes too long."""
    from tree_sitter import QueryCursor

    cursor = QueryCursor(query, match_limit=MAX_QUERY_STATES)
    deadline = time.monotonic() + QUERY_TIMEOUT_S
    uses: set[tuple[int, int, str, str]] = set()
    for start in range(0, root.end_byte, QUERY_WINDOW_BYTES):
        cursor.set_byte_range(start, start + QUERY_WINDOW_BYTES)
        for rule, nodes in cursor.captures(root).items():
            if "." in rule:  # the other captures serve conditions
                uses |= {
                    (node.start_point[0] + 1, node.start_byte, rule, get_node_text(node)) for node in nodes
                }
        if time.monotonic() > deadline or cursor.did_exceed_match_limit:
            return None
    return uses


def _is_shallow(root: Node) -> bool:
    """Return whether no node is nested too deeply, and no error node has too many children."""
    cursor, depth, has_errors = root.walk(), 0, root.has_error
    while True:
        if (
            has_errors
            and cursor.node
            and cursor.node.type == "ERROR"
            and cursor.node.child_count > MAX_ERROR_CHILDREN
        ):
            return False
        if cursor.goto_first_child():
            depth += 1
            if depth > MAX_NODE_DEPTH:
                return False
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return True
            depth -= 1


@cache
def _compile_query(package: str, name: str, source: str) -> Query:
    from tree_sitter import Query

    return Query(load_grammar(package, name), source)
