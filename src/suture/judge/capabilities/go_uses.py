"""Find what a Go file uses of the test machinery and of the runtime, in its syntax tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.core.records import CapabilityCode
from suture.judge.capabilities.use import TEST_FILE_NAME, TEST_VARIABLE, Use, find_path_uses
from suture.mutation.tree_sitter.node_kinds import STRINGS
from suture.mutation.tree_sitter.syntax_tree import walk

if TYPE_CHECKING:
    from tree_sitter import Node

IMPORT_CODES: dict[str, CapabilityCode] = {
    "unsafe": "reaches_memory",
    "C": "reaches_memory",
    "runtime/debug": "reaches_memory",
    "testing": "imports_test_machinery",
    "os/exec": "starts_test_process",
}
"""Imported package -> what its use means."""
ENDING_CALLS = ("os.Exit", "syscall.Exit")


def find_go_uses(root: Node) -> list[Use]:
    """Return the uses in the syntax tree of a Go file."""
    return [use for node in walk(root) for use in _find_node_uses(node)]


def _find_node_uses(node: Node) -> Iterator[Use]:
    line = node.start_point[0] + 1
    if node.type == "import_spec":
        source = node.child_by_field_name("path")
        name = _text(source)[1:-1] if source is not None else ""
        code = IMPORT_CODES.get("testing" if name.startswith("testing/") else name)
        if code is not None:
            yield Use(code=code, name=name, line=line, key=name)
    elif node.type == "comment" and _text(node).startswith("//go:linkname"):
        yield Use(code="reaches_memory", name="//go:linkname", line=line, key="//go:linkname")
    elif node.type == "comment" and _text(node).startswith("//go:embed"):
        patterns = [word.strip('"`') for word in _text(node).split()[1:]]
        # A folder or a pattern such as `*` may include the tests of the package.
        covering = [word for word in patterns if word in ("*", ".", "*.go") or TEST_FILE_NAME.fullmatch(word)]
        if covering:
            yield Use(code="reads_tests", name=f"//go:embed {covering[0]}", line=line, key="")
    elif node.type == "call_expression":
        yield from _find_call_uses(node, line)
    elif node.type in STRINGS:
        yield from find_path_uses(_text(node)[1:-1], line)


def _find_call_uses(node: Node, line: int) -> Iterator[Use]:
    function = node.child_by_field_name("function")
    name = _text(function) if function is not None else ""
    if name in ENDING_CALLS:
        function_name = _enclosing_function(node)
        if function_name != "main":  # a program may end there
            yield Use(code="ends_process", name=name, line=line, key=f"in {function_name}")
    elif name in ("os.Getenv", "os.LookupEnv"):
        arguments = node.child_by_field_name("arguments")
        variable = _text(arguments).strip('()"`') if arguments is not None else ""
        if TEST_VARIABLE.fullmatch(variable):
            yield Use(code="detects_environment", name=variable, line=line, key=variable)


def _enclosing_function(node: Node) -> str:
    above = node.parent
    while above is not None:
        if above.type in ("function_declaration", "method_declaration"):
            name = above.child_by_field_name("name")
            return _text(name) if name is not None else ""
        above = above.parent
    return ""


def _text(node: Node) -> str:
    return node.text.decode("utf-8", "replace") if node.text is not None else ""
