"""Decide whether the source of a JavaScript test catches a failed assertion itself, so that no failure was lost."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from suture.mutation.tree_sitter.syntax_tree import walk
from suture.mutation.tree_sitter.value_kinds import get_syntax, has_grammar, parse_source_tree
from suture.project.languages import detect_file_languages

if TYPE_CHECKING:
    from tree_sitter import Node

    from suture.core.records import Language

LOST_ASSERTION = "the failed assertion at "
"""Prefix of the name of a failed assertion that no test shows. Its places follow: `path:line path:line`."""
CATCHING_CALL = re.compile(
    r"throws|rejects?|catch|allSettled|any|toThrow\w*|toReject\w*|fails|failing|soft|\w*(?i:wait|retry|retries|poll"
    r"|until|eventually|attempt|property)\w*"
)
"""Functions that receive a failure without ending the test. Some repeat what has failed."""
CATCHING_TEXT = re.compile(
    rf"\bcatch\b|\b(?:{CATCHING_CALL.pattern})\b\s*\(|\b(?:allowFail|fails|failing|todo)\b"
)
FUNCTIONS = ("function_declaration", "function_expression", "arrow_function", "method_definition")


class CaughtAssertions:
    """The lines of a project's tests whose failed assertions the tests themselves catch, expect or repeat.

    Args:
        texts: Path -> text of the tests, as the user wrote them.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def contain(self, name: str) -> bool:
        """Return whether a failed assertion is caught, or whether its places say nothing.

        Args:
            name: `LOST_ASSERTION` and the places of the assertion, relative to the project.
        """
        places = [place.rpartition(":") for place in name.removeprefix(LOST_ASSERTION).split()]
        return not places or any(self._catches(path, int(line)) for path, _, line in places)

    def _catches(self, path: str, line: int) -> bool:
        spans = self._spans.get(path)
        lines = self._texts.get(path, "").splitlines()
        is_known = spans is not None and 0 < line <= len(lines)
        if spans is None or not is_known:  # only the whole source tells
            return any(CATCHING_TEXT.search(text) for text in self._texts.values())
        return any(first <= line <= last for first, last in spans)

    @cached_property
    def _spans(self) -> dict[str, list[tuple[int, int]]]:
        """Path -> (first line, last line) of what catches."""
        roots = {path: root for path, text in self._texts.items() if (root := _parse(path, text)) is not None}
        catching = {path: list(_find_catching_nodes(root)) for path, root in roots.items()}
        # A function that is used where failures are caught may fail wherever it is defined.
        used = {
            _text(part)
            for nodes in catching.values()
            for node in nodes
            for part in walk(node)
            if part.type in ("identifier", "property_identifier")
        }
        return {
            path: [
                (node.start_point[0] + 1, node.end_point[0] + 1)
                for node in (*catching[path], *_find_functions(root, used))
            ]
            for path, root in roots.items()
        }


def _parse(path: str, text: str) -> Node | None:
    language: Language | None = next(iter(detect_file_languages((path,))), None)
    if language is None or not has_grammar(language) or not get_syntax(language).terminator:
        return None
    return parse_source_tree(text, path, language)


def _find_catching_nodes(root: Node) -> Iterator[Node]:
    for node in walk(root):
        if node.type == "try_statement" and node.child_by_field_name("handler") is not None:
            body = node.child_by_field_name("body")
            if body is not None:
                yield body
        elif node.type == "call_expression":
            names = list(_list_called_names(node))
            arguments = node.child_by_field_name("arguments")
            count = len(arguments.named_children) if arguments is not None else 0
            # `promise.then(use, recover)` catches too.
            if any(CATCHING_CALL.fullmatch(name) for name in names) or (names[:1] == ["then"] and count > 1):
                yield node


def _list_called_names(node: Node) -> Iterator[str]:
    """Yield the names of a chain of calls, the last one first: `toThrow`, `not`, `expect`."""
    function = node.child_by_field_name("function")
    while function is not None and function.type in ("member_expression", "call_expression"):
        if function.type == "member_expression":
            field = function.child_by_field_name("property")
            if field is not None:
                yield _text(field)
            function = function.child_by_field_name("object")
        else:
            function = function.child_by_field_name("function")
    if function is not None and function.type == "identifier":
        yield _text(function)


def _find_functions(root: Node, names: set[str]) -> Iterator[Node]:
    """Yield the functions with some names."""
    for node in walk(root):
        name = node.child_by_field_name("name") or node.child_by_field_name("key")
        value = node.child_by_field_name("value") if node.type in ("variable_declarator", "pair") else node
        if name is not None and value is not None and value.type in FUNCTIONS and _text(name) in names:
            yield value


def _text(node: Node) -> str:
    return node.text.decode("utf-8", "replace") if node.text is not None else ""
