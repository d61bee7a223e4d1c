"""Find classes of a JavaScript or TypeScript file whose objects a change lets look alike to tests.

Deep equality (`toEqual`, `deepStrictEqual`) sees the enumerable properties of an object. It sees no private fields, no
getters of a class, and nothing that a `WeakMap` or a variable of the module holds for the object.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from suture.judge.capabilities.javascript.javascript_names import get_string
from suture.judge.capabilities.use import Use
from suture.mutation.tree_sitter.syntax_tree import get_field, get_text, walk

if TYPE_CHECKING:
    from tree_sitter import Node

CLASSES = ("class_declaration", "class", "abstract_class_declaration")
CONTENT_CLASS = re.compile(r"(?:globalThis\.)?(?:Date|RegExp|Number|String|Boolean|Promise|WeakMap|WeakSet)")
"""A base class whose objects tests compare by their content, or not at all, and not by properties of a subclass."""
NAMES = ("identifier", "shorthand_property_identifier", "shorthand_property_identifier_pattern", "this")
PROPERTY_PARAMETERS = ("accessibility_modifier", "readonly", "override_modifier")
"""What makes a parameter of a TypeScript constructor a property of the object."""
HIDING_CALL = re.compile(r"(?:Object|Reflect)\.(?:definePropert(?:y|ies)|setPrototypeOf)|.*\.set")
"""A call with `this` that leaves no visible property."""


@dataclass
class _Function:
    """A constructor, or another function that stores what it gets in its object.

    Attributes:
        line: Its line, from 1.
        given: The names that each parameter declares.
        stored: Positions of the parameters on which visible properties of the object depend.
        assigns: Whether it assigns a visible property of its object.
        hidden: Whether it stores something for the object out of sight.
    """

    line: int
    given: list[set[str]]
    stored: set[int] = field(default_factory=set[int])
    assigns: bool = False
    hidden: bool = False


def find_hidden_fields(before: Node, after: Node) -> Iterator[Use]:
    """Yield each class and function of both versions whose objects no longer show what they get."""
    old, new = _list_functions(before), _list_functions(after)
    found: set[str] = set()
    for name, function in new.items():
        owner, _, method = name.partition(".")
        was = old.get(name)
        if was is None or owner in found:
            continue
        lost = [at for at in was.stored - function.stored if at < len(function.given)]
        if lost and (method == "constructor" or (was.assigns and (function.hidden or not method))):
            found.add(owner)
            yield _get_use(f"{owner} without its fields", function.line)
    bases, old_bases = _list_bases(after), _list_bases(before)
    for name, (base, line) in bases.items():
        if name in old_bases and old_bases[name][0] != base and CONTENT_CLASS.fullmatch(base):
            yield _get_use(f"{name} compared as {base}", line)
    plain = _list_plain_properties(before) - _list_plain_properties(after)
    for name, line in _list_defined_properties(after).items():
        if name in plain:
            yield _get_use(f"hidden property {name}", line)


def _get_use(name: str, line: int) -> Use:
    return Use(code="loosens_comparison", name=name, line=line, key=name)


def _list_functions(root: Node) -> dict[str, _Function]:
    """Return `Class.method`, or the name of a function without a class -> what it stores in its object."""
    found: dict[str, _Function] = {}
    for node in walk(root):
        name = get_text(node.child_by_field_name("name"))
        if node.type == "method_definition":
            holder = node.parent.parent if node.parent is not None else None
            owner = _name_class(holder) if holder is not None and holder.type in CLASSES else ""
            name = f"{owner}.{name}" if owner else ""
        elif node.type != "function_declaration":
            continue
        if name:
            found.setdefault(name, _read_function(node))
    return found


def _name_class(node: Node) -> str:
    name = node.child_by_field_name("name")
    if name is None and node.parent is not None:  # `const Point = class {}`
        name = get_field(node.parent, "name", "left")
    return get_text(name)


def _list_bases(root: Node) -> dict[str, tuple[str, int]]:
    """Return class -> (its base class, the class's line); the base is empty if there is none."""
    found: dict[str, tuple[str, int]] = {}
    for node in walk(root):
        if node.type in CLASSES and node.is_named:
            heritage = next((part for part in node.named_children if part.type == "class_heritage"), None)
            base = get_text(heritage).removeprefix("extends").split("{")[0].strip()
            found.setdefault(_name_class(node), (base, node.start_point[0] + 1))
    return found


def _read_function(node: Node) -> _Function:
    parameters = node.child_by_field_name("parameters")
    given = parameters.named_children if parameters is not None else []
    read = _Function(line=node.start_point[0] + 1, given=[_list_names(part) for part in given])
    for at, part in enumerate(given):
        if any(child.type in PROPERTY_PARAMETERS or get_text(child) == "readonly" for child in part.children):
            read.stored.add(at)
    body = node.child_by_field_name("body")
    parts = list(walk(body)) if body is not None else []
    shown: set[str] = set()
    for part in parts:
        names, is_hidden = _read_store(part)
        shown |= names
        read.assigns = read.assigns or (part.type == "assignment_expression" and bool(names))
        read.hidden = read.hidden or is_hidden
    # What a visible value was computed from, over several variables.
    local = {name for part in parts if part.type == "variable_declarator" for name in _list_names(part)}
    variables = [
        (_list_names(target), _list_names(value))
        for part in parts
        if part.type in ("variable_declarator", "assignment_expression")
        and (target := get_field(part, "name", "left")) is not None
        and (value := get_field(part, "value", "right")) is not None
        and (target.type not in ("member_expression", "subscript_expression") or _list_names(target) & local)
    ]
    for _ in variables:
        shown |= {name for targets, values in variables if targets & shown for name in values}
    read.stored |= {at for at, names in enumerate(read.given) if names & shown}
    return read


def _list_names(node: Node) -> set[str]:
    return {get_text(part) for part in walk(node) if part.type in NAMES} - {"this"}


def _read_store(node: Node) -> tuple[set[str], bool]:
    """Return the names from which a node computes what an object shows, and whether it hides something."""
    if node.type in ("assignment_expression", "augmented_assignment_expression"):
        target, value = node.child_by_field_name("left"), node.child_by_field_name("right")
        if target is None or value is None:
            return set(), False
        if any(part.type == "this" for part in walk(target)):
            is_private = "#" in get_text(target)
            return (set(), True) if is_private else (_list_names(value), False)
        return set(), target.type != "identifier"
    if node.type != "call_expression":
        return set(), False
    called = get_text(node.child_by_field_name("function"))
    arguments = node.child_by_field_name("arguments")
    given = list(arguments.named_children) if arguments is not None else []
    has_object = any(part.type == "this" for part in given)
    if has_object and HIDING_CALL.fullmatch(called) and "enumerable: true" not in get_text(arguments):
        return set(), True
    # A method of the object, a base class, or a function that gets the object, probably stores what it gets.
    keeps = has_object or called == "super" or called.startswith(("this.", "super."))
    is_private = called.startswith("this.#")
    return (
        {name for part in given for name in _list_names(part)} if keeps and not is_private else set()
    ), is_private


def _list_plain_properties(root: Node) -> set[str]:
    """Return the names of the properties that a file sets in an ordinary way."""
    found: set[str] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type in ("assignment_expression", "augmented_assignment_expression"):
            target = node.child_by_field_name("left")
            found.add(get_text(target.child_by_field_name("property")) if target is not None else "")
        elif node.type in ("pair", "field_definition", "public_field_definition"):
            found.add(get_text(get_field(node, "key", "property", "name")).strip("'\""))
        elif node.type == "shorthand_property_identifier":
            found.add(get_text(node))
        is_hidden = node.type == "call_expression" and bool(_list_hidden_keys(node))
        stack += [] if is_hidden else node.children
    return found


def _list_defined_properties(root: Node) -> dict[str, int]:
    """Return each name that a file gives to a hidden property of an object, or to a getter of a class -> its line."""
    found: dict[str, int] = {}
    for node in walk(root):
        names = _list_hidden_keys(node) if node.type == "call_expression" else []
        if node.type == "method_definition" and any(child.type == "get" for child in node.children):
            is_static = any(child.type == "static" for child in node.children)
            if node.parent is not None and node.parent.type == "class_body" and not is_static:
                names = [get_text(node.child_by_field_name("name"))]
        for name in names:
            found.setdefault(name, node.start_point[0] + 1)
    return found


def _list_hidden_keys(call: Node) -> list[str]:
    """Return the names of the properties that a call gives to an object, or to its prototype, out of sight."""
    called, arguments = get_text(call.child_by_field_name("function")), call.child_by_field_name("arguments")
    given = arguments.named_children if arguments is not None else []
    if called in ("Object.defineProperty", "Reflect.defineProperty") and len(given) > 2:
        is_hidden = re.search(r"enumerable:\s*(?!false)", get_text(given[2])) is None
        return [get_string(given[1])] if is_hidden and get_string(given[1]) else []
    positions = {"Object.create": 0, "Object.defineProperties": 1, "Object.setPrototypeOf": 1}
    at = positions.get(called, len(given))
    parts = given[at].named_children if at < len(given) and given[at].type == "object" else []
    if called == "Object.defineProperties" and "enumerable: true" in get_text(arguments):
        return []
    return [
        get_text(get_field(part, "key") or part)
        for part in parts
        if part.type in ("pair", "shorthand_property_identifier")
    ]
