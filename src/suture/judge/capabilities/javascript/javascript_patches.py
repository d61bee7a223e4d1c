"""Find where a JavaScript or TypeScript file changes the global object, a built-in object, or a prototype."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from suture.judge.capabilities.javascript.javascript_names import BUILT_IN, PATCHING_CALL, JavaScriptNames
from suture.judge.capabilities.use import PACKAGE_MEMBER
from suture.mutation.tree_sitter.syntax_tree import get_field, get_text, walk
from suture.mutation.tree_sitter.value_kinds import FUNCTIONS

if TYPE_CHECKING:
    from tree_sitter import Node

GLOBAL_OBJECT = r"(?:globalThis|global)"
CHANGEABLE = (
    rf"(?:{BUILT_IN}|Intl(?:\.\w+)?|Buffer|URL(?:SearchParams)?|Text(?:En|De)coder|performance|Event(?:Target)?"
    r"|Abort(?:Controller|Signal))"
)
"""Built-in objects whose change is a finding."""
PATCHED_TARGET = re.compile(
    rf"{GLOBAL_OBJECT}[.\[].*|(?:{GLOBAL_OBJECT}\.)?{CHANGEABLE}(?:\.prototype)?(?!\.\w+\()[.\[].+"
    r"|node:\w+\..+"
    r"|(?:\[\]|''|\"\"|\(.*\)|Object\.getPrototypeOf\(.*\)|Reflect\.getPrototypeOf\(.*\))[.\[].+"
    r"|.*\.__proto__[.\[].+|(?!this\.).*\.constructor\.prototype[.\[].+",
    re.DOTALL,
)
"""The left side of an assignment that changes the global object, a built-in object, a module of Node or a prototype
that is taken from a value."""
PATCHED_OBJECT = re.compile(
    rf"{GLOBAL_OBJECT}|(?:{GLOBAL_OBJECT}\.)?{CHANGEABLE}(?:\.prototype)?|node:\w+(?:\..+)?"
    r"|(?:\w+\.)?getPrototypeOf\(.*\)|.*\.__proto__|(?!this\.).*\.constructor\.prototype",
    re.DOTALL,
)
"""The object that `PATCHING_CALL` changes, such as `Array.prototype` or `util.inspect.defaultOptions`."""
OBSERVED_VARIABLE = r"(?:TZ|LANG|LANGUAGE|LC_\w+)"
"""An environment variable on which something that tests observe depends: dates, and localised strings."""
HARMLESS_TARGET = re.compile(
    rf"process\.(?:exitCode|title|argv|env(?!\.{OBSERVED_VARIABLE}$))\b.*|Error\.stackTraceLimit"
    r"|node:https?\.globalAgent.*",
    re.DOTALL,
)
"""The left side of an assignment that sets a status or a setting, and changes no code."""
DECLARATIONS = ("function_declaration", "class_declaration", "method_definition")


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
    changed = [argument for position, argument in enumerate(given) if position in positions]
    found = next((get_text(argument) for argument in changed if _is_built_in(argument, names)), "")
    return found or _find_observed_variable(function, given, names)


def _find_observed_variable(function: str, given: Sequence[Node], names: JavaScriptNames) -> str:
    """Return the variable of the environment that a call sets by which the runtime computes what tests observe."""
    if not PATCHING_CALL.fullmatch(function) or not given or names.resolve(given[0]) != "process.env":
        return ""
    if get_text(given[0]) in names.copies or _only_prepares_tests(given[0]):
        return ""
    variable = next(filter(re.compile(OBSERVED_VARIABLE).fullmatch, _list_keys(given, names)), "")
    return variable and f"process.env.{variable}"


def _list_keys(given: Sequence[Node], names: JavaScriptNames) -> list[str]:
    """Return the names of the properties that the arguments of a `PATCHING_CALL` show."""
    keys = [names.get_key(given[1])] if len(given) > 1 else []
    for argument in given[1:]:
        pairs = argument.named_children if argument.type == "object" else ()
        keys += [get_text(get_field(pair, "key", "name") or pair).strip("\"'") for pair in pairs]
    return [key for key in keys if key]


def find_package_members(node: Node, function: str, names: JavaScriptNames) -> Iterator[str]:
    """Yield each property that a node sets of an object that belongs to a package, as in `_.isEqual = () => true`.

    Args:
        node: An assignment or a call.
        function: The dotted path of the called function; empty for an assignment.
    """
    arguments = node.child_by_field_name("arguments")
    given = arguments.named_children if arguments is not None else []
    left = get_field(node, "left", "argument")
    if PATCHING_CALL.fullmatch(function) and given:
        package, keys = names.find_package(given[0]), _list_keys(given, names)
    elif left is not None and left.type in ("member_expression", "subscript_expression"):
        index = left.child_by_field_name("index")
        keys = [names.get_key(index) if index is not None else get_text(get_field(left, "property"))]
        package = names.find_package(left)
    else:
        return
    yield from (f"{key}{PACKAGE_MEMBER}{package}" for key in keys if package and key)


def is_changed_built_in(left: Node, target: str, names: JavaScriptNames) -> bool:
    """Return whether an assignment changes a built-in object.

    Args:
        left: The left side of the assignment.
        target: Its dotted path, or its source.
    """
    root = re.split(r"[.\[]", target)[0]
    is_own_name = re.split(r"[.\[]", get_text(left))[0] in names.copies or (
        root in names.declared and target == get_text(left)
    )
    if PATCHED_TARGET.fullmatch(target) and not HARMLESS_TARGET.fullmatch(target) and not is_own_name:
        return not target.startswith("process.env.") or not _only_prepares_tests(left)
    owner = left.child_by_field_name("object")
    return owner is not None and owner.type == "identifier" and _is_taken_prototype(owner, names)


def _only_prepares_tests(node: Node) -> bool:
    """Return whether the file of a node defines nothing that tests could call, as with `jest.config.js`.

    The function around the node does not count: Jest and Vitest call one as their global set-up.
    """
    root = node
    while root.parent is not None:
        root = root.parent
    return not any(
        (part.type in DECLARATIONS or (part.type == "variable_declarator" and _is_function(part)))
        and not part.start_byte <= node.start_byte < part.end_byte
        for part in walk(root)
    )


def _is_function(declarator: Node) -> bool:
    value = declarator.child_by_field_name("value")
    return value is not None and value.type in FUNCTIONS


def _is_built_in(node: Node, names: JavaScriptNames) -> bool:
    if get_text(node) in names.copies:
        return False
    path = names.resolve(node) or get_text(node)
    is_named = PATCHED_OBJECT.fullmatch(path) and not HARMLESS_TARGET.fullmatch(path)
    return bool(is_named) or _is_taken_prototype(node, names)


def _is_taken_prototype(node: Node, names: JavaScriptNames) -> bool:
    """Return whether a variable is the prototype of a value: `const p = Object.getPrototypeOf([])`."""
    value = names.assigned.get(get_text(node))
    return (
        value is not None
        and value.type != "identifier"
        and PATCHED_OBJECT.fullmatch(get_text(value)) is not None
    )
