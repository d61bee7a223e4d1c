"""Find calls of a Go file that write at a path inside the project, as far as the path's text shows.

A relative path is inside the project, because `go test` runs in the package's folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from suture.mutation.tree_sitter.node_kinds import STRINGS
from suture.project.tuning import MAX_NAME_PARTS

if TYPE_CHECKING:
    from tree_sitter import Node

WRITTEN_ARGUMENTS = {
    **dict.fromkeys(("WriteFile", "Create", "Remove", "RemoveAll", "Truncate", "Chmod"), (0,)),
    **dict.fromkeys(("Link", "Symlink"), (1,)),
    "Rename": (0, 1),
}
"""Function of `os` -> the positions of the paths that it changes."""
WRITING_FLAGS = ("O_WRONLY", "O_RDWR", "O_CREATE", "O_APPEND", "O_TRUNC")
PATH_FUNCTIONS = ("Join", "Clean", "FromSlash", "Abs", "Dir")
"""Functions of `filepath` whose result is in the project if their first argument is."""


def find_written_path(node: Node, name: str, values: Mapping[str, Node]) -> str | None:
    """Return the source of a path inside the project at which a call writes, or `None`.

    Args:
        name: The called function, such as `os.Create`.
        values: Name of a constant or variable of the file -> its first value.
    """
    package, _, function = name.partition(".")
    arguments = node.child_by_field_name("arguments")
    given = arguments.named_children if arguments is not None else []
    if package not in ("os", "ioutil"):
        return None
    positions = WRITTEN_ARGUMENTS.get(function, ())
    if function == "OpenFile" and len(given) > 1 and any(flag in _text(given[1]) for flag in WRITING_FLAGS):
        positions = (0,)
    paths = [given[position] for position in positions if position < len(given)]
    return next((_text(path) for path in paths if _is_in_project(path, values)), None)


def _is_in_project(node: Node | None, values: Mapping[str, Node], depth: int = 0) -> bool:
    if node is None or depth > MAX_NAME_PARTS:
        return False
    if node.type in STRINGS:
        return _text(node)[1:2] not in ("/", "~", "%", "{", "<", _text(node)[:1])
    if node.type == "identifier":
        return _is_in_project(values.get(_text(node)), values, depth + 1)
    if node.type == "binary_expression":
        return _is_in_project(node.child_by_field_name("left"), values, depth + 1)
    function = node.child_by_field_name("function") if node.type == "call_expression" else None
    if function is not None and _text(function).rpartition(".")[2] in PATH_FUNCTIONS:
        arguments = node.child_by_field_name("arguments")
        first = arguments.named_children[:1] if arguments is not None else []
        return bool(first) and _is_in_project(first[0], values, depth + 1)
    return False


def _text(node: Node) -> str:
    return node.text.decode("utf-8", "replace") if node.text is not None else ""
