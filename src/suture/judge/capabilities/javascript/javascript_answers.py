"""Finds methods of JavaScript that tests ask about a value, and that answer the same whatever the value is.

Find calls of a JavaScript or TypeScript file that write at a path inside the project, as far as the source shows.

A relative path is inside the project, because tests run in its folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.judge.capabilities.javascript.javascript_names import (
    JavaScriptNames,
    get_first_argument,
    get_string,
)
from suture.judge.capabilities.use import Use
from suture.mutation.tree_sitter.syntax_tree import get_field, get_text, walk
from suture.mutation.tree_sitter.value_kinds import FUNCTIONS
from suture.project.tuning import MAX_NAME_PARTS

if TYPE_CHECKING:
    from tree_sitter import Node


ANSWERING_METHODS = (
    "every", "some", "includes", "has", "equals", "isEqual", "equal", "compare", "compareTo", "localeCompare",
    "indexOf", "lastIndexOf", "find", "findIndex", "findLast", "findLastIndex", "at", "get", "startsWith", "endsWith",
    "test", "match", "search", "isSubsetOf", "isSupersetOf", "isDisjointFrom", "join", "size", "length",
)  # fmt: skip
"""Methods of built-in classes, and common names of comparisons, of which tests check the result."""
COMPARING_METHODS = (
    "every", "some", "includes", "has", "equals", "isEqual", "equal", "startsWith", "endsWith", "isSubsetOf",
    "isSupersetOf", "isDisjointFrom",
)  # fmt: skip
"""Those that mean the same in other classes, too."""
EQUALITY_METHODS = ("equals", "isEqual", "equal", "eq", "compareTo")
"""Methods that compare their object with an argument."""
BUILT_IN_CLASS = re.compile(
    r"(?:Array|Map|Set|WeakMap|WeakSet|String|Number|Boolean|Date|RegExp|Promise|Function|Object|ArrayBuffer|DataView"
    r"|(?:Big)?(?:Int|Uint|Float)\d+(?:Clamped)?Array)\b"
)
NULL = re.compile(r"\b(?:null|undefined)\b")
LITERALS = ("true", "false", "number", "string", "null", "undefined")


def find_answer_uses(member: str, node: Node, names: JavaScriptNames) -> Iterator[Use]:
    """Yield the use if a node gives an object a method that answers a question by a constant.

    Args:
        member: The name of the method.
        node: A method, a property or an assignment with its function, or a property descriptor.
    """
    if member == "Symbol.iterator":
        reads_object = any(part.type in ("this", "super") for part in walk(node))
        target = get_text(node.child_by_field_name("left"))
        if (
            not reads_object
            and ".prototype" not in target
            and (target or node.type != "method_definition" or _extends_built_in(node))
        ):
            yield Use(code="loosens_comparison", name=member, line=node.start_point[0] + 1, key=member)
    if member in EQUALITY_METHODS and node.type == "method_definition" and _ignores_object(node):
        yield Use(
            code="loosens_comparison", name=member, line=node.start_point[0] + 1, key=f"{member} ignores"
        )
    if member not in ANSWERING_METHODS:
        return
    function = next((part for part in walk(node) if part.type in FUNCTIONS), None)
    if function is None:
        return
    values = list(_list_results(function))
    is_true = [value.type == "true" for value in values]
    if _extends_built_in(node):
        is_spoofed = any(is_true) or all(_is_constant(value, function, names) for value in values)
    else:
        is_spoofed = member in COMPARING_METHODS and bool(values) and all(is_true)
    if is_spoofed:
        yield Use(code="loosens_comparison", name=member, line=node.start_point[0] + 1, key=member)


def _ignores_object(method: Node) -> bool:
    """Return whether a comparison asks an object with data only for what it is, and not for what it contains."""
    parameters, body = method.child_by_field_name("parameters"), method.child_by_field_name("body")
    given = parameters.named_children[:1] if parameters is not None else []
    holder = method.parent
    if (
        not given
        or body is None
        or holder is None
        or "this." not in get_text(holder).replace(get_text(body), "")
    ):
        return False
    other = get_text(get_field(given[0], "pattern") or given[0])
    return not all(
        any(_reads_content(part) for part in walk(body) if get_text(part) == side) for side in (other, "this")
    )


def _reads_content(name: Node) -> bool:
    """Return whether the object with a name is asked for more than its class and the number of its properties."""
    above = name.parent
    if above is None or name.type not in ("this", "identifier"):
        return False
    if above.type in ("member_expression", "subscript_expression"):
        return get_text(above.child_by_field_name("property")) != "constructor"
    if above.type == "arguments":
        called = get_text(get_field(above.parent, "function")) if above.parent is not None else ""
        return not called.startswith(("Object.", "Reflect.", "typeof")) or ".length" not in get_text(
            above.parent.parent if above.parent is not None else None
        )
    if above.type == "binary_expression":
        sign = get_text(above.child_by_field_name("operator"))
        return sign not in ("instanceof", "in", "&&", "||", "??") and not NULL.search(get_text(above))
    return above.type in ("variable_declarator", "spread_element", "return_statement")


def _extends_built_in(node: Node) -> bool:
    holder = node.parent.parent if node.parent is not None and node.parent.type == "class_body" else None
    heritage = (
        next((part for part in holder.named_children if part.type == "class_heritage"), None)
        if holder is not None
        else None
    )
    text = get_text(heritage).removeprefix("extends").strip()
    return BUILT_IN_CLASS.match(text.removeprefix("globalThis.")) is not None


def _list_results(function: Node) -> Iterator[Node]:
    """Yield the values that a function returns."""
    body = function.child_by_field_name("body")
    if body is None:
        return
    if body.type != "statement_block":
        yield _unwrap(body)
        return
    stack = [body]
    while stack:
        node = stack.pop()
        if node.type == "return_statement" and node.named_children:
            yield _unwrap(node.named_children[0])
        stack += [child for child in node.named_children if child.type not in FUNCTIONS]


def _unwrap(node: Node) -> Node:
    """Return the part of an expression that is always its value: `true` of `(x, true)` and of `x || true`."""
    while node.named_children:
        sign = get_text(node.child_by_field_name("operator"))
        right = node.child_by_field_name("right")
        if node.type in ("parenthesized_expression", "sequence_expression"):
            node = node.named_children[-1]
        elif sign == "||" and right is not None and right.type == "true":
            node = right
        else:
            break
    return node


def _is_constant(value: Node, function: Node, names: JavaScriptNames) -> bool:
    """Return whether a value depends on nothing but the parameters, so not on the object that is asked."""
    parameters = {
        get_text(part)
        for part in walk(get_field(function, "parameters", "parameter") or function)
        if part.type == "identifier"
    }
    for part in walk(value):
        assigned = names.assigned.get(get_text(part))
        is_fixed = assigned is not None and assigned.type in LITERALS
        if part.type in ("this", "super"):
            return False
        if part.type == "identifier" and get_text(part) not in parameters and not is_fixed:
            return False
    return True


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
