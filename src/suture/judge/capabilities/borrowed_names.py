"""Find what the code of a Go package uses of its tests: names that only `_test.go` files declare.

They share the package while the tests run. Without the tests such code does not compile.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from suture.core.records import CapabilityUse
from suture.mutation.tree_sitter.node_kinds import has_grammar, parse_source_tree
from suture.mutation.tree_sitter.syntax_tree import walk
from suture.project.workspace import decode_text

if TYPE_CHECKING:
    from tree_sitter import Node

TEST_ENDING = "_test.go"
PACKAGE_NAME = re.compile(r"^package[ \t]+(\w+)", re.MULTILINE)
DECLARED = re.compile(r"^(?:func|var|const|type)[ \t]+(\w+)", re.MULTILINE)
GROUP = re.compile(r"^(?:var|const|type)[ \t]*\(\n(.*?)^\)", re.MULTILINE | re.DOTALL)
GROUPED = re.compile(r"^\t(\w+)", re.MULTILINE)
"""Names that a Go file declares for its package: alone, and each in a group."""
NAMES = ("identifier", "type_identifier")
DECLARING_FIELDS = {
    "parameter_declaration": "name",
    "variadic_parameter_declaration": "name",
    "short_var_declaration": "left",
    "range_clause": "left",
    "var_spec": "name",
    "const_spec": "name",
    "type_parameter_declaration": "name",
}
"""Node that declares local names -> the field that holds them."""


def find_borrowed_names(
    path: str, text: str, before: Mapping[str, bytes], after: Mapping[str, str]
) -> Iterator[CapabilityUse]:
    """Yield each name of its tests that a changed Go file uses and its package does not declare.

    Args:
        before: The task's files, path -> content.
        after: The changed files, path -> text.
    """
    if not path.endswith(".go") or path.endswith(TEST_ENDING):
        return
    package = {
        name: decode_text(content)
        for name, content in before.items()
        if name.endswith(".go") and posixpath.dirname(name) == posixpath.dirname(path)
    } | {
        name: changed for name, changed in after.items() if posixpath.dirname(name) == posixpath.dirname(path)
    }
    own = _find_declared(content for name, content in package.items() if not name.endswith(TEST_ENDING))
    tests = _find_declared(
        content
        for name, content in package.items()
        if name.endswith(TEST_ENDING) and _get_package(content) == _get_package(text)
    )
    borrowed = tests - own
    for node in _find_foreign_names(text, path) if borrowed and has_grammar("go") else ():
        if (name := _text(node)) in borrowed:
            borrowed.remove(name)
            yield CapabilityUse(code="reads_tests", path=path, line=node.start_point[0] + 1, name=name)


def _find_foreign_names(text: str, path: str) -> list[Node]:
    """Return the names in a file that are no members, keys or local names."""
    nodes = list(walk(parse_source_tree(text, path, "go")))
    local = {
        _text(part)
        for node in nodes
        for field in node.children_by_field_name(DECLARING_FIELDS.get(node.type, ""))
        for part in walk(field)
        if part.type in NAMES
    }
    return [node for node in nodes if node.type in NAMES and not _is_key(node) and _text(node) not in local]


def _is_key(node: Node) -> bool:
    """Return whether a name is the key of a literal, such as `Name` in `Item{Name: "x"}`."""
    element = node.parent
    return (
        element is not None
        and element.type == "literal_element"
        and element.next_sibling is not None
        and element.next_sibling.type == ":"
    )


def _text(node: Node) -> str:
    return node.text.decode("utf-8", "replace") if node.text is not None else ""


def _find_declared(texts: Iterable[str]) -> set[str]:
    names: set[str] = set()
    for text in texts:
        names.update(DECLARED.findall(text))
        for group in GROUP.findall(text):
            names.update(GROUPED.findall(group))
    return names


def _get_package(text: str) -> str:
    match = PACKAGE_NAME.search(text)
    return match[1] if match is not None else ""
