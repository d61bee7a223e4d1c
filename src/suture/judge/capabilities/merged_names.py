"""Find names of a JavaScript, TypeScript or Go file that a change makes another name's value, or a kind of it.

A test that expects one of two errors, states or classes then accepts the other one.

Find what the code of a Go package uses of its tests: names that only `_test.go` files declare.

They share the package while the tests run. Without the tests such code does not compile.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from suture.core.records import CapabilityUse
from suture.judge.capabilities.use import MERGED_NAME, Use
from suture.mutation.tree_sitter.syntax_tree import get_text, walk
from suture.mutation.tree_sitter.value_kinds import has_grammar, parse_source_tree
from suture.project.workspace import decode_text

if TYPE_CHECKING:
    from tree_sitter import Node


DECLARATION = re.compile(
    r"^[ \t]*(?:export[ \t]+)?(?:(?:var|const|let)[ \t]+)?(\w+)(?:[ \t]+error)?[ \t]*=[ \t]*(\S.*?)[ \t]*;?[ \t]*$",
    re.MULTILINE,
)
"""A declaration in one line, outside of functions or in a group of Go's."""
CLASS = re.compile(
    r"^(?:export[ \t]+(?:default[ \t]+)?)?class[ \t]+(\w+)[ \t]+extends[ \t]+(?:\(\d+,[ \t]*)?(\w+)",
    re.MULTILINE,
)
CLASS_VALUE = re.compile(r"class(?:[ \t]+\w+)?[ \t]+extends[ \t]+(?:\(\d+,[ \t]*)?(\w+)\)?.*")
"""A class expression, as in `const Denied = class extends NotFound {}`."""
TEXT = re.compile(r"([\"'`])[^\"'`]+\1")
OBJECT = re.compile(
    r"^(?:export[ \t]+)?const[ \t]+(\w+)[ \t]*=[ \t]*(?:Object\.freeze\()?\{([^{}]*)\}", re.MULTILINE
)
"""An object of constants, as in `const STATUS = { OPEN: 'open' }`."""
MEMBER = re.compile(r"(\w+)[ \t]*:[ \t]*([\"'`][^\"'`]+[\"'`])")
EXPORTED = re.compile(
    r"^(?:module\.)?exports(?:\.(\w+))?[ \t]*=[ \t]*(?:exports\.)?(\w+|\{[^{}]*\});?[ \t]*$|^export[ \t]*(\{[^{}]*\})",
    re.MULTILINE,
)
EXPORTED_PAIR = re.compile(r"(\w+)[ \t]*:[ \t]*(\w+)|(\w+)[ \t]+as[ \t]+(\w+)")
"""A name that a module exports under the name of another value: `{ Denied: NotFound }`, `{ NotFound as Denied }`."""
PROTOTYPE = re.compile(
    r"^Object\.setPrototypeOf\((\w+)(?:\.prototype)?,[ \t]*(\w+)(?:\.prototype)?\)", re.MULTILINE
)
INITIALISED = re.compile(r"^func init\(\) \{([^{}]*)\}", re.MULTILINE)
WRAPPED = re.compile(r"(?:fmt\.Errorf|errors\.Join)\((.*)\)")
"""A call of Go whose result is also each error that it gets."""


def find_merged_names(before: str, after: str) -> Iterator[Use]:
    """Yield each name that both versions declare, and of which only the new one says that it is another of them."""
    old, new = _read_declarations(before), _read_declarations(after)
    for name, (value, line) in new.items():
        if name not in old or old[name][0] == value:
            continue
        others = (set(old) & set(new)) - {name}
        alias = new.get(value, ("", 0))[0] if value not in old else ""
        value = alias if alias in others else value
        wrapped, derived = WRAPPED.fullmatch(value), CLASS_VALUE.fullmatch(value)
        parts = (
            set(re.findall(r"\w+", wrapped[1]))
            if wrapped is not None
            else {derived[1] if derived is not None else value}
        )
        twins = [other for other in others if TEXT.fullmatch(value) and new[other][0] == value]
        is_new_twin = any(old[other][0] != old[name][0] and _share_group(name, other) for other in twins)
        is_new_twin = is_new_twin and ("." not in name or _spells_itself(name, old[name][0]))
        is_merged = parts & others and not set(re.findall(r"\w+", old[name][0])) & parts & others
        if is_merged or is_new_twin:
            yield _get_use(name, line)
    old_pairs = _read_second_names(before)
    for name, (value, line) in _read_second_names(after).items():
        if {name, value} <= old.keys() and name != value and old_pairs.get(name, ("",))[0] != value:
            yield _get_use(name, line)


def _share_group(name: str, other: str) -> bool:
    """Return whether two constants are members of the same object, or neither is a member."""
    return name.rpartition(".")[0] == other.rpartition(".")[0]


def _spells_itself(name: str, value: str) -> bool:
    """Return whether the value of a constant is its name, as in `OPEN: 'open'`; a lookup table holds other values."""
    own = name.rpartition(".")[2]
    return re.sub(r"[\W_]", "", own).lower() == re.sub(r"[\W_]", "", value).lower()


def _get_use(name: str, line: int) -> Use:
    shown = f"{MERGED_NAME}{name}"
    return Use(code="loosens_comparison", name=shown, line=line, key=shown)


def _read_second_names(text: str) -> dict[str, tuple[str, int]]:
    """Return each name to which code gives another one's value or class after both are declared -> (it, line)."""
    found: dict[str, tuple[str, int]] = {}
    for match in EXPORTED.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match[1] and match[2] and not match[2].startswith("{"):
            found[match[1]] = (match[2], line)
        for key, value, original, alias in EXPORTED_PAIR.findall(match[2] or match[3] or ""):
            found[key or alias] = (value or original, line)
    for match in PROTOTYPE.finditer(text):
        found[match[1]] = (match[2], text.count("\n", 0, match.start()) + 1)
    for match in INITIALISED.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        found |= {
            name: (value, line)
            for name, value in re.findall(
                r"^\s*(\w+)(?:, \w+)* = (\w+)(?:, .*?)?\s*$", match[1], re.MULTILINE
            )
        }
    return found


def _read_declarations(text: str) -> dict[str, tuple[str, int]]:
    """Return name -> (value or base class, line); the first declaration of a name counts."""
    found: dict[str, tuple[str, int]] = {}
    for match in (*DECLARATION.finditer(text), *CLASS.finditer(text)):
        is_inner = match[0][:1] in " \t" and not re.search(
            r"^(?:var|const)\s*\($", text[: match.start()], re.MULTILINE
        )
        if not is_inner:
            found.setdefault(match[1], (match[2], text.count("\n", 0, match.start()) + 1))
    for match in OBJECT.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        found |= {f"{match[1]}.{key}": (value, line) for key, value in MEMBER.findall(match[2])}
    return found


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
        if (name := get_text(node)) in borrowed:
            borrowed.remove(name)
            yield CapabilityUse(code="reads_tests", path=path, line=node.start_point[0] + 1, name=name)


def _find_foreign_names(text: str, path: str) -> list[Node]:
    """Return the names in a file that are not members, keys or local names."""
    nodes = list(walk(parse_source_tree(text, path, "go")))
    local = {
        get_text(part)
        for node in nodes
        for field in node.children_by_field_name(DECLARING_FIELDS.get(node.type, ""))
        for part in walk(field)
        if part.type in NAMES
    }
    return [
        node for node in nodes if node.type in NAMES and not _is_key(node) and get_text(node) not in local
    ]


def _is_key(node: Node) -> bool:
    """Return whether a name is the key of a literal, such as `Name` in `Item{Name: "x"}`."""
    element = node.parent
    return (
        element is not None
        and element.type == "literal_element"
        and element.next_sibling is not None
        and element.next_sibling.type == ":"
    )


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
