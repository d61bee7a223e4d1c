"""Call functions of JavaScript and TypeScript.

Types for calling a single function of a language from its own process, and for reading literals.

Values are transferred as JSON-plus: JSON's scalars, and a list `[tag, ...]` for everything else. The tags
are `list`, `object` (pairs with names as keys), `map` (pairs), `set`, `undefined`, `number` (`NaN`,
`Infinity`, `-Infinity`, `-0`), `bigint`, `date` (milliseconds), `regexp`, `typed` (name, numbers), `error`
(name, message; `null` for any), `results` (of a function with several) and `foreign` (no data, which equals
nothing).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from importlib import resources
from typing import TYPE_CHECKING, Any

from suture.project.languages.reports import parse_tree

if TYPE_CHECKING:
    from tree_sitter import Node


JsonPlus = Any
"""A JSON-plus value."""
ReadValues = Callable[[str], tuple[JsonPlus, ...] | None]


@dataclass(frozen=True, kw_only=True)
class CallSite:
    """Where the function to call is.

    Attributes:
        module: Path of its file.
        folder: Folder of Suture's files within the project.
        files: The project, including the candidate.
    """

    module: str
    name: str
    folder: str
    files: Mapping[str, bytes]


@dataclass(frozen=True, kw_only=True)
class CallDriver:
    """A program of a language that loads a candidate and answers calls.

    Attributes:
        read_literals: Returns the values of comma-separated literals; `None` if one is not a literal.
        files: Returns the files to put next to the candidate, path -> content.
        argv: Returns the command that starts it. It communicates on file descriptors 3 and 4.
        null: The null value of the language.
        raises: How people say that a call fails.
        explain_unsupported: Returns why a function of the statement cannot be called; empty if it can.
        compiles: Whether a candidate is compiled first, which may take as long as a test run.
        missing_remedy: What is missing if the driver reports that it cannot load the language.
        statically_typed: Whether the function's types give a literal its meaning, as in Go: nil is an empty
            list, a missing field is zero, and there may be several results, the last of them an error.
    """

    read_literals: ReadValues
    files: Callable[[CallSite], Mapping[str, bytes]]
    argv: Callable[[CallSite], Sequence[str]]
    null: str
    raises: str
    explain_unsupported: Callable[[str, str], str] = lambda statement, name: ""
    compiles: bool = False
    missing_remedy: str = ""
    statically_typed: bool = False


class NotALiteral(Exception):
    """The syntax is not a literal that Suture reads."""


def read_driver_program(name: str) -> bytes:
    """Return a driver program of this package."""
    return resources.files(__package__).joinpath(name).read_bytes()


def node_text(node: Node) -> str:
    """Return the source of a node."""
    return (node.text or b"").decode("utf-8", "surrogatepass")


def read_literals(nodes: Iterable[Node], value_of: Callable[[Node], JsonPlus]) -> tuple[JsonPlus, ...] | None:
    """Return the values of literals, without comments; `None` if one is not a literal."""
    try:
        return tuple(value_of(node) for node in nodes if node.type != "comment")
    except (NotALiteral, ValueError, SyntaxError, OverflowError, RecursionError):
        return None


GRAMMARS = {"": ("tree_sitter_javascript", "language")}
DRIVER = "node_driver.mjs"
WORDS: Mapping[str, JsonPlus] = {
    "null": None,
    "true": True,
    "false": False,
    "undefined": ["undefined"],
    "NaN": ["number", "NaN"],
    "Infinity": ["number", "Infinity"],
}
"""Text of an expression -> its value as JSON-plus."""
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}
"""Character after a backslash -> what it stands for; any other stands for itself."""
ESCAPE = re.compile(r"\\(u\{[0-9a-fA-F]{1,6}\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|\r?\n|.)", re.DOTALL)
ABSOLUTE_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{3})?)?(?:Z|[+-]\d\d:\d\d))?")
"""Matches a time that JavaScript reads independently of the machine: a day alone begins in UTC."""
EPOCH, MILLISECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)
MAX_SAFE_INTEGER = 1 << 53
"""Largest integer up to which JavaScript's numbers represent every integer exactly."""
STRIP_TYPES_OPTION = "--experimental-strip-types"
"""Makes node load TypeScript by leaving out its types."""


def read_values(text: str) -> tuple[JsonPlus, ...] | None:
    """Return the values of comma-separated literals as JSON-plus; `None` if one is not a literal."""
    root = parse_tree(f"[{text}\n]", "a.js", GRAMMARS)
    statement = root.named_children[0] if root.named_child_count == 1 and not root.has_error else None
    array = statement.named_children[0] if statement and statement.named_child_count == 1 else None
    if array is None or array.type != "array" or (array.start_byte, array.end_byte) != (0, root.end_byte):
        return None
    return read_literals(array.named_children, _value)


def _value(node: Node) -> JsonPlus:
    """Return the value of a literal as JSON-plus, or raise `NotALiteral`."""
    text = node_text(node)
    if text in WORDS:
        return WORDS[text]
    if node.type == "number":
        return _number(text)
    if node.type in ("string", "template_string"):
        return _string(node)
    if node.type == "array":
        return ["list", [_value(child) for child in node.named_children]]
    if node.type == "object":
        return ["object", [_pair(child) for child in node.named_children]]
    if node.type == "regex":
        return ["regexp", text]
    if node.type == "unary_expression" and text[0] in "+-":
        return _signed(text[0], _value(node.named_children[0]))
    if node.type == "new_expression":
        return _new_object(node)
    raise NotALiteral


def _number(text: str) -> JsonPlus:
    plain = text.replace("_", "").lower()
    if plain.endswith("n"):
        return ["bigint", str(int(plain[:-1], 0))]
    value = float(int(plain, 0)) if plain[:2] in ("0x", "0b", "0o") else float(plain)
    return int(value) if value.is_integer() and abs(value) <= MAX_SAFE_INTEGER else value


def _signed(sign: str, value: JsonPlus) -> JsonPlus:
    """Return the value of a number with a sign."""
    if sign == "+" or isinstance(value, bool):  # operations, whose results are not data as written
        raise NotALiteral
    if isinstance(value, (int, float)):
        return -value if value else ["number", "-0"]  # JSON has no negative zero for integers
    if value == ["number", "Infinity"]:
        return ["number", "-Infinity"]
    if isinstance(value, list) and value[0] == "bigint":
        return ["bigint", str(-int(value[1]))]
    raise NotALiteral


def _string(node: Node) -> str:
    if any(child.type == "template_substitution" for child in node.named_children):
        raise NotALiteral
    # Encoding and decoding joins two escapes of a surrogate pair to one character.
    return ESCAPE.sub(_escaped, node_text(node)[1:-1]).encode("utf-16", "surrogatepass").decode("utf-16")


def _escaped(match: re.Match[str]) -> str:
    """Return the character of an escape; a backslash before a line break stands for nothing."""
    code = match[1]
    if code[0] in "ux" and len(code) > 1:
        return chr(int(code[1:].strip("{}"), 16))
    return "" if code.endswith("\n") else ESCAPES.get(code, code)


def _pair(node: Node) -> list[JsonPlus]:
    """Return `[name, value]` of a member of an object."""
    key, value = node.child_by_field_name("key"), node.child_by_field_name("value")
    if node.type != "pair" or key is None or value is None:
        raise NotALiteral
    if key.type == "string":
        return [_string(key), _value(value)]
    if key.type not in ("property_identifier", "number"):
        raise NotALiteral
    return [str(_number(node_text(key))) if key.type == "number" else node_text(key), _value(value)]


def _new_object(node: Node) -> JsonPlus:
    """Return the value of `new Map(...)`, `new Set(...)`, an error or a date."""
    constructor, arguments = node.child_by_field_name("constructor"), node.child_by_field_name("arguments")
    name = node_text(constructor) if constructor else ""
    values = [_argument(child) for child in arguments.named_children] if arguments else []
    if name in ("Map", "Set") and len(values) <= 1:
        items = values[0][1] if values and isinstance(values[0], list) and values[0][0] == "list" else None
        if values and items is None:
            raise NotALiteral
        return [name.lower(), [_item(item) for item in items or []] if name == "Map" else items or []]
    if name.endswith("Error") and len(values) <= 1:
        return ["error", name, values[0] if values else ""]
    if name == "Date" and len(values) == 1:
        return ["date", _read_milliseconds(values[0])]
    raise NotALiteral


def _argument(node: Node) -> JsonPlus:
    """Return the value of a literal, or of `Date.UTC(2024, 1, 29)` in milliseconds."""
    function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if function is None or arguments is None or node_text(function) != "Date.UTC":
        return _value(node)
    parts = [_value(child) for child in arguments.named_children]
    if not 2 <= len(parts) <= 6 or any(type(part) is not int for part in parts) or parts[0] < 100:
        raise NotALiteral  # a year before 100 is one of the 20th century
    year, month, *rest = parts
    day, hours, minutes, seconds = (*(rest or [1]), 0, 0, 0)[:4]
    moment = datetime(year, month + 1, day, tzinfo=UTC)
    return (moment - EPOCH + timedelta(hours=hours, minutes=minutes, seconds=seconds)) // MILLISECOND


def _read_milliseconds(value: JsonPlus) -> int:
    """Return the time of a date from the argument of its constructor; without a zone it depends on the machine."""
    if type(value) is int:
        return value
    if not isinstance(value, str) or not ABSOLUTE_TIME.fullmatch(value):
        raise NotALiteral
    moment = datetime.fromisoformat(value)
    return (moment.replace(tzinfo=moment.tzinfo or UTC) - EPOCH) // MILLISECOND


def _item(item: JsonPlus) -> list[JsonPlus]:
    """Return `[key, value]` of an item of a `Map`, which is written as a list of two."""
    if not (isinstance(item, list) and item[0] == "list" and len(item[1]) == 2):
        raise NotALiteral
    return list(item[1])


def _files(site: CallSite) -> Mapping[str, bytes]:
    return {f"{site.folder}/{DRIVER}": read_driver_program(DRIVER)}


JAVASCRIPT_CALLS = CallDriver(
    read_literals=read_values,
    files=_files,
    argv=lambda site: ("sh", "-c", f"exec node {site.folder}/{DRIVER} 3<&0 4>&1 </dev/null >&2"),
    null="null",
    raises="throws",
)
TYPESCRIPT_CALLS = replace(
    JAVASCRIPT_CALLS,
    # This is an empty package.json: without a `type`, node itself distinguishes `import` from `require`.
    files=lambda site: {**_files(site), "package.json": b"{}\n"},
    argv=lambda site: (
        "sh",
        "-c",
        # Node before 22.7 does not know the option. It needs tsx, which the driver looks for.
        f"exec node $(node {STRIP_TYPES_OPTION} -e 0 </dev/null 2>/dev/null >&2 && "
        f"echo {STRIP_TYPES_OPTION} --disable-warning=ExperimentalWarning) "
        f"{site.folder}/{DRIVER} 3<&0 4>&1 </dev/null >&2",
    ),
    missing_remedy="TypeScript needs Node 22.7 or newer, or tsx: npm install tsx",
)
