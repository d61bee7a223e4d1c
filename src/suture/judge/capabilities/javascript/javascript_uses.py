"""Find what a JavaScript or TypeScript file uses of the test machinery and of the runtime, in its syntax tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.core.records import CapabilityCode
from suture.judge.capabilities.javascript.javascript_answers import find_answer_uses, find_written_path
from suture.judge.capabilities.javascript.javascript_environment import (
    ENVIRONMENTS,
    MODES,
    find_environment_lists,
    find_environment_path_uses,
    find_listing_uses,
    find_membership_uses,
)
from suture.judge.capabilities.javascript.javascript_names import (
    BUILT_IN,
    GLOBAL_OBJECTS,
    LISTING_CALL,
    TEST_GLOBALS,
    VALUE_FIELDS,
    JavaScriptNames,
    get_enclosing_function,
    get_first_argument,
    get_string,
)
from suture.judge.capabilities.javascript.javascript_patches import (
    find_changed_argument,
    find_package_members,
    is_changed_built_in,
)
from suture.judge.capabilities.kept_state import find_kept_state
from suture.judge.capabilities.surroundings import find_surrounding_uses
from suture.judge.capabilities.use import ENTRY_FUNCTION, TEST_RUNNER, Use, find_path_uses
from suture.mutation.tree_sitter.syntax_tree import get_field, get_text, walk
from suture.mutation.tree_sitter.value_kinds import FUNCTIONS

if TYPE_CHECKING:
    from tree_sitter import Node

TEST_MODULE = re.compile(
    r"(?:node:)?(?:test|assert)(?:/\w+)?|(?:@jest/|@vitest/|jest-)[\w/-]+|(?:vitest|jest|mocha|chai|expect)(?:/\w+)?"
)
"""A module of a test runner or of an assertion library."""
TEST_STATE = re.compile(r"\$\$jest-[\w-]+|JEST_\w+|__vitest_\w+|RETRY_TIMES|suture\w*", re.IGNORECASE)
"""A string that names something that test runners keep in the global object."""
CALL_CODES: dict[str, CapabilityCode] = {
    **dict.fromkeys(
        ("process.on", "process.once", "process.addListener", "process.prependListener", "process.emit"),
        "hooks_interpreter",
    ),
    **dict.fromkeys(
        (
            "process.prependOnceListener",
            "process.removeAllListeners",
            "process.removeListener",
            "process.off",
        ),
        "hooks_interpreter",
    ),
    **dict.fromkeys(
        ("process.listenerCount", "process.listeners", "process.rawListeners", "process.eventNames"),
        "detects_environment",
    ),
    **dict.fromkeys(
        (
            "process.getActiveResourcesInfo",
            "node:async_hooks.executionAsyncResource",
            "node:async_hooks.executionAsyncId",
            "node:async_hooks.triggerAsyncId",
        ),
        "detects_environment",
    ),
    **dict.fromkeys(("eval", "Function", "node:vm.Script", "node:vm.runInThisContext"), "computes_names"),
    **dict.fromkeys(
        ("node:vm.runInNewContext", "node:vm.runInContext", "node:vm.compileFunction"), "computes_names"
    ),
    **dict.fromkeys(("process.binding", "process._linkedBinding", "process.dlopen"), "reaches_memory"),
    **dict.fromkeys(("node:util.getCallSite", "node:util.getCallSites"), "inspects_callers"),
}
"""Called function -> what the call means."""
ENDING_CALLS = ("process.exit", "process.abort", "process.reallyExit", "process.kill")
STARTING_CALLS = re.compile(r"node:child_process\.(?:exec|spawn|execFile|fork)(?:Sync)?")
CHANGES = ("assignment_expression", "augmented_assignment_expression", "update_expression")
MODULE_CODES: dict[str, CapabilityCode] = {
    "inspector": "reaches_memory",
    "v8": "reaches_memory",
    "worker_threads": "hooks_interpreter",
    "vm": "computes_names",
}
"""Imported module of Node -> what its use means."""
HARMLESS_LOADER_NAMES = (
    "createRequire",
    "builtinModules",
    "isBuiltin",
    "findPackageJSON",
    "enableCompileCache",
)
"""Members of node's module `module` that change nothing."""
COMPUTED_OWNERS = (*GLOBAL_OBJECTS[:2], "process", "module", "require")
"""Objects of which a property with a computed name is a finding."""
SPOOFING_MEMBERS = ("asymmetricMatch", "toJSON", "Symbol.toPrimitive", "valueOf")
"""Members through which an object decides how it is compared."""
COMPARED_TAG = re.compile("Date|RegExp|Error|Number|String|Boolean|Symbol|Promise")
"""A value of `Symbol.toStringTag` with which Jest compares objects otherwise than by their properties."""
SPOOFING_SYMBOLS = ("Symbol.hasInstance", "Symbol.species")
"""Symbols through which a class decides what its instances are, or what methods of its instances return."""
TEST_DOUBLE_MEMBER = re.compile(
    r"mock|_isMockFunction|mock(?:Clear|Reset|Restore|Name|(?:Implementation|(?:Return|Resolved|Rejected)Value)(?:Once)?)"
    r"|getMock(?:Implementation|Name)|callCount|called(?:Once|Twice|Thrice)|reset(?:Calls|History|Behavior)"
)
"""Members of the functions that tests create with `jest.fn()`, `vi.fn()`, `mock.fn()` or Sinon."""
TEST_DOUBLES = "test doubles"
"""The key of all their members: a file that handles such functions may handle them otherwise."""


def find_javascript_uses(root: Node) -> list[Use]:
    """Return the uses in the syntax tree of a JavaScript or TypeScript file."""
    nodes = list(walk(root))
    names = JavaScriptNames(nodes)
    uses = [use for node in nodes for use in _find_node_uses(node, names)]
    surrounding = (
        use for node in nodes for use in find_surrounding_uses(node, names.assigned, names.resolve)
    )
    return [*uses, *surrounding, *find_kept_state(nodes)]


def _find_node_uses(node: Node, names: JavaScriptNames) -> Iterator[Use]:
    line = node.start_point[0] + 1
    if node.type == "import_statement":
        yield from _find_module_uses(node.child_by_field_name("source"), line)
    elif node.type in ("call_expression", "new_expression"):
        yield from _find_call_uses(node, line, names)
    elif node.type in CHANGES or (node.type == "unary_expression" and get_text(node).startswith("delete ")):
        yield from _find_assignment_uses(node, line, names)
    elif node.type in ("member_expression", "subscript_expression"):
        yield from _find_member_uses(node, line, names)
    elif node.type in VALUE_FIELDS:
        for path, _ in names.find_destructured(node):
            yield from _find_path_uses(path, node, line)
    elif node.type == "binary_expression":
        yield from find_membership_uses(node, line, names)
    elif node.type in ("for_in_statement", "spread_element"):
        yield from find_environment_lists(node, line, names)
    else:
        yield from _find_name_uses(node, line, names)


def _find_name_uses(node: Node, line: int, names: JavaScriptNames) -> Iterator[Use]:
    """Yield what an identifier, the name of a member or a string refers to."""
    text = get_text(node)
    path = names.resolve(node) if node.type == "identifier" else ""
    if path != text and (path.rpartition(".")[2] in MODES or path.startswith("node:tty")):
        yield from _find_path_uses(path, node, line)
    elif node.type == "identifier" and text in TEST_GLOBALS and text not in names.declared:
        yield Use(code="imports_test_machinery", name=text, line=line, key=text)
    elif node.type in ("method_definition", "pair", "public_field_definition", "field_definition"):
        key = get_field(node, "name", "key", "property")
        if key is not None:
            member = get_text(key).strip("[]\"'")
            yield from _find_spoofing_uses(member, node, line)
            yield from find_answer_uses(member, node, names)
    elif node.type == "computed_property_name" and _is_joined_literal(node.named_children[0]):
        yield Use(code="computes_names", name=text, line=line, key=text)
    elif node.type == "string":
        yield from find_path_uses(text[1:-1], line)
        if TEST_STATE.fullmatch(text[1:-1]):
            yield Use(code="imports_test_machinery", name=text[1:-1], line=line, key=text[1:-1])
        elif TEST_DOUBLE_MEMBER.fullmatch(text[1:-1]) and _is_property_name(node):
            yield Use(code="imports_test_machinery", name=text[1:-1], line=line, key=TEST_DOUBLES)


def _find_module_uses(source: Node | None, line: int) -> Iterator[Use]:
    name = get_string(source)
    module = name.removeprefix("node:")
    code = MODULE_CODES.get(module.partition("/")[0])
    if TEST_MODULE.fullmatch(name):
        yield Use(code="imports_test_machinery", name=name, line=line, key=module)
    elif code is not None:
        yield Use(code=code, name=name, line=line, key=module)


def _find_call_uses(node: Node, line: int, names: JavaScriptNames) -> Iterator[Use]:
    function = get_field(node, "function", "constructor")
    first = get_first_argument(node)
    name = names.resolve(function) or get_text(function)
    yield from _find_loading_uses(name, first, line, names)
    yield from find_listing_uses(name, first, line, names)
    for member in find_package_members(node, name, names):
        yield Use(code="patches_code", name=member, line=line, key=member)
    changed = find_changed_argument(node, name, names)
    if changed:
        yield Use(code="patches_code", name=changed, line=line, key=changed)
    elif LISTING_CALL.fullmatch(name) and names.resolve(first) in GLOBAL_OBJECTS:
        yield Use(code="computes_names", name=f"{name}({get_text(first)})", line=line, key=name)
    elif name in ("Object.defineProperty", "Reflect.defineProperty", "Reflect.set"):
        arguments = node.child_by_field_name("arguments")
        given = arguments.named_children if arguments is not None else []
        if len(given) > 2:
            yield from find_answer_uses(get_string(given[1]) or get_text(given[1]), given[2], names)
    if name.endswith(".constructor") and get_string(first):
        yield Use(code="computes_names", name=f"{name}({get_text(first)})", line=line, key="constructor")
    if (
        name == "Error.captureStackTrace"
        and first is not None
        and first.type != "this"
        and not re.search("err|exc", get_text(first), re.IGNORECASE)
    ):
        yield Use(code="inspects_callers", name=name, line=line, key=name)
    path = find_written_path(node, names)
    if path is not None:
        yield Use(code="writes_project_files", name=f"{name}({path})", line=line, key="")
    if STARTING_CALLS.fullmatch(name) and TEST_RUNNER.search(
        get_text(node.child_by_field_name("arguments"))[1:].strip("\"'`")
    ):
        yield Use(code="starts_test_process", name=name, line=line, key="")
    code = CALL_CODES.get(name)
    if name in ENDING_CALLS:
        yield from _find_ending_use(name, node, line)
    elif code is not None and name not in names.declared:
        event = get_text(first)
        shown = f"{name}({event})" if name.startswith("process.") else name
        yield Use(code=code, name=shown, line=line, key=event if code == "hooks_interpreter" else name)


def _find_loading_uses(name: str, first: Node | None, line: int, names: JavaScriptNames) -> Iterator[Use]:
    """Yield what a call of `require` or `import` loads, or that its source does not show it."""
    if name not in ("require", "import") or first is None:
        return
    yield from _find_module_uses(first, line)
    value = names.assigned.get(get_text(first), first)
    is_visible = bool(get_string(value)) or value.type in ("call_expression", "template_string")
    if not is_visible and (value.type != "binary_expression" or _is_joined_literal(value)):
        yield Use(code="computes_names", name=f"{name}({get_text(first)})", line=line, key=name)


def _find_ending_use(name: str, node: Node, line: int) -> Iterator[Use]:
    function_name = get_enclosing_function(node)
    if ENTRY_FUNCTION.fullmatch(function_name) is None and not _is_in_main_guard(node):
        yield Use(code="ends_process", name=name, line=line, key=f"in {function_name}")


def _find_assignment_uses(node: Node, line: int, names: JavaScriptNames) -> Iterator[Use]:
    left = get_field(node, "left", "argument")
    if left is None or left.type not in ("member_expression", "subscript_expression"):
        return
    target = names.resolve(left) or get_text(left)
    for patched in find_package_members(node, "", names):
        yield Use(code="patches_code", name=patched, line=line, key=patched)
    if is_changed_built_in(left, target, names):
        yield Use(code="patches_code", name=get_text(left), line=line, key=target)
    elif node.type == "unary_expression":  # what `delete` removes decides nothing
        return
    elif left.type == "member_expression" or get_string(get_field(left, "index")):
        member = target.rpartition(".")[2]
        yield from _find_spoofing_uses(member, node, line)
        yield from find_answer_uses(member, node, names)
    elif target.endswith("[Symbol.toPrimitive]"):
        yield from _find_spoofing_uses("Symbol.toPrimitive", node, line)
    elif target.endswith("[Symbol.iterator]"):
        yield from find_answer_uses("Symbol.iterator", node, names)


def _find_member_uses(node: Node, line: int, names: JavaScriptNames) -> Iterator[Use]:
    owner, key = node.child_by_field_name("object"), get_field(node, "property", "index")
    owner_path = names.resolve(owner)
    if node.type == "subscript_expression" and not names.get_key(key):
        is_own_name = owner_path in names.declared
        value = names.assigned.get(get_text(key), key)
        is_disguised = owner_path in ENVIRONMENTS and _is_made_of_literals(value)
        if (owner_path in COMPUTED_OWNERS and not is_own_name) or _is_joined_literal(key) or is_disguised:
            yield Use(code="computes_names", name=get_text(node), line=line, key=owner_path)
        return
    if get_text(key) == "stack" and _is_searched(node):
        yield Use(code="inspects_callers", name=get_text(node), line=line, key="stack")
    if get_text(key) == "stack" and owner is not None and _is_new_error(owner, names):
        yield Use(code="inspects_callers", name=get_text(node), line=line, key="stack")
    elif get_text(key) == "constructor" and get_text(owner) in ("console", "process", "global", "globalThis"):
        yield Use(code="detects_environment", name=get_text(node), line=line, key="constructor")
    elif get_text(key) in ("callee", "caller") and (
        get_text(owner).startswith("arguments") or get_text(owner) in names.functions
    ):
        yield Use(code="inspects_callers", name=get_text(node), line=line, key="caller")
    yield from _find_path_uses(names.resolve(node) or f".{get_string(key) or get_text(key)}", node, line)


def _is_property_name(node: Node) -> bool:
    """Return whether a string names a property in other ways than `f['mock']`: `'mock' in f`."""
    above = node.parent
    if above is not None and above.type == "arguments":
        call = get_text(get_field(above.parent, "function")) if above.parent is not None else ""
        return call.startswith(("Reflect.", "Object."))
    return above is not None and get_text(above.child_by_field_name("operator")) == "in"


def _find_path_uses(path: str, node: Node, line: int) -> Iterator[Use]:
    """Yield what the object at a dotted path is, such as `require.cache` or `process.env.CI`."""
    owner, _, name = path.rpartition(".")
    yield from find_environment_path_uses(path, node, line)
    if path in SPOOFING_SYMBOLS or TEST_DOUBLE_MEMBER.fullmatch(name):
        yield from _find_test_uses(path, node, line)
    elif path in ("require.cache", "require.extensions"):
        yield Use(code="patches_code", name=path, line=line, key=path)
    elif path == "Error.prepareStackTrace":
        yield Use(code="inspects_callers", name=path, line=line, key=path)
    elif owner == "node:module" and name not in HARMLESS_LOADER_NAMES:
        yield Use(code="hooks_interpreter", name=f"module.{name}", line=line, key=path)
    elif owner in GLOBAL_OBJECTS and name in TEST_GLOBALS:
        yield Use(code="imports_test_machinery", name=path, line=line, key=name)
    elif node.type == "variable_declarator" and path in ENDING_CALLS:
        yield from _find_ending_use(path, node, line)
    elif node.type == "variable_declarator" and path in CALL_CODES:
        yield Use(code=CALL_CODES[path], name=path, line=line, key=path)


def _find_test_uses(path: str, node: Node, line: int) -> Iterator[Use]:
    """Yield what a member means to tests: how a class is recognised, or that a function is a test double."""
    if path in SPOOFING_SYMBOLS:
        if not _returns_built_in(node):
            yield Use(code="loosens_comparison", name=path, line=line, key=path)
    elif not path.startswith("this."):  # a class's own counter
        name = path if node.type == "variable_declarator" else get_text(node)
        yield Use(code="imports_test_machinery", name=name, line=line, key=TEST_DOUBLES)


def _is_made_of_literals(node: Node | None) -> bool:
    """Return whether an expression computes its value from literals alone: `['C', 'I'].join('')`."""
    return node is not None and not any(part.type in ("identifier", "this") for part in walk(node))


def _is_searched(node: Node) -> bool:
    """Return whether an expression is searched for a string: `/x/.test(error.stack)`, `error.stack.includes("x")`."""
    above = node.parent
    if above is not None and above.type == "arguments" and above.parent is not None:
        called = get_text(get_field(above.parent, "function")).rpartition(".")[2]
        return called in ("test", "exec")
    searching = ("includes", "match", "matchAll", "indexOf", "search", "split", "startsWith", "endsWith")
    return above is not None and get_text(get_field(above, "property")) in searching


def _is_joined_literal(node: Node | None) -> bool:
    """Return whether an expression joins string literals only, as in `'ex' + 'it'`. Only a disguise does so."""
    if node is None or node.type != "binary_expression":
        return False
    sides = [node.child_by_field_name(field) for field in ("left", "right")]
    return all(bool(get_string(side)) or _is_joined_literal(side) for side in sides)


def _is_new_error(node: Node, names: JavaScriptNames) -> bool:
    value = names.assigned.get(get_text(node), node)
    while value.type == "parenthesized_expression" and value.named_children:
        value = value.named_children[0]
    is_creation = value.type in ("new_expression", "call_expression")
    return is_creation and get_text(get_field(value, "constructor", "function")) == "Error"


def _find_spoofing_uses(member: str, node: Node, line: int) -> Iterator[Use]:
    """Yield a member that decides a comparison. One that converts its own object's data is common."""
    parts = list(walk(node))
    reads_object = any(part.type == "super" or (part.type == "this" and _reads_data(part)) for part in parts)
    if member == "Symbol.toStringTag" and any(COMPARED_TAG.fullmatch(get_string(part)) for part in parts):
        yield Use(code="loosens_comparison", name=member, line=line, key=member)
    # Only matchers of tests have an `asymmetricMatch`, whatever it reads.
    if member in SPOOFING_MEMBERS and (member == "asymmetricMatch" or not reads_object):
        is_value = (
            node.type == "pair"
            and get_field(node, "value") is not None
            and not any(part.type in FUNCTIONS or part.type == "identifier" for part in parts)
        )
        if member != "valueOf" or not is_value:
            yield Use(code="loosens_comparison", name=member, line=line, key=member)


def _reads_data(this: Node) -> bool:
    """Return whether `this` is asked for its data, and not only whether it exists or of which class it is."""
    above = this.parent
    if above is not None and above.type == "member_expression":
        return get_text(above.child_by_field_name("property")) != "constructor"
    return above is not None and above.type not in (
        "unary_expression",
        "binary_expression",
        "ternary_expression",
    )


def _returns_built_in(node: Node) -> bool:
    """Return whether a method with a computed name returns a built-in class, as `Symbol.species` usually does."""
    key = node.parent
    method = key.parent if key is not None and key.type == "computed_property_name" else None
    body = get_text(method.child_by_field_name("body")) if method is not None else ""
    return re.fullmatch(rf"{{\s*return\s+{BUILT_IN};?\s*}}", body) is not None


def _is_in_main_guard(node: Node) -> bool:
    """Return whether a node is in `if (require.main === module)` or the like."""
    above = node.parent
    while above is not None:
        condition = above.child_by_field_name("condition") if above.type == "if_statement" else None
        if condition is not None and re.search(r"require\.main|import\.meta", get_text(condition)):
            return True
        above = above.parent
    return False
