"""Find new methods that convert an object to a string, where tests compare two objects by such strings.

Objects that differ then look alike if the new string leaves the difference out, as with a `String` method of Go that
rounds an amount. Where a test expects a literal string, it tests the method itself.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from suture.core.records import CapabilityUse
from suture.mutation.tree_sitter.syntax_tree import find_enclosing, get_field, get_text, is_same_node, walk
from suture.mutation.tree_sitter.value_kinds import has_grammar, parse_source_tree
from suture.project.languages import detect_file_languages
from suture.project.languages.node_resolution import SCRIPT_EXTENSIONS
from suture.project.workspace import decode_text, is_test_file

if TYPE_CHECKING:
    from tree_sitter import Node

INSPECTION = r"(?:util\.)?(?:inspect|format)"
RENDERERS = {
    **dict.fromkeys(("String", "GoString", "Format", "Error"), r"fmt\.Sprint\w*"),
    **dict.fromkeys(("MarshalJSON", "MarshalText"), r"json\.Marshal\w*"),
    "toString": "String",
    "toJSON": r"JSON\.stringify",
    **dict.fromkeys(("[inspect.custom]", "[util.inspect.custom]"), INSPECTION),
    "[Symbol.for('nodejs.util.inspect.custom')]": INSPECTION,
}
"""Method -> what calls it to convert an object to a string."""
METHODS = ("method_declaration", "method_definition")
CLASSES = ("class_declaration", "class", "abstract_class_declaration")


def find_text_methods(before: Mapping[str, bytes], after: Mapping[str, str]) -> Iterator[CapabilityUse]:
    """Yield each new method that converts objects to strings by which a test compares two of them.

    Args:
        before: The task's files, path -> content.
        after: The changed files, path -> text.
    """
    for path, text in sorted(after.items()):
        language = next(iter(detect_file_languages((path,))), None)
        if not path.endswith((".go", *SCRIPT_EXTENSIONS)) or path not in before:
            continue
        if language is None or not has_grammar(language):
            continue
        old_text = decode_text(before[path])
        if is_test_file(path) or not any(_count(name, text) > _count(name, old_text) for name in RENDERERS):
            continue
        known = {key for key, _ in _list_methods(parse_source_tree(old_text, path, language))}
        for (kind, name), method in _list_methods(parse_source_tree(text, path, language)):
            is_new = (kind, name) not in known and re.search(rf"\b{kind}\b", old_text) is not None
            if is_new and _leaves_out_fields(method, kind) and _is_compared(path, kind, name, before):
                yield CapabilityUse(
                    code="loosens_comparison",
                    path=path,
                    line=method.start_point[0] + 1,
                    name=f"{kind}.{name}",
                )


def _count(name: str, text: str) -> int:
    return text.count(f"{name}(")


def _list_methods(root: Node) -> Iterator[tuple[tuple[str, str], Node]]:
    """Yield (type, name) and the node of each method that converts an object to a string."""
    for node in walk(root):
        name = get_text(node.child_by_field_name("name")).replace('"', "'") if node.type in METHODS else ""
        if name not in RENDERERS:
            continue
        holder = node.child_by_field_name("receiver") or find_enclosing(node, (*CLASSES, "object"))
        parts = walk(holder) if holder is not None and holder.type != "object" else ()
        kinds = (
            ("type_identifier", "identifier") if node.type == "method_definition" else ("type_identifier",)
        )
        kind = next((get_text(part) for part in parts if part.type in kinds), "")
        if kind:
            yield (kind, name), node


def _leaves_out_fields(method: Node, kind: str) -> bool:
    """Return whether a method reads fields of its object itself, but not all that the object surely has.

    A method that passes its object on, or calls another method, may write all of them there. A Go type that is no
    structure has no fields: the methods of enumerations return names.
    """
    receiver = method.child_by_field_name("receiver")
    body = method.child_by_field_name("body")
    if body is None:
        return False
    if receiver is not None:
        name = next((get_text(part) for part in walk(receiver) if part.type == "identifier"), "")
        fields = _list_go_fields(method, kind)
    else:
        name, fields = "this", _list_class_fields(method)
    objects = [part for part in walk(body) if part.type in ("identifier", "this") and get_text(part) == name]
    read = {_get_member(part) for part in objects}
    return read < fields


def _list_go_fields(method: Node, kind: str) -> set[str]:
    root = method
    while root.parent is not None:
        root = root.parent
    for node in walk(root):
        type_node = node.child_by_field_name("type") if node.type == "type_spec" else None
        if type_node is not None and get_text(node.child_by_field_name("name")) == kind:
            declarations = (
                type_node.named_children[0].named_children if type_node.type == "struct_type" else ()
            )
            return {get_text(part) for field in declarations for part in field.children_by_field_name("name")}
    return set()


def _list_class_fields(method: Node) -> set[str]:
    """Return the fields that the code of a class assigns, without private ones, which no default conversion shows."""
    holder = find_enclosing(method, CLASSES)
    nodes = walk(holder) if holder is not None else ()
    assigned = [get_field(node, "left") for node in nodes if node.type == "assignment_expression"]
    owners = [left.child_by_field_name("object") for left in assigned if left is not None]
    names = [_get_member(owner) for owner in owners if owner is not None and owner.type == "this"]
    return {name for name in names if name and not name.startswith("#")}


def _get_member(owner: Node) -> str:
    """Return the member of an object that is read or assigned; empty if the object itself is used."""
    above = owner.parent
    if above is None or not is_same_node(get_field(above, "object", "operand"), owner):
        return ""
    return get_text(get_field(above, "property", "field"))


def _is_compared(path: str, kind: str, name: str, files: Mapping[str, bytes]) -> bool:
    """Return whether a test compares two objects by their strings, and names their type."""
    folder, renderer = posixpath.dirname(path), RENDERERS[name]
    pair = re.compile(rf"\b{renderer}\([^\n]*(?:[!=]==?\s*|,\s*|\.\w+\(\s*){renderer}\(")
    assigned = re.compile(rf"\b(\w+)(?:, \w+)*\s*:?=\s*{renderer}\(")
    for test, content in files.items():
        is_near = not path.endswith(".go") or posixpath.dirname(test) == folder
        if not is_near or not is_test_file(test) or kind.encode() not in content:
            continue
        text = decode_text(content)
        names = "|".join({*assigned.findall(text)})
        both = rf"\b({names})\b\)?\s*(?:[!=]==?|,)\s*(?:string\()?(?!\1\b)(?:{names})\b"
        if pair.search(text) or (names and re.search(both, text)):
            return True
    return False
