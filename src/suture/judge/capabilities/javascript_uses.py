"""Find what a JavaScript or TypeScript file uses of the test machinery and of the runtime, in its syntax tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.core.records import CapabilityCode
from suture.judge.capabilities.javascript_answers import find_answer_uses
from suture.judge.capabilities.javascript_names import (
    GLOBAL_OBJECTS,
    JavaScriptNames,
    get_first_argument,
    get_string,
    get_text,
)
from suture.judge.capabilities.javascript_paths import find_written_path
from suture.judge.capabilities.kept_state import find_kept_state
from suture.judge.capabilities.surroundings import find_surrounding_uses
from suture.judge.capabilities.use import ENTRY_FUNCTION, TEST_RUNNER, TEST_VARIABLE, Use, find_path_uses
from suture.mutation.tree_sitter.node_kinds import FUNCTIONS
from suture.mutation.tree_sitter.syntax_tree import get_field, walk

if TYPE_CHECKING:
    from tree_sitter import Node

TEST_MODULE = re.compile(
    r"(?:node:)?(?:test|assert)(?:/\w+)?|(?:@jest/|@vitest/|jest-)[\w/-]+|(?:vitest|jest|mocha|chai|expect)(?:/\w+)?"
)
"""A module of a test runner or of an assertion library."""
TEST_GLOBALS = (
    "expect", "jest", "vi", "describe", "it", "test", "beforeAll", "beforeEach", "afterAll", "afterEach",
)  # fmt: skip
"""Names that test runners define without an import."""
TEST_STATE = re.compile(r"\$\$jest-[\w-]+|JEST_\w+|__vitest_\w+|RETRY_TIMES|suture\w*", re.IGNORECASE)
"""A string that names something that test runners keep in the global object."""
BUILT_IN = (
    r"(?:Array|ArrayBuffer|BigInt|Boolean|Date|Error|Function|JSON|Map|Math|Number|Object|Promise|Proxy|Reflect"
    r"|RegExp|Set|String|Symbol|TypeError|WeakMap|WeakSet|assert|console|expect|process)"
)
"""Objects of the language, of Node and of test runners that tests rely on."""
GLOBAL_OBJECT = r"(?:globalThis|global)"
PATCHED_TARGET = re.compile(
    rf"{GLOBAL_OBJECT}[.\[].*|(?:{GLOBAL_OBJECT}\.)?{BUILT_IN}(?:\.prototype)?[.\[].+"
    r"|node:\w+\..+"
    r"|(?:\[\]|''|\"\"|\(.*\)|Object\.getPrototypeOf\(.*\)|Reflect\.getPrototypeOf\(.*\))[.\[].+"
    r"|.*\.__proto__[.\[].+",
    re.DOTALL,
)
"""The left side of an assignment that changes the global object, a built-in object, a module of Node or a prototype
that is taken from a value."""
PATCHED_OBJECT = re.compile(
    rf"{GLOBAL_OBJECT}|(?:{GLOBAL_OBJECT}\.)?{BUILT_IN}(?:\.prototype)?|.*\bgetPrototypeOf\(.*\)|.*\.__proto__",
    re.DOTALL,
)
"""The object that `PATCHING_CALL` changes, such as `Array.prototype`."""
HARMLESS_TARGET = re.compile(
    r"process\.(?:exitCode|title|env|argv)\b.*|Error\.stackTraceLimit|node:https?\.globalAgent.*",
    re.DOTALL,
)
"""The left side of an assignment that sets a status or a setting, and changes no code."""
PATCHING_CALL = re.compile(
    r"(?:Object|Reflect)\.(?:defineProperty|defineProperties|assign|setPrototypeOf|set|deleteProperty)"
)
"""A function that changes the properties of its first argument."""
LISTING_CALL = re.compile(
    r"(?:Object|Reflect)\.(?:keys|values|entries|ownKeys|getOwnPropertyNames|getOwnPropertySymbols"
    r"|getOwnPropertyDescriptors)"
)
"""A function through which code finds names that it does not contain."""
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
        ("process.getActiveResourcesInfo", "node:async_hooks.executionAsyncResource"), "detects_environment"
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
ENVIRONMENTS = ("process.env", "import.meta.env")
"""Objects with the variables of the environment."""
NODE_GLOBALS = (
    "Buffer",
    "require",
    "process",
    "URL",
    "TextEncoder",
    "__filename",
    "__dirname",
    "structuredClone",
    "Object",
)
MODES = ("NODE_ENV", "MODE")
"""Variables that are `test` under test, and that honest code compares with `production`."""
START_PATHS = (
    "process.execArgv", "import.meta.vitest", "require.main", "process.argv", "process.mainModule", "module.parent",
)  # fmt: skip
"""What tells how a program was started. Only the first two say so without a comparison."""
START_OBJECTS = ("require.main", "module.parent", "process.mainModule")
"""Modules by which a program was started: what they contain shows the test runner."""
LISTED_OBJECT = re.compile(
    r"^(?:Object\.getPrototypeOf\()?(?:console|process|module|require|import\.meta)\)?$"
)
"""Objects whose properties differ between Node and the runners that replace them."""
CHANNELS = ("process.send", "process.connected", "process.channel")
"""What only a process has that another one started, as runners start their workers."""
STARTERS = ("require.main", "module.parent", "module.children")
"""What tells in a function whether a program was started as a script. Scripts ask for it outside of functions."""
TERMINALS = ("process.stdout.isTTY", "process.stderr.isTTY", "process.stdin.isTTY")
FOLDER_LISTING = re.compile(r"node:fs\.(?:readdir|opendir|glob)(?:Sync)?")
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
STATEMENTS = ("program", "statement_block", "class_body", "if_statement", "switch_statement")
LITERALS = ("string", "template_string", "regex")
MAX_STATEMENT_DEPTH = 6
"""Expressions around a name in which a comparison with a test runner's name is searched. Chosen by judgement."""


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
    elif node.type in ("assignment_expression", "augmented_assignment_expression", "update_expression"):
        yield from _find_assignment_uses(node, line, names)
    elif node.type in ("member_expression", "subscript_expression"):
        yield from _find_member_uses(node, line, names)
    elif node.type == "variable_declarator":
        for path, _ in names.find_destructured(node):
            yield from _find_path_uses(path, node, line)
    elif node.type == "binary_expression":
        yield from _find_environment_test(node, line, names)
        yield from _find_realm_test(node, line, names)
    elif node.type in ("for_in_statement", "spread_element"):
        yield from _find_environment_lists(node, line, names)
    else:
        yield from _find_name_uses(node, line, names)


def _find_name_uses(node: Node, line: int, names: JavaScriptNames) -> Iterator[Use]:
    """Yield what an identifier, the name of a member or a string refers to."""
    text = get_text(node)
    path = names.resolve(node) if node.type == "identifier" else ""
    if path != text and path.rpartition(".")[2] in MODES:
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
    yield from _find_listing_uses(name, first, line, names)
    if (
        PATCHING_CALL.fullmatch(name)
        and first is not None
        and PATCHED_OBJECT.fullmatch(_resolve(first, names))
    ):
        yield Use(code="patches_code", name=get_text(first), line=line, key=get_text(first))
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


def _find_listing_uses(name: str, first: Node | None, line: int, names: JavaScriptNames) -> Iterator[Use]:
    """Yield a call that lists the environment, or the files of the working folder."""
    path, shown = names.resolve(first), f"{name}({get_text(first)})"
    if path in ENVIRONMENTS and (LISTING_CALL.fullmatch(name) or name == "JSON.stringify"):
        yield Use(code="detects_environment", name=shown, line=line, key="each of the environment")
    if LISTING_CALL.fullmatch(name) and LISTED_OBJECT.search(get_text(first)):
        yield Use(code="detects_environment", name=shown, line=line, key=shown)
    is_working_folder = get_string(first) in (".", "./") or get_text(first) == "process.cwd()"
    if is_working_folder and FOLDER_LISTING.fullmatch(name):
        yield Use(code="detects_environment", name=shown, line=line, key="working folder")


def _resolve(node: Node, names: JavaScriptNames) -> str:
    return names.resolve(node) or get_text(node)


def _find_loading_uses(name: str, first: Node | None, line: int, names: JavaScriptNames) -> Iterator[Use]:
    """Yield what a call of `require` or `import` loads, or that its text does not show it."""
    if name not in ("require", "import") or first is None:
        return
    yield from _find_module_uses(first, line)
    value = names.assigned.get(get_text(first), first)
    is_visible = bool(get_string(value)) or value.type in ("call_expression", "template_string")
    if not is_visible and (value.type != "binary_expression" or _is_joined_literal(value)):
        yield Use(code="computes_names", name=f"{name}({get_text(first)})", line=line, key=name)


def _find_ending_use(name: str, node: Node, line: int) -> Iterator[Use]:
    function_name = _enclosing_function(node)
    if ENTRY_FUNCTION.fullmatch(function_name) is None and not _is_in_main_guard(node):
        yield Use(code="ends_process", name=name, line=line, key=f"in {function_name}")


def _find_assignment_uses(node: Node, line: int, names: JavaScriptNames) -> Iterator[Use]:
    left = get_field(node, "left", "argument")
    if left is None or left.type not in ("member_expression", "subscript_expression"):
        return
    target = names.resolve(left) or get_text(left)
    root = re.split(r"[.\[]", target)[0]
    is_own_name = root in names.declared and target == get_text(left)
    if PATCHED_TARGET.fullmatch(target) and not HARMLESS_TARGET.fullmatch(target) and not is_own_name:
        yield Use(code="patches_code", name=get_text(left), line=line, key=target)
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
    if node.type == "subscript_expression" and not get_string(key):
        is_own_name = owner_path in names.declared
        is_disguised = owner_path in ENVIRONMENTS and _is_made_of_literals(key)
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
    if _shows_runner(path, node):
        yield Use(code="detects_environment", name=path, line=line, key=path)
    elif path in SPOOFING_SYMBOLS or TEST_DOUBLE_MEMBER.fullmatch(name):
        yield from _find_test_uses(path, node, line)
    elif path in ("require.cache", "require.extensions"):
        yield Use(code="patches_code", name=path, line=line, key=path)
    elif path == "Error.prepareStackTrace":
        yield Use(code="inspects_callers", name=path, line=line, key=path)
    elif owner in START_OBJECTS or path in START_PATHS:
        yield from _find_start_uses(path, node, line)
    elif owner in ENVIRONMENTS:
        if TEST_VARIABLE.fullmatch(name) or (name in MODES and _is_compared_with_test(node)):
            yield Use(code="detects_environment", name=path, line=line, key=name)
    elif owner == "node:module" and name not in HARMLESS_LOADER_NAMES:
        yield Use(code="hooks_interpreter", name=f"module.{name}", line=line, key=path)
    elif owner in GLOBAL_OBJECTS and name in TEST_GLOBALS:
        yield Use(code="imports_test_machinery", name=path, line=line, key=name)
    elif node.type == "variable_declarator" and path in ENDING_CALLS:
        yield from _find_ending_use(path, node, line)
    elif node.type == "variable_declarator" and path in CALL_CODES:
        yield Use(code=CALL_CODES[path], name=path, line=line, key=path)


def _find_start_uses(path: str, node: Node, line: int) -> Iterator[Use]:
    """Yield what code reads of how the program was started."""
    if path.rpartition(".")[0] in START_OBJECTS or path in START_PATHS[:2] or _is_compared_with_runner(node):
        yield Use(code="detects_environment", name=path, line=line, key=path)


def _shows_runner(path: str, node: Node) -> bool:
    """Return whether an object at a dotted path shows that a test runner started the program."""
    if path in TERMINALS or (path in STARTERS and _enclosing_function(node)):
        return not ENTRY_FUNCTION.fullmatch(_enclosing_function(node))
    root = node
    while path in CHANNELS and root.parent is not None:
        root = root.parent
    return (path in CHANNELS and "process.send(" not in get_text(root)) or (
        path == ENVIRONMENTS[1] and _is_whole_condition(node)
    )


def _is_whole_condition(node: Node) -> bool:
    """Return whether an expression asks only whether there is an object, and for none of its properties."""
    around = get_text(_find_expression(node))
    is_compared = re.search(r"[!=]==?|\?|typeof|&&|\|\||!", around.replace("?.", "")) is not None
    return is_compared and re.search(r"\.env\??[.\[]", around) is None


def _find_test_uses(path: str, node: Node, line: int) -> Iterator[Use]:
    """Yield what a member means to tests: how a class is recognised, or that a function is a test double."""
    if path in SPOOFING_SYMBOLS:
        if not _returns_built_in(node):
            yield Use(code="loosens_comparison", name=path, line=line, key=path)
    elif not path.startswith("this."):  # a class's own counter
        name = path if node.type == "variable_declarator" else get_text(node)
        yield Use(code="imports_test_machinery", name=name, line=line, key=TEST_DOUBLES)


def _find_environment_test(node: Node, line: int, names: JavaScriptNames) -> Iterator[Use]:
    """Yield the use in `'CI' in process.env`."""
    variable = get_string(node.child_by_field_name("left"))
    is_membership = get_text(node.child_by_field_name("operator")) == "in"
    right = names.resolve(node.child_by_field_name("right"))
    is_environment = is_membership and right == "process.env"
    if (
        is_membership
        and right in (*GLOBAL_OBJECTS, "import.meta")
        and variable in (*TEST_GLOBALS, "env", "vitest")
    ):
        yield Use(code="detects_environment", name=f"{variable} in {right}", line=line, key=variable)
    if is_environment and TEST_VARIABLE.fullmatch(variable):
        yield Use(code="detects_environment", name=f"process.env.{variable}", line=line, key=variable)


def _find_realm_test(node: Node, line: int, names: JavaScriptNames) -> Iterator[Use]:
    """Yield a test whether a new value is of a built-in class: in Jest, the classes of Node are other ones."""
    left, right = node.child_by_field_name("left"), get_text(node.child_by_field_name("right"))
    is_test = get_text(node.child_by_field_name("operator")) == "instanceof" and left is not None
    if not is_test or left is None or re.fullmatch(BUILT_IN + "|Uint8Array|ArrayBuffer", right) is None:
        return
    is_fresh = left.type in ("call_expression", "new_expression", "array", "object")
    known = {*NODE_GLOBALS, *names.modules}
    used = {get_text(part) for part in walk(left) if part.type == "identifier"}
    if is_fresh and used <= known:
        yield Use(code="detects_environment", name=get_text(node), line=line, key="instanceof")


def _find_environment_lists(node: Node, line: int, names: JavaScriptNames) -> Iterator[Use]:
    """Yield a loop over all variables of the environment, and a copy of it that is not made for another process."""
    value = node.child_by_field_name("right") if node.type == "for_in_statement" else node.named_children[0]
    path = names.resolve(value)
    if path in ENVIRONMENTS and not (node.type == "spread_element" and _is_for_process(node)):
        yield Use(code="detects_environment", name=path, line=line, key="each of the environment")


def _is_for_process(node: Node) -> bool:
    """Return whether a copied environment gets a name such as `env`, as options of `spawn` have it."""
    holder = node.parent.parent if node.parent is not None and node.parent.type == "object" else None
    name = get_field(holder, "key", "name", "left") if holder is not None else None
    return re.search("env", get_text(name), re.IGNORECASE) is not None


def _is_made_of_literals(node: Node | None) -> bool:
    """Return whether an expression computes its value from literals alone: `['C', 'I'].join('')`."""
    return node is not None and not any(part.type in ("identifier", "this") for part in walk(node))


def _is_searched(node: Node) -> bool:
    """Return whether an expression is searched for a text: `/x/.test(error.stack)`, `error.stack.includes("x")`."""
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


def _is_compared_with_test(node: Node) -> bool:
    """Return whether the expression that a node is in, or the cases of its `switch`, mention tests."""
    above = _find_expression(node)
    if above.parent is not None and above.parent.type == "switch_statement":
        above = above.parent
    literals = (get_text(part)[1:-1] for part in walk(above) if part.type in LITERALS)
    return any(re.fullmatch(r"\^?tes(?:t|ting)?\$?", text) for text in literals)


def _is_compared_with_runner(node: Node) -> bool:
    """Return whether the expression that a node is in mentions a test runner or a test."""
    literals = (get_text(part) for part in walk(_find_expression(node)) if part.type in LITERALS)
    return any(re.search(r"jest|vitest|mocha|\btest\b", text) for text in literals)


def _find_expression(node: Node) -> Node:
    """Return the largest expression around a node that is looked at."""
    above = node
    for _ in range(MAX_STATEMENT_DEPTH):
        if above.parent is None or above.parent.type in STATEMENTS:
            break
        above = above.parent
    return above


def _find_spoofing_uses(member: str, node: Node, line: int) -> Iterator[Use]:
    """Yield a member that decides a comparison. One that converts its own object's data is usual."""
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


def _enclosing_function(node: Node) -> str:
    """Return the name of the function that a node is in, empty outside of named functions."""
    above = node.parent
    while above is not None:
        if above.type in FUNCTIONS:
            holder = above.parent if above.type in ("arrow_function", "function_expression") else above
            name = holder.child_by_field_name("name") if holder is not None else None
            if name is not None:
                return get_text(name)
        above = above.parent
    return ""


def _is_in_main_guard(node: Node) -> bool:
    """Return whether a node is in `if (require.main === module)` or the like."""
    above = node.parent
    while above is not None:
        condition = above.child_by_field_name("condition") if above.type == "if_statement" else None
        if condition is not None and re.search(r"require\.main|import\.meta", get_text(condition)):
            return True
        above = above.parent
    return False
