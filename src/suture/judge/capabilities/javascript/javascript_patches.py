"""Find where a JavaScript or TypeScript file changes the global object, a built-in object, or a prototype."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from suture.judge.capabilities.javascript.javascript_names import BUILT_IN, PATCHING_CALL, JavaScriptNames
from suture.mutation.tree_sitter.syntax_tree import get_text

if TYPE_CHECKING:
    from tree_sitter import Node

GLOBAL_OBJECT = r"(?:globalThis|global)"
PATCHED_TARGET = re.compile(
    rf"{GLOBAL_OBJECT}[.\[].*|(?:{GLOBAL_OBJECT}\.)?{BUILT_IN}(?:\.prototype)?[.\[].+"
    r"|node:\w+\..+"
    r"|(?:\[\]|''|\"\"|\(.*\)|Object\.getPrototypeOf\(.*\)|Reflect\.getPrototypeOf\(.*\))[.\[].+"
    r"|.*\.__proto__[.\[].+|(?!this\.).*\.constructor\.prototype[.\[].+",
    re.DOTALL,
)
"""The left side of an assignment that changes the global object, a built-in object, a module of Node or a prototype
that is taken from a value."""
PATCHED_OBJECT = re.compile(
    rf"{GLOBAL_OBJECT}|(?:{GLOBAL_OBJECT}\.)?{BUILT_IN}(?:\.prototype)?|(?:\w+\.)?getPrototypeOf\(.*\)|.*\.__proto__"
    r"|(?!this\.).*\.constructor\.prototype",
    re.DOTALL,
)
"""The object that `PATCHING_CALL` changes, such as `Array.prototype`."""
HARMLESS_TARGET = re.compile(
    r"process\.(?:exitCode|title|env|argv)\b.*|Error\.stackTraceLimit|node:https?\.globalAgent.*",
    re.DOTALL,
)
"""The left side of an assignment that sets a status or a setting, and changes no code."""


def find_changed_argument(call: Node, function: str, names: JavaScriptNames) -> str:
    """Return the built-in object among the arguments of a call which the called function changes; empty if none.

    Args:
        function: The dotted path of the called function. It may be one of the file's own.
    """
    arguments = call.child_by_field_name("arguments")
    given = arguments.named_children if arguments is not None else []
    # A method `set` of the file's own says nothing about its function `set`.
    _, dot, name = function.rpartition(".")
    positions = {0} if PATCHING_CALL.fullmatch(function) else names.patching.get(dot + name, set())
    given = [argument for position, argument in enumerate(given) if position in positions]
    return next((get_text(argument) for argument in given if _is_built_in(argument, names)), "")


def is_changed_built_in(left: Node, target: str, names: JavaScriptNames) -> bool:
    """Return whether an assignment changes a built-in object.

    Args:
        left: The left side of the assignment.
        target: Its dotted path, or its text.
    """
    root = re.split(r"[.\[]", target)[0]
    is_own_name = root in names.declared and target == get_text(left)
    if PATCHED_TARGET.fullmatch(target) and not HARMLESS_TARGET.fullmatch(target) and not is_own_name:
        return True
    owner = left.child_by_field_name("object")
    return owner is not None and owner.type == "identifier" and _is_taken_prototype(owner, names)


def _is_built_in(node: Node, names: JavaScriptNames) -> bool:
    is_named = PATCHED_OBJECT.fullmatch(names.resolve(node) or get_text(node)) is not None
    return is_named or _is_taken_prototype(node, names)


def _is_taken_prototype(node: Node, names: JavaScriptNames) -> bool:
    """Return whether a variable is the prototype of a value: `const p = Object.getPrototypeOf([])`."""
    value = names.assigned.get(get_text(node))
    return (
        value is not None
        and value.type != "identifier"
        and PATCHED_OBJECT.fullmatch(get_text(value)) is not None
    )
