"""Call functions of Go."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from suture.project.languages.calling.javascript_calls import (
    CallDriver,
    CallSite,
    JsonPlus,
    NotALiteral,
    node_text,
    read_driver_program,
    read_literals,
)
from suture.project.languages.reports import Grammars, parse_tree

if TYPE_CHECKING:
    from tree_sitter import Node

GO_GRAMMARS: Grammars = {"": ("tree_sitter_go", "language")}
DRIVER = "calls/calls.go"
PREFIX = "package p\n\nvar _ = "
"""Turns a list of literals into a file that the grammar can parse."""
ANY_ERROR = ["error", None, None]
"""An error, whatever its message is."""
WORDS: Mapping[str, JsonPlus] = {
    "nil": None,
    "true": True,
    "false": False,
    "error": ANY_ERROR,
    "err": ANY_ERROR,
    "math.NaN()": ["number", "NaN"],
    "math.Inf(1)": ["number", "Infinity"],
    "math.Inf(-1)": ["number", "-Infinity"],
}
"""Text of an expression -> its value as JSON-plus."""
MAKES_ERROR = re.compile(r"(?:errors\.New|fmt\.Errorf)\((.*)\)", re.DOTALL)
"""Matches an expression that creates an error; the group is its message."""
PACKAGE = re.compile(rb"^\s*package[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
"""Matches the package clause of a file."""
MODULE = re.compile(rb"^module\s+\"?([\w./~-]+)", re.MULTILINE)
GLUE = """package {package}

import (
\tsuture_calls "{module}/{folder}/calls"
\tsuture_testing "testing"
)

func TestMain(m *suture_testing.M) {{ suture_calls.Serve({name}) }}
"""
"""A test in the candidate's own package can call unexported functions, even if the package has a `main`."""


def read_values(text: str) -> tuple[JsonPlus, ...] | None:
    """Return the values of comma-separated literals as JSON-plus; `None` if one is not a literal."""
    if not text.strip():
        return ()
    root = parse_tree(f"{PREFIX}{text}\n", "a.go", GO_GRAMMARS)
    if root.has_error or root.named_child_count != 2 or root.named_children[1].named_child_count != 1:
        return None
    spec = root.named_children[1].named_children[0]
    values = spec.child_by_field_name("value")
    if values is None or spec.child_by_field_name("type") is not None:
        return None
    return read_literals(values.named_children, _value)


def _value(node: Node) -> JsonPlus:
    """Return the value of a literal as JSON-plus, or raise `NotALiteral`."""
    text = node_text(node)
    if text in WORDS:
        return WORDS[text]
    if node.type == "int_literal":
        # `017` is octal in Go, which Python writes `0o17`.
        return int(re.sub(r"^0(?=\d)", "0o", text.replace("_", "")), 0)
    if node.type == "float_literal":
        return float(text.replace("_", ""))
    if node.type == "raw_string_literal":
        return text[1:-1]
    if node.type in ("interpreted_string_literal", "rune_literal"):
        # Python understands all of Go's escapes.
        content = ast.literal_eval(text)
        return ord(content) if node.type == "rune_literal" else content
    if node.type == "composite_literal":
        return _composite(node)
    if node.type == "literal_value":
        return _listed(node)
    if node.type == "literal_element" and node.named_child_count == 1:
        return _value(node.named_children[0])
    if node.type == "unary_expression" and text[0] in "-&":
        return _unary(text[0], _value(node.named_children[0]))
    if node.type in ("type_conversion_expression", "call_expression"):
        return _converted(node, text)
    raise NotALiteral


def _unary(sign: str, value: JsonPlus) -> JsonPlus:
    """Return the value of `-x` or `&x`."""
    if sign == "&" and isinstance(value, list) and value[0] in ("object", "list"):
        return value  # a pointer to a value is written as the value
    if sign == "-" and isinstance(value, (int, float)) and not isinstance(value, bool):
        return -value
    raise NotALiteral


def _composite(node: Node) -> JsonPlus:
    """Return the value of a literal with its type, such as `[]int{1, 2}` or `map[string]int{"a": 1}`."""
    kind, body = node.child_by_field_name("type"), node.child_by_field_name("body")
    if kind is None or body is None:
        raise NotALiteral
    if kind.type != "map_type":
        return _listed(body)
    return ["map", [_keyed(child, _value) for child in body.named_children if child.type != "comment"]]


def _listed(body: Node) -> JsonPlus:
    """Return the value of `{...}`: a structure if its elements have names, otherwise a list."""
    children = [child for child in body.named_children if child.type != "comment"]
    if children and all(child.type == "keyed_element" for child in children):
        return ["object", [_keyed(child, _field) for child in children]]
    return ["list", [_value(child) for child in children]]


def _keyed(node: Node, read: Callable[[Node], JsonPlus]) -> list[JsonPlus]:
    """Return `[key, value]` of an element `key: value`, with the key read by a function."""
    if node.type != "keyed_element" or node.named_child_count != 2:
        raise NotALiteral
    key, value = node.named_children
    return [read(key), _value(value)]


def _field(node: Node) -> str:
    name = node_text(node)
    if not name.isidentifier():
        raise NotALiteral
    return name


def _converted(node: Node, text: str) -> JsonPlus:
    """Return the value of a new error, or of a conversion such as `int64(1)`, which does not change the value."""
    if match := MAKES_ERROR.fullmatch(text):
        (value,) = read_values(match[1]) or (None,)
        if isinstance(value, str):
            return ["error", None, value]
        raise NotALiteral
    if text.startswith("[]byte(") and node.named_child_count == 2:
        value = _value(node.named_children[1])
        if isinstance(value, str):
            return ["list", list(value.encode())]
    if re.match(r"(?:u?int(?:8|16|32|64)?|float(?:32|64)|rune|byte|string)\(", text):
        values = read_values(text[text.index("(") + 1 : -1]) or ()
        if len(values) == 1 and isinstance(values[0], (int, float, str)):
            return values[0]
    raise NotALiteral


def explain_unsupported(statement: str, name: str) -> str:
    """Return why a function, as the statement shows it, cannot be called with data; empty if it can."""
    match = re.search(rf"\bfunc[ \t]*(\([^)\n]*\)[ \t]*)?{re.escape(name)}[ \t]*(\[)?([^{{\n]*)", statement)
    if match is None:
        return ""
    if match[1]:
        return "it is a method"
    if match[2]:
        return "it has type parameters"
    keyword = re.search(r"\bfunc\b|\bchan\b", match[3])
    return f"a {keyword[0]} stands in its signature" if keyword else ""


def _files(site: CallSite) -> Mapping[str, bytes]:
    """Return the driver as a package of the module, and a test in the package of the function that starts it."""
    package = PACKAGE.search(site.files.get(site.module, b""))
    root = _module_root(site)
    module = MODULE.search(site.files.get(f"{root}go.mod", b""))
    glue = GLUE.format(
        package=package[1].decode() if package else "main",
        module=module[1].decode() if module else "solution",
        folder=site.folder,
        name=site.name,
    )
    folder = site.module.rpartition("/")[0]
    return {
        f"{root}{site.folder}/{DRIVER}": read_driver_program("calls.go"),
        f"{folder}/suture_test.go".lstrip("/"): glue.encode(),
    }


def _module_root(site: CallSite) -> str:
    """Return the folder of a file's Go module with a slash at its end; empty for the project's root."""
    folders = [*site.module.split("/")[:-1]]
    while folders and "/".join((*folders, "go.mod")) not in site.files:
        folders.pop()
    return "".join(f"{folder}/" for folder in folders)


def _argv(site: CallSite) -> tuple[str, ...]:
    root = _module_root(site)
    package = site.module[len(root) :].rpartition("/")[0]
    build = f"go test -c -o /tmp/calls {shlex.quote(f'./{package}')} </dev/null >&2"
    change_folder = f"cd {shlex.quote(f'./{root}')} && " if root else ""
    # The driver talks on descriptors 3 and 4, so what the candidate prints on stdout does no harm.
    return ("sh", "-c", f"{change_folder}{build} && exec /tmp/calls 3<&0 4>&1 </dev/null >&2")


GO_CALLS = CallDriver(
    read_literals=read_values,
    files=_files,
    argv=_argv,
    null="nil",
    raises="panics",
    explain_unsupported=explain_unsupported,
    compiles=True,
    statically_typed=True,
)
