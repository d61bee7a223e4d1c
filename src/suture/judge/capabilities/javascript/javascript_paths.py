"""Find calls of a JavaScript or TypeScript file that write at a path inside the project, as far as the text shows.

A relative path is inside the project, because tests run in its folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from suture.judge.capabilities.javascript.javascript_names import (
    JavaScriptNames,
    get_first_argument,
    get_string,
    get_text,
)
from suture.project.tuning import MAX_NAME_PARTS

if TYPE_CHECKING:
    from tree_sitter import Node

WRITTEN_ARGUMENTS = {
    **dict.fromkeys(("writeFile", "appendFile", "truncate", "rm", "rmdir", "unlink", "rename", "utimes"), 0),
    **dict.fromkeys(("createWriteStream", "outputFile", "outputJson", "writeJson"), 0),
    **dict.fromkeys(("copyFile", "cp", "symlink", "link"), 1),
}
"""Function of `fs` (and of `fs-extra`) -> the first of its arguments that is a path that it changes."""
FOLDER_NAMES = ("__dirname", "__filename", "import.meta.url", "import.meta.dirname", "import.meta.filename")
PATH_FUNCTIONS = (
    "node:path.join", "node:path.resolve", "node:path.normalize", "node:path.dirname", "node:path.relative",
    "node:url.fileURLToPath", "String",
)  # fmt: skip
"""Functions whose result is in the project if their first argument is."""


def find_written_path(node: Node, names: JavaScriptNames) -> str | None:
    """Return the source of a path inside the project at which a call writes, or `None`."""
    function = names.resolve(node.child_by_field_name("function"))
    if not function.startswith("node:fs."):
        return None
    name = function.removeprefix("node:fs.").removesuffix("Sync")
    arguments = node.child_by_field_name("arguments")
    values = arguments.named_children if arguments is not None else []
    if name == "open":
        flags = get_string(values[1]) if len(values) > 1 else ""
        paths = values[:1] if {*flags} & {*"wax+"} else []
    elif name in WRITTEN_ARGUMENTS:
        paths = values[
            WRITTEN_ARGUMENTS[name] : 2 if name in ("rename", "copyFile", "cp", "symlink", "link") else 1
        ]
    else:
        return None
    return next((get_text(path) for path in paths if _is_in_project(path, names)), None)


def _is_in_project(node: Node | None, names: JavaScriptNames, depth: int = 0) -> bool:
    """Return whether a path is relative or begins at the module's own file."""
    if node is None or depth > MAX_NAME_PARTS:
        return False
    text = get_text(node)
    if node.type in ("string", "template_string"):
        if text[1:3] == "${":
            return _is_in_project(node.named_children[0].named_children[0], names, depth + 1)
        return text[1:2] not in ("/", "~", "\\", "<", "{", "%", text[:1])
    if text in FOLDER_NAMES:
        return True
    if node.type == "identifier":
        return _is_in_project(names.assigned.get(text), names, depth + 1)
    if node.type == "binary_expression":
        return _is_in_project(node.child_by_field_name("left"), names, depth + 1)
    if node.type == "new_expression" and get_text(node.child_by_field_name("constructor")) == "URL":
        return "import.meta.url" in text
    if node.type == "call_expression":
        function = names.resolve(node.child_by_field_name("function"))
        is_path = function in PATH_FUNCTIONS and _is_in_project(get_first_argument(node), names, depth + 1)
        return is_path or function == "process.cwd"
    return False
