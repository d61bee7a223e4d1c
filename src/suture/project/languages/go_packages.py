"""Find out whether files of Go can be compiled as one package."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from suture.project.languages.calling.go_calls import GO_GRAMMARS
from suture.project.languages.reports import parse_tree

if TYPE_CHECKING:
    from tree_sitter import Node

DECLARATIONS = frozenset(("function_declaration", "type_spec", "type_alias", "const_spec", "var_spec"))
"""The syntax nodes that declare a name of a package."""
REPEATABLE_NAMES = frozenset(("init", "_"))
"""Names that a package may declare several times."""


def fits_go_package(test: str, others: Iterable[str]) -> bool:
    """Return whether a test belongs to the package of other files, and declares none of their names.

    A package cannot declare a name that one of its files imports either.
    """
    package, declared, imported = _list_names(test)
    for other in others:
        other_package, other_declared, other_imported = _list_names(other)
        clashes = declared & (other_declared | other_imported) | imported & other_declared
        if other_package != package or clashes - REPEATABLE_NAMES:
            return False
    return True


def _list_names(source: str) -> tuple[str, set[str], set[str]]:
    """Return the package of a file, the names that it declares, and the names of the packages that it imports."""
    package, declared, imported = "", set(), set()
    for node in parse_tree(source, "", GO_GRAMMARS).children:
        # A declaration in parentheses has a list of specifications.
        for part in (node, *node.children, *(part for child in node.children for part in child.children)):
            if part.type == "package_clause":
                package = _get_text(part.children[-1])
            elif part.type == "import_spec":
                alias_or_path = _get_text(part).split()[0]
                imported.add(alias_or_path.strip('"`').rpartition("/")[2])
            elif part.type in DECLARATIONS:
                declared |= {_get_text(name) for name in part.children_by_field_name("name")}
    return package, declared, imported


def _get_text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")
