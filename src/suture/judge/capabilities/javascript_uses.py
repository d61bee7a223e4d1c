"""Find what a JavaScript or TypeScript file uses of the test machinery and of the runtime, in its syntax tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.core.records import CapabilityCode
from suture.judge.capabilities.use import ENTRY_FUNCTION, TEST_VARIABLE, Use, find_path_uses
from suture.mutation.tree_sitter.node_kinds import FUNCTIONS
from suture.mutation.tree_sitter.syntax_tree import get_field, walk

if TYPE_CHECKING:
    from tree_sitter import Node

TEST_MODULE = re.compile(
    r"(?:node:)?(?:test|assert)(?:/\w+)?|(?:@jest/|@vitest/|jest-)[\w/-]+|(?:vitest|jest|mocha|chai|expect)(?:/\w+)?"
)
"""A module of a test runner or of an assertion library."""
TEST_GLOBALS = ("expect", "jest", "vi")
"""Names that test runners define without an import."""
BUILT_IN = (
    r"(?:Array|ArrayBuffer|BigInt|Boolean|Date|Error|Function|JSON|Map|Math|Number|Object|Promise|Proxy|Reflect"
    r"|RegExp|Set|String|Symbol|TypeError|WeakMap|WeakSet|assert|console|expect|process)"
)
"""Objects of the language, of Node and of test runners that tests rely on."""
GLOBAL_OBJECT = r"(?:globalThis|global)"
PATCHED_TARGET = re.compile(
    rf"{GLOBAL_OBJECT}[.\[].*|(?:{GLOBAL_OBJECT}\.)?{BUILT_IN}(?:\.prototype)?[.\[].+", re.DOTALL
)
"""The left side of an assignment that changes the global object or a built-in object."""
PATCHED_OBJECT = re.compile(rf"{GLOBAL_OBJECT}|(?:{GLOBAL_OBJECT}\.)?{BUILT_IN}(?:\.prototype)?")
"""The object that `PATCHING_CALL` changes, such as `Array.prototype`."""
HARMLESS_TARGET = re.compile(r"process\.(?:exitCode|title)|Error\.stackTraceLimit")
"""The left side of an assignment that sets a status or a setting, and changes no code."""
PATCHING_CALL = re.compile(
    r"(?:Object|Reflect)\.(?:defineProperty|defineProperties|assign|setPrototypeOf|set|deleteProperty)"
)
"""A function that changes the properties of its first argument."""
CALL_CODES: dict[str, CapabilityCode] = {
    **dict.fromkeys(("process.exit", "process.abort", "process.reallyExit", "process.kill"), "ends_process"),
    **dict.fromkeys(
        ("process.on", "process.once", "process.addListener", "process.prependListener"), "hooks_interpreter"
    ),
}
"""Called function -> what the call means."""
SPOOFING_MEMBERS = ("asymmetricMatch", "toJSON", "Symbol.toPrimitive")
"""Members through which an object decides how it is compared."""


def find_javascript_uses(root: Node) -> list[Use]:
    """Return the uses in the syntax tree of a JavaScript or TypeScript file."""
    nodes = list(walk(root))
    declared = {_text(name) for node in nodes for name in _declared_names(node)}
    return [use for node in nodes for use in _find_node_uses(node, declared)]


def _declared_names(node: Node) -> Iterator[Node]:
    """Yield the names that a node declares: a local function `expect` is not the test runner's."""
    if node.type in (
        "variable_declarator",
        "function_declaration",
        "required_parameter",
        "optional_parameter",
    ):
        name = get_field(node, "name", "pattern")
        if name is not None:
            yield name
    elif node.type in ("formal_parameters", "import_clause", "object_pattern"):
        yield from node.named_children
    elif node.type in ("arrow_function", "import_specifier"):
        name = get_field(node, "parameter", "name")
        if name is not None:
            yield name


def _find_node_uses(node: Node, declared: set[str]) -> Iterator[Use]:
    line = node.start_point[0] + 1
    if node.type == "import_statement":
        yield from _find_module_uses(node.child_by_field_name("source"), line)
    elif node.type in ("call_expression", "new_expression"):
        yield from _find_call_uses(node, line)
    elif node.type in ("assignment_expression", "augmented_assignment_expression", "update_expression"):
        yield from _find_assignment_uses(node, line)
    elif node.type in ("member_expression", "subscript_expression"):
        yield from _find_member_uses(node, line)
    elif node.type == "identifier" and _text(node) in TEST_GLOBALS and _text(node) not in declared:
        yield Use(code="imports_test_machinery", name=_text(node), line=line, key=_text(node))
    elif node.type in ("method_definition", "pair", "public_field_definition", "field_definition"):
        key = get_field(node, "name", "key", "property")
        if key is not None:
            yield from _find_spoofing_uses(_text(key).strip("[]\"'"), node, line)
    elif node.type == "string":
        yield from find_path_uses(_text(node)[1:-1], line)


def _find_module_uses(source: Node | None, line: int) -> Iterator[Use]:
    name = _text(source)[1:-1] if source is not None and source.type == "string" else ""
    if TEST_MODULE.fullmatch(name):
        module = name.removeprefix("node:")
        yield Use(code="imports_test_machinery", name=name, line=line, key=module)
    elif name.removeprefix("node:").partition("/")[0] in ("inspector", "v8"):
        yield Use(code="reaches_memory", name=name, line=line, key=name.removeprefix("node:"))


def _find_call_uses(node: Node, line: int) -> Iterator[Use]:
    function = node.child_by_field_name("function")
    arguments = node.child_by_field_name("arguments")
    first = arguments.named_children[0] if arguments is not None and arguments.named_children else None
    name = _text(function) if function is not None else ""
    if name in ("require", "import"):
        yield from _find_module_uses(first, line)
    elif PATCHING_CALL.fullmatch(name) and first is not None and PATCHED_OBJECT.fullmatch(_text(first)):
        yield Use(code="patches_code", name=_text(first), line=line, key=_text(first))
    code = CALL_CODES.get(name)
    if code == "ends_process":
        function_name = _enclosing_function(node)
        if ENTRY_FUNCTION.fullmatch(function_name) is None and not _is_in_main_guard(node):
            yield Use(code=code, name=name, line=line, key=f"in {function_name}")
    elif code is not None:
        event = _text(first) if first is not None else ""
        yield Use(code=code, name=f"{name}({event})", line=line, key=event)


def _find_assignment_uses(node: Node, line: int) -> Iterator[Use]:
    left = get_field(node, "left", "argument")
    target = _text(left) if left is not None else ""
    if PATCHED_TARGET.fullmatch(target) and not HARMLESS_TARGET.fullmatch(target):
        # A setting such as `process.env.X = ...` changes no code.
        if not target.startswith(("process.env", "process.argv")):
            yield Use(code="patches_code", name=target, line=line, key=target)
    elif left is not None and left.type == "member_expression":
        yield from _find_spoofing_uses(target.rpartition(".")[2], node, line)
    elif target.endswith("[Symbol.toPrimitive]"):
        yield from _find_spoofing_uses("Symbol.toPrimitive", node, line)


def _find_member_uses(node: Node, line: int) -> Iterator[Use]:
    text = _text(node)
    if text == "require.cache":
        yield Use(code="patches_code", name=text, line=line, key=text)
    elif text.startswith("process.env"):
        variable = text.removeprefix("process.env").strip(".[]\"'")
        if TEST_VARIABLE.fullmatch(variable) or (variable == "NODE_ENV" and _is_compared_with_test(node)):
            yield Use(code="detects_environment", name=text, line=line, key=variable)


def _is_compared_with_test(node: Node) -> bool:
    parent = node.parent
    return (
        parent is not None
        and parent.type == "binary_expression"
        and bool(re.search(r"""["'`]test["'`]""", _text(parent)))
    )


def _find_spoofing_uses(member: str, node: Node, line: int) -> Iterator[Use]:
    """Yield a member that decides a comparison. One that converts its own object's data is usual."""
    reads_object = any(part.type == "this" for part in walk(node))
    # Only matchers of tests have an `asymmetricMatch`, whatever it reads.
    if member in SPOOFING_MEMBERS and (member == "asymmetricMatch" or not reads_object):
        yield Use(code="loosens_comparison", name=member, line=line, key=member)


def _enclosing_function(node: Node) -> str:
    """Return the name of the function that a node is in, empty outside of named functions."""
    above = node.parent
    while above is not None:
        if above.type in FUNCTIONS:
            holder = above.parent if above.type in ("arrow_function", "function_expression") else above
            name = holder.child_by_field_name("name") if holder is not None else None
            if name is not None:
                return _text(name)
        above = above.parent
    return ""


def _is_in_main_guard(node: Node) -> bool:
    """Return whether a node is in `if (require.main === module)` or the like."""
    above = node.parent
    while above is not None:
        condition = above.child_by_field_name("condition") if above.type == "if_statement" else None
        if condition is not None and re.search(r"require\.main|import\.meta", _text(condition)):
            return True
        above = above.parent
    return False


def _text(node: Node) -> str:
    return node.text.decode("utf-8", "replace") if node.text is not None else ""
