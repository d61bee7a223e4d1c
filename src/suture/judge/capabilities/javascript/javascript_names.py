"""What the names in a JavaScript or TypeScript file mean: modules of Node, the global object, and aliases of them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.mutation.tree_sitter.syntax_tree import find_enclosing, get_field, get_text, walk
from suture.mutation.tree_sitter.value_kinds import FUNCTIONS
from suture.project.tuning import MAX_NAME_PARTS

if TYPE_CHECKING:
    from tree_sitter import Node

GLOBAL_OBJECTS = ("globalThis", "global", "window", "self")
TEST_GLOBALS = (
    "expect", "jest", "vi", "describe", "it", "test", "beforeAll", "beforeEach", "afterAll", "afterEach",
)  # fmt: skip
"""Names that test runners define without an import."""
BUILT_IN = (
    r"(?:Array|ArrayBuffer|BigInt|Boolean|Date|Error|Function|JSON|Map|Math|Number|Object|Promise|Proxy|Reflect"
    r"|RegExp|Set|String|Symbol|WeakMap|WeakSet|assert|console|expect|process|SharedArrayBuffer|DataView|Atomics"
    r"|Iterator|(?:Type|Range|Syntax|Reference|Eval|URI|Aggregate)Error|(?:Big)?(?:Int|Uint|Float)\d+(?:Clamped)?Array)"
)
"""Objects of the language, of Node and of test runners that tests rely on."""
PATCHING_CALL = re.compile(
    r"(?:Object|Reflect)\.(?:defineProperty|defineProperties|assign|setPrototypeOf|set|deleteProperty)"
)
"""A function that changes the properties of its first argument."""
LISTING_CALL = re.compile(
    r"(?:Object|Reflect)\.(?:keys|values|entries|ownKeys|getOwnPropertyNames|getOwnPropertySymbols"
    r"|getOwnPropertyDescriptors)"
)
"""A function through which code finds names that it does not contain."""
VALUE_FIELDS = {
    "variable_declarator": ("name", "value"),
    "assignment_pattern": ("left", "right"),
    "required_parameter": ("pattern", "value"),
    "assignment_expression": ("left", "right"),
}
"""Node that gives a variable a value; its first one counts -> the fields of the variable and of the value."""
UNWRAPPED = (
    "parenthesized_expression", "await_expression", "non_null_expression", "as_expression", "satisfies_expression",
)  # fmt: skip
"""Nodes around an expression that stand for the same object."""
NODE_MODULES = (
    "assert", "async_hooks", "buffer", "child_process", "crypto", "events", "fs", "http", "https", "module",
    "os", "path", "perf_hooks", "process", "readline", "stream", "timers", "tty", "url", "util", "vm", "worker_threads",
)  # fmt: skip
"""Modules of Node whose functions are found under any local name. Their dotted paths begin with `node:`."""


class JavaScriptNames:
    """The declared names of a file.

    Args:
        nodes: All nodes of the syntax tree.

    Attributes:
        declared: Names that the file declares: a local function `expect` is not the test runner's.
        assigned: Name -> the value that it is first declared with.
        packages: Name -> the package that it is imported from, or that its object belongs to. Modules of Node do not
            count.
        copies: Names of copies, whose properties may change: `const env = { ...process.env }`.
        patching: Function that changes the properties of parameters -> their positions. A method has a dot before
            its name.
    """

    def __init__(self, nodes: list[Node]) -> None:
        self.declared = {get_text(name) for node in nodes for name in _find_declared_names(node)}
        self.functions = {
            get_text(node.child_by_field_name("name"))
            for node in nodes
            if node.type == "function_declaration"
        }
        self.assigned: dict[str, Node] = {}
        self.packages: dict[str, str] = {}
        self.copies: set[str] = set()
        self._aliases: dict[str, str] = {}
        self.patching: dict[str, set[int]] = defaultdict(set)
        for node in nodes:
            for function, position in _find_changed_parameter(node):
                self.patching[function].add(position)
            if node.type == "import_statement":
                self._add_import(node)
            elif node.type in VALUE_FIELDS:
                self._add_variable(node)

    @property
    def modules(self) -> set[str]:
        """Local names of modules of Node and of their members."""
        return {name for name, path in self._aliases.items() if path.startswith("node:")}

    def resolve(self, node: Node | None, depth: int = 0) -> str:
        """Return the dotted path of an expression, such as `node:fs.rmSync`; empty if it has none.

        `process['exit']` is `process.exit`, and so is `p.exit` after `const p = process`.
        """
        if node is None or depth > MAX_NAME_PARTS:
            return ""
        if node.type in ("identifier", "this"):
            name = get_text(node)
            return self._aliases.get(name, name)
        if node.type == "meta_property":
            return get_text(node)
        if node.type in UNWRAPPED:
            return self.resolve(node.named_children[0] if node.named_children else None, depth + 1)
        if node.type in ("member_expression", "subscript_expression"):
            key = get_field(node, "property", "index")
            owner = self.resolve(node.child_by_field_name("object"), depth + 1)
            name = self.get_key(key) if node.type == "subscript_expression" else get_text(key)
            return _normalize(f"{owner}.{name}") if owner and name else ""
        called = get_text(node.child_by_field_name("function")) if node.type == "call_expression" else ""
        if called in ("require", "import"):
            return _name_module(get_string(get_first_argument(node)))
        if called == "Reflect.get":
            owner, name = self.resolve(get_first_argument(node), depth + 1), self.get_key(_get_second(node))
            return _normalize(f"{owner}.{name}") if owner and name else ""
        return ""

    def get_key(self, node: Node | None) -> str:
        """Return the string that a bracketed expression is, or that its variable is declared with."""
        return get_string(node) or get_string(self.assigned.get(get_text(node)))

    def find_destructured(self, node: Node) -> Iterator[tuple[str, Node]]:
        """Yield (dotted path, node) of each property that a declaration takes from an object."""
        pattern, value = map(node.child_by_field_name, VALUE_FIELDS[node.type])
        owner = self.resolve(value)
        if pattern is None or pattern.type != "object_pattern" or not owner:
            return
        for part in pattern.named_children:
            key = get_field(part, "key", "left") or part
            local = get_field(part, "value", "left") or part
            yield _normalize(f"{owner}.{get_text(key)}"), local

    def find_package(self, node: Node | None) -> str:
        """Return the package that an expression's object belongs to; empty if the file does not import it.

        What a function returns belongs to no package.
        """
        while node is not None and node.type in ("member_expression", "subscript_expression", *UNWRAPPED):
            inner = node.named_children[0] if node.named_children else None
            node = get_field(node, "object") or inner
        if node is None or node.type not in ("identifier", "call_expression"):
            return ""
        if node.type == "call_expression":
            is_loading = get_text(node.child_by_field_name("function")) == "require"
            return _name_package(get_string(get_first_argument(node))) if is_loading else ""
        function = find_enclosing(node, FUNCTIONS)
        while function is not None:
            if get_text(node) in _list_parameters(function):
                return ""
            function = find_enclosing(function, FUNCTIONS)
        return self.packages.get(get_text(node), "")

    def _add_import(self, node: Node) -> None:
        source = get_string(node.child_by_field_name("source"))
        module, package = _name_module(source), _name_package(source)
        clause = next((part for part in node.named_children if part.type == "import_clause"), None)
        if package and clause is not None:
            self.packages |= dict.fromkeys(_list_identifiers(clause), package)
        if not module or clause is None:
            return
        for part in clause.named_children:
            if part.type == "identifier":
                self._aliases[get_text(part)] = module
            elif part.type == "namespace_import":
                self._aliases[get_text(part.named_children[0])] = module
            for specifier in part.named_children if part.type == "named_imports" else ():
                name = get_text(specifier.child_by_field_name("name"))
                self._aliases[get_text(get_field(specifier, "alias", "name"))] = _normalize(
                    f"{module}.{name}"
                )

    def _add_variable(self, node: Node) -> None:
        name, value = map(node.child_by_field_name, VALUE_FIELDS[node.type])
        if name is None or value is None:
            return
        package = self.find_package(value)
        if package and name.type in ("identifier", "object_pattern"):
            self.packages |= dict.fromkeys(_list_identifiers(name), package)
        if name.type == "identifier":
            if node.type == "variable_declarator":
                self.assigned.setdefault(get_text(name), value)
            copied = self.resolve(_get_copied(value))
            if copied:
                self.copies.add(get_text(name))
            path = self.resolve(value) or copied
            if path and path != get_text(name):
                self._aliases.setdefault(get_text(name), path)
        for path, local in self.find_destructured(node):
            self._aliases.setdefault(get_text(local), path)


def _get_copied(node: Node) -> Node | None:
    """Return the object of which an object literal is nothing but a copy: `{ ...process.env }`."""
    parts = node.named_children if node.type == "object" else []
    is_copy = len(parts) == 1 and parts[0].type == "spread_element"
    return parts[0].named_children[0] if is_copy else None


def _find_changed_parameter(node: Node) -> Iterator[tuple[str, int]]:
    """Yield function and position of the parameter whose property a node changes, if the function has a name."""
    changed = None
    if node.type == "assignment_expression":
        changed = get_field(get_field(node, "left") or node, "object")
    elif node.type == "call_expression" and PATCHING_CALL.fullmatch(get_text(get_field(node, "function"))):
        changed = get_first_argument(node)
    if changed is None or changed.type != "identifier":
        return
    function = find_enclosing(node, FUNCTIONS)
    while function is not None:
        parameters = _list_parameters(function)
        if get_text(changed) in parameters:
            name = _name_function(function)
            if name:
                yield name, parameters.index(get_text(changed))
            return
        function = find_enclosing(function, FUNCTIONS)


def _list_parameters(function: Node) -> list[str]:
    """Return the parameters of a function in their order, each without its type and its default value."""
    single, several = map(function.child_by_field_name, ("parameter", "parameters"))
    given = several.named_children if several is not None else [single] if single is not None else []
    return [get_text(get_field(part, "pattern", "left") or part) for part in given if part.type != "comment"]


def _name_function(function: Node) -> str:
    """Return the name by which a file calls a function, with a dot before that of a method; empty if it has none."""
    if function.type == "method_definition":
        return f".{get_text(function.child_by_field_name('name'))}"
    name = function.child_by_field_name("name")
    if name is None and function.parent is not None and function.parent.type == "variable_declarator":
        name = function.parent.child_by_field_name("name")
    return get_text(name)


def get_enclosing_function(node: Node) -> str:
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


def get_string(node: Node | None) -> str:
    """Return the content of a string literal; empty for anything else."""
    if node is None or node.type not in ("string", "template_string"):
        return ""
    return (
        ""
        if any(part.type == "template_substitution" for part in node.named_children)
        else get_text(node)[1:-1]
    )


def get_first_argument(node: Node) -> Node | None:
    """Return the first argument of a call, or `None`."""
    arguments = node.child_by_field_name("arguments")
    return arguments.named_children[0] if arguments is not None and arguments.named_children else None


def _get_second(node: Node) -> Node | None:
    arguments = node.child_by_field_name("arguments")
    return arguments.named_children[1] if arguments is not None and arguments.named_child_count > 1 else None


def _name_module(name: str) -> str:
    """Return the first part of the dotted paths of a module of Node; empty for other modules."""
    root, *inner = name.removeprefix("node:").split("/")
    if root not in NODE_MODULES:
        return ""
    return _normalize(".".join((root if root == "process" else f"node:{root}", *inner)))


def _name_package(name: str) -> str:
    """Return the package of an imported module; empty for files of the project and for modules of Node."""
    first, _, rest = name.partition("/")
    if not re.match(r"@?\w", first) or first.startswith("node:") or first in NODE_MODULES:
        return ""
    return f"{first}/{rest.partition('/')[0]}" if first.startswith("@") else first


def _list_identifiers(node: Node) -> list[str]:
    kinds = ("identifier", "shorthand_property_identifier_pattern")
    return [get_text(part) for part in walk(node) if part.type in kinds]


def _normalize(path: str) -> str:
    """Return a path without the global object before one of its properties, and without `promises` of `fs`."""
    for name in GLOBAL_OBJECTS:
        if path.startswith(f"{name}.process"):
            path = path.removeprefix(f"{name}.")
    path = re.sub(r"^(node:\w+|process)\.(?:default|Module)\b", r"\1", path)
    return path.replace("node:fs.promises.", "node:fs.", 1)


def _find_declared_names(node: Node) -> Iterator[Node]:
    """Yield the names that a node declares, and those that it only might declare."""
    if node.type in (
        "variable_declarator",
        "function_declaration",
        "class_declaration",
        "required_parameter",
        "optional_parameter",
    ):
        name = get_field(node, "name", "pattern")
        if name is not None:
            yield name
    elif node.type in (
        "formal_parameters",
        "import_clause",
        "object_pattern",
        "array_pattern",
        "catch_clause",
    ):
        yield from node.named_children
    elif node.type in ("arrow_function", "import_specifier", "namespace_import"):
        name = get_field(node, "parameter", "alias", "name")
        yield from (name,) if name is not None else node.named_children[:1]
    elif node.type in ("for_in_statement", "assignment_pattern", "object_assignment_pattern"):
        name = node.child_by_field_name("left")
        if name is not None:
            yield name
    elif node.type in ("pair_pattern", "rest_pattern"):
        yield from node.named_children[-1:]
