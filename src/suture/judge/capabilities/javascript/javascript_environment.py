"""Find where a JavaScript or TypeScript file asks how and by whom the program was started."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.judge.capabilities.javascript.javascript_names import (
    BUILT_IN,
    GLOBAL_OBJECTS,
    LISTING_CALL,
    TEST_GLOBALS,
    JavaScriptNames,
    get_enclosing_function,
    get_string,
)
from suture.judge.capabilities.use import ENTRY_FUNCTION, TEST_VARIABLE, Use
from suture.mutation.tree_sitter.syntax_tree import find_enclosing, get_field, get_text, walk
from suture.mutation.tree_sitter.value_kinds import FUNCTIONS

if TYPE_CHECKING:
    from tree_sitter import Node

ENVIRONMENTS = ("process.env", "import.meta.env")
"""Objects with the variables of the environment."""
NODE_GLOBALS = (
    "Buffer", "require", "process", "URL", "TextEncoder", "__filename", "__dirname", "structuredClone", "Object",
)  # fmt: skip
"""Global objects that Jest takes from Node."""
MODES = ("NODE_ENV", "MODE")
"""Variables that are `test` under test, and that honest code compares with the names of other modes."""
OTHER_MODE = re.compile("prod(?:uction)?|dev(?:elopment)?|staging|local")
START_PATHS = (
    "process.execArgv", "import.meta.vitest", "require.main", "process.argv", "process.mainModule", "module.parent",
)  # fmt: skip
"""What tells how a program was started. Only the first two tell it without a comparison."""
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
TERMINALS = re.compile(
    r"process\.(?:stdout|stderr|stdin)\.(?:isTTY|hasColors|getColorDepth|getWindowSize)"
    r"|node:tty\.isatty|process\.report(?:\..+)?"
)
"""What shows whether a person started the program at a terminal, or its command line."""
TERMINAL_SIZES = re.compile(r"process\.(?:stdout|stderr)\.(?:columns|rows)")
"""The size of a terminal, undefined without one. Code that also uses the size does not ask for the terminal."""
SHOWING_CALLS = ("JSON.stringify", "String", "node:util.inspect", "node:util.format")
"""Functions that convert an object to a string."""
FOLDER_LISTING = re.compile(r"node:fs\.(?:readdir|opendir|glob)(?:Sync)?")
FILE_QUESTION = re.compile(r"node:fs\.(?:exists|access|stat|lstat)(?:Sync)?")
TEST_FOLDER = re.compile(r"(?:\./)?(?:tests?|specs?|__tests__)/?")
STATEMENTS = ("program", "statement_block", "class_body", "if_statement", "switch_statement")
LITERALS = ("string", "template_string", "regex")
MAX_STATEMENT_DEPTH = 6
"""Expressions around a name in which a comparison with a test runner's name is searched. Chosen by judgement."""


def find_environment_path_uses(path: str, node: Node, line: int) -> Iterator[Use]:
    """Yield the use if the object at a dotted path, such as `process.env.CI`, shows who started the program."""
    owner, _, name = path.rpartition(".")
    is_variable = TEST_VARIABLE.fullmatch(name) or (
        name in MODES and _is_compared_with_test(node, examined=path != "process.env.MODE")
    )
    if owner in ENVIRONMENTS and is_variable:
        yield Use(code="detects_environment", name=path, line=line, key=name)
    elif (
        _shows_runner(path, node)
        or owner in START_OBJECTS
        or path in START_PATHS[:2]
        or (path in START_PATHS and _is_compared_with_runner(node))
    ):
        # What asks whether a stream is a terminal may as well ask for its colours.
        key = owner if TERMINALS.fullmatch(path) else path
        yield Use(code="detects_environment", name=path, line=line, key=key)


def find_membership_uses(node: Node, line: int, names: JavaScriptNames) -> Iterator[Use]:
    """Yield the use in `'CI' in process.env`, and in a test whether a new value is of a built-in class."""
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
    yield from _find_realm_uses(node, line, names)


def find_environment_lists(node: Node, line: int, names: JavaScriptNames) -> Iterator[Use]:
    """Yield a loop over all variables of the environment, and a copy of it that is not made for another process."""
    value = node.child_by_field_name("right") if node.type == "for_in_statement" else node.named_children[0]
    path = names.resolve(value)
    if path in ENVIRONMENTS and not (node.type == "spread_element" and _is_for_process(node)):
        yield Use(code="detects_environment", name=path, line=line, key="each of the environment")


def find_listing_uses(name: str, first: Node | None, line: int, names: JavaScriptNames) -> Iterator[Use]:
    """Yield a call that lists the environment, that gets the whole process, or that lists the working folder."""
    path, shown = names.resolve(first), f"{name}({get_text(first)})"
    if path == "process" and name != "Reflect.get":
        yield Use(code="detects_environment", name=shown, line=line, key="process passed")
    if path in ENVIRONMENTS and (LISTING_CALL.fullmatch(name) or name in SHOWING_CALLS):
        yield Use(code="detects_environment", name=shown, line=line, key="each of the environment")
    if LISTING_CALL.fullmatch(name) and LISTED_OBJECT.search(get_text(first)):
        yield Use(code="detects_environment", name=shown, line=line, key=shown)
    is_stream = name == "node:fs.fstatSync" and get_text(first) in ("0", "1", "2")
    if is_stream or (FILE_QUESTION.fullmatch(name) and TEST_FOLDER.fullmatch(get_string(first))):
        yield Use(code="detects_environment", name=shown, line=line, key=shown)
    is_working_folder = get_string(first) in (".", "./") or get_text(first) == "process.cwd()"
    if is_working_folder and FOLDER_LISTING.fullmatch(name):
        yield Use(code="detects_environment", name=shown, line=line, key="working folder")


def _find_realm_uses(node: Node, line: int, names: JavaScriptNames) -> Iterator[Use]:
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


def _shows_runner(path: str, node: Node) -> bool:
    """Return whether an object at a dotted path shows that a test runner started the program."""
    if TERMINALS.fullmatch(path) or (path in STARTERS and get_enclosing_function(node)):
        return not ENTRY_FUNCTION.fullmatch(get_enclosing_function(node))
    if TERMINAL_SIZES.fullmatch(path):
        return _asks_only_for_size(path.rpartition(".")[2], node)
    root = node
    while path in CHANNELS and root.parent is not None:
        root = root.parent
    return (path in CHANNELS and "process.send(" not in get_text(root)) or (
        path == ENVIRONMENTS[1] and _is_whole_condition(node)
    )


def _asks_only_for_size(name: str, node: Node) -> bool:
    """Return whether code asks whether a terminal has a size, and its function (or file) uses the size nowhere else."""
    around = get_text(_find_expression(node))
    if re.search(r"[!=]==?\s*(?:undefined|null)\b|\btypeof\b|!\s*process\b", around) is None:
        return False
    scope = find_enclosing(node, (*FUNCTIONS, "program"))
    return len(re.findall(rf"\.{name}\b|\{{[^{{}}]*\b{name}\b[^{{}}]*\}}\s*=", get_text(scope))) <= 1


def _is_whole_condition(node: Node) -> bool:
    """Return whether an expression asks only whether there is an object, and for none of its properties."""
    around = get_text(_find_expression(node))
    is_compared = re.search(r"[!=]==?|\?|typeof|&&|\|\||!", around.replace("?.", "")) is not None
    return is_compared and re.search(r"\.env\??[.\[]", around) is None


def _is_for_process(node: Node) -> bool:
    """Return whether a copied environment gets a name such as `env`, as options of `spawn` have it."""
    holder = node.parent.parent if node.parent is not None and node.parent.type == "object" else None
    name = get_field(holder, "key", "name", "left") if holder is not None else None
    return re.search("env", get_text(name), re.IGNORECASE) is not None


def _is_compared_with_test(node: Node, *, examined: bool) -> bool:
    """Return whether the expression that a node is in, or the cases of its `switch`, mention tests.

    Args:
        examined: Whether it also counts that the string is compared, or a part of it is read, without the name of
            another mode. `MODE` may be a variable of the project's own.
    """
    above = _find_expression(node)
    if above.parent is not None and above.parent.type == "switch_statement":
        above = above.parent
    texts = [get_text(part)[1:-1] for part in walk(above) if part.type in LITERALS]
    holder = node.parent
    is_examined = holder is not None and (
        holder.type in ("member_expression", "subscript_expression")
        or (
            holder.type == "binary_expression"
            and get_text(get_field(holder, "operator"))[:1] in "=!<>"
            and texts
        )
    )
    mentions_test = any(re.fullmatch(r"\^?tes(?:t|ting)?\$?", text) for text in texts)
    return mentions_test or (examined and bool(is_examined) and not any(map(OTHER_MODE.search, texts)))


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
