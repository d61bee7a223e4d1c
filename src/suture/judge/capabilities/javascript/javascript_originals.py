"""Find where changed JavaScript or TypeScript code keeps a clock or a timer from before the tests replace it.

Tests replace such functions, as `mock.timers` of node:test does. Code that called one by its name, and now calls what
it stored when it was loaded, no longer meets the replacement.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from suture.core.records import CapabilityUse
from suture.judge.capabilities.javascript.javascript_names import (
    GLOBAL_OBJECTS,
    VALUE_FIELDS,
    JavaScriptNames,
)
from suture.judge.capabilities.kept_state import is_called_at_once
from suture.mutation.tree_sitter.syntax_tree import find_enclosing, get_field, get_text, walk
from suture.mutation.tree_sitter.value_kinds import FUNCTIONS, has_grammar, parse_source_tree
from suture.project.languages import detect_file_languages
from suture.project.languages.node_resolution import SCRIPT_EXTENSIONS
from suture.project.workspace import decode_text, is_test_file

if TYPE_CHECKING:
    from tree_sitter import Node

ORIGINALS = (
    "setTimeout", "setInterval", "setImmediate", "clearTimeout", "clearInterval", "clearImmediate", "queueMicrotask",
    "requestAnimationFrame", "Date.now", "performance.now", "process.nextTick", "process.hrtime", "fetch",
    "Math.random",
)  # fmt: skip
"""Global functions that tests often replace. Schemas and base classes name `Date` itself without a clock in mind."""
FAKE_TIMERS = re.compile(r"\bmock\.timers\b|[fF]akeTimers|\bfake-timers\b|\b[mM]ock[dD]ate\b|\btimekeeper\b")
TYPE_NODES = ("unary_expression", "type_query", "class_heritage", "extends_clause")
"""Nodes that use a name without its value, as `typeof` does, or as a base class."""
SCHEMA_NODES = ("pair", "array", "arguments")
"""Nodes in which `Date.now` is often a default of a schema: `{ type: Date, default: Date.now }`."""
UNTIMED = ("fetch", "Math.random")
"""Those that fake timers leave as they are."""
PREFIX = re.compile(rf"(?:{'|'.join(GLOBAL_OBJECTS)}|node:(?:timers|perf_hooks))\.")


def find_kept_originals(before: Mapping[str, bytes], after: Mapping[str, str]) -> Iterator[CapabilityUse]:
    """Yield each global function that changed code newly stores when it is loaded, and calls less often by its name.

    Functions that no test replaces are left out.

    Args:
        before: The task's files, path -> content.
        after: The changed files, path -> text.
    """
    texts = {
        path: text
        for path, text in after.items()
        if path.endswith(SCRIPT_EXTENSIONS) and not is_test_file(path)
    }
    if not any(re.search(rf"\b{re.escape(name)}\b", text) for name in ORIGINALS for text in texts.values()):
        return
    tests = [decode_text(content) for path, content in before.items() if is_test_file(path)]
    replaced = [name for name in ORIGINALS if any(_is_replaced(name, text) for text in tests)]
    if not replaced:
        return
    fewer: Counter[str] = Counter()
    kept: list[tuple[str, str, int]] = []
    for path, text in sorted(texts.items()):
        calls, stored = _read(path, text)
        old_calls, old_stored = _read(path, decode_text(before.get(path, b"")))
        fewer += old_calls - calls
        kept += [(path, name, line) for name, line in stored.items() if name not in old_stored]
    for path, name, line in kept:
        if name in replaced and name in fewer:
            yield CapabilityUse(code="hides_effects", path=path, line=line, name=f"original of {name}")


def _is_replaced(name: str, test: str) -> bool:
    """Return whether a test replaces a function: with all timers, or by its name."""
    owner, _, member = name.rpartition(".")
    given = rf"\(\s*[\w.]+,\s*[\"']{member}[\"']"
    owners = "|".join((*GLOBAL_OBJECTS, *([owner] if owner else [])))
    is_named = re.search(rf"{given}|\b(?:{owners})\.{member}\s*=[^=]", test) is not None
    return is_named or (name not in UNTIMED and FAKE_TIMERS.search(test) is not None)


def _read(path: str, text: str) -> tuple[Counter[str], dict[str, int]]:
    """Return how often a file calls each function by its name, and the line at which it stores one while it loads."""
    language = next(iter(detect_file_languages((path,))))
    calls: Counter[str] = Counter()
    stored: dict[str, int] = {}
    if not has_grammar(language):
        return calls, stored
    nodes = list(walk(parse_source_tree(text, path, language)))
    names = JavaScriptNames(nodes)
    for node in nodes:
        if node.type in ("call_expression", "new_expression"):
            called = get_text(get_field(node, "function", "constructor"))
            calls[PREFIX.sub("", called)] += called.partition(".")[0] not in names.declared
        for name in _list_stored(node, names):
            stored.setdefault(name, node.start_point[0] + 1)
    return Counter({name: calls[name] for name in ORIGINALS}), stored


def _list_stored(node: Node, names: JavaScriptNames) -> Iterator[str]:
    """Yield the functions that a node stores, if it runs when its file is loaded."""
    paths: list[str] = []
    if node.type in VALUE_FIELDS:
        paths = [path for path, _ in names.find_destructured(node)]
    elif node.type == "import_specifier":
        paths = [names.resolve(get_field(node, "alias", "name"))]
    elif node.type in ("identifier", "member_expression") and _is_value(node):
        paths = [names.resolve(node)]
    known = [PREFIX.sub("", path) for path in paths]
    yield from (name for name in known if name in ORIGINALS and _runs_at_load(node))


def _is_value(node: Node) -> bool:
    """Return whether an expression stands for a function, and is neither called nor a part of a longer name."""
    above = node.parent
    if above is None or above.type in TYPE_NODES or get_field(above, "function", "constructor") == node:
        return False
    if above.type in SCHEMA_NODES and get_text(node).endswith("Date.now"):
        return False
    if above.type == "member_expression":
        return get_text(above.child_by_field_name("property")) == "bind"
    return get_field(above, "name", "left", "property", "key", "alias") != node


def _runs_at_load(node: Node) -> bool:
    """Return whether a node is outside of functions that are called later, and in no field of an instance."""
    function = find_enclosing(node, FUNCTIONS)
    while function is not None:
        if not is_called_at_once(function):
            return False
        function = find_enclosing(function, FUNCTIONS)
    field = find_enclosing(node, ("field_definition", "public_field_definition"))
    return field is None or any(part.type == "static" for part in field.children)
