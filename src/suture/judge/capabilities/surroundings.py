"""Find where a file of JavaScript, TypeScript or Go lets its answers depend on the machine, the process or the time.

Tests run on a named host, as some user, in some folder, soon after the process began. Code that compares these with
constants can answer otherwise when it is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from suture.judge.capabilities.use import Use
from suture.mutation.tree_sitter.syntax_tree import find_enclosing, get_field, get_text, walk
from suture.mutation.tree_sitter.value_kinds import FUNCTIONS, MEMBERS, NUMBERS, STRINGS

if TYPE_CHECKING:
    from tree_sitter import Node

PLACES = re.compile(
    r"node:os\.(?:hostname|homedir|userInfo|loadavg|uptime|freemem|totalmem|networkInterfaces)|__filename|__dirname"
    r"|import\.meta\.(?:url|dirname|filename)|process\.env\.(?:HOME|USER|USERNAME|LOGNAME|HOSTNAME|PWD|TMPDIR)"
    r"|process\.(?:cwd|pid|ppid|title|argv0|execPath|memoryUsage|resourceUsage|cpuUsage|umask|argv)"
    r"|os\.(?:Hostname|UserHomeDir|UserCacheDir|UserConfigDir|Getwd|Getpid|Getppid|TempDir)|user\.Current"
    r"|runtime\.(?:NumCgoCall|ReadMemStats)"
)
"""What names the host, the user, the working folder or the process, or measures it."""
READ_VARIABLE = re.compile(r"os\.(?:Getenv|LookupEnv)\(\"(?:HOME|USER|LOGNAME|HOSTNAME|PWD|TMPDIR)\"\)")
CLOCKS = re.compile(
    r"Date\.now|(?:node:perf_hooks\.)?performance\.now|process\.(?:uptime|hrtime|hrtime\.bigint)|Date"
    r"|time\.(?:Now|Since|Until)"
)
"""Functions that tell the time; `Date` if it gets nothing."""
COMPARISONS = ("==", "===", "!=", "!==", "<", "<=", ">", ">=")
ORDERING = ("<", "<=", ">", ">=")
SEARCHES = (
    "includes", "startsWith", "endsWith", "match", "indexOf", "search", "test", "exec", "localeCompare",
    "Contains", "HasPrefix", "HasSuffix", "EqualFold", "Index", "MatchString", "Before", "After",
)  # fmt: skip
"""Functions that compare two strings, or two times."""
DURATION = re.compile(r"time\.(?:Millisecond|Second|Minute|Hour)")
LITERALS = frozenset((*NUMBERS, *STRINGS, "regex", "template_string"))
NEUTRAL = ("/", "\\", "", ".", "~")
"""Texts with which honest code compares a folder, as when it climbs up to the root."""

Resolve = Callable[["Node"], str]


def find_surrounding_uses(node: Node, values: Mapping[str, Node], resolve: Resolve) -> Iterator[Use]:
    """Yield the use if a node compares what surrounds the program with a constant.

    Args:
        values: Name of a variable -> the value that it is declared with.
        resolve: Returns the dotted path of an expression, such as `node:os.hostname`.
    """
    sides = _list_sides(node)
    for side in sides:
        others = [other for other in sides if other is not side]
        if not others or not all(map(_is_constant, others)):
            continue
        name = _find_place(side, values, resolve) or _find_clock(node, side, values, resolve)
        if name and not (name.endswith(".argv") and _reads_options(node, others)):
            yield Use(
                code="detects_environment",
                name=f"{name} compared with a constant",
                line=node.start_point[0] + 1,
                key=f"{name} compared",
            )
            return


def _reads_options(node: Node, constants: Sequence[Node]) -> bool:
    """Return whether a program reads its options: outside of functions, or by the name of one of them."""
    names = [
        get_text(part).strip("\"'`")
        for constant in constants
        for part in walk(constant)
        if part.type in LITERALS
    ]
    return find_enclosing(node, FUNCTIONS) is None or any(name.startswith("-") for name in names)


def _list_sides(node: Node) -> list[Node]:
    """Return the expressions that a node compares with each other."""
    if node.type == "binary_expression":
        sign = node.child_by_field_name("operator")
        sides = [node.child_by_field_name("left"), node.child_by_field_name("right")]
        return [side for side in sides if side is not None] if get_text(sign) in COMPARISONS else []
    function = node.child_by_field_name("function") if node.type == "call_expression" else None
    arguments = node.child_by_field_name("arguments")
    if function is None or arguments is None or function.type not in MEMBERS:
        return []
    owner, member = get_field(function, "object", "operand"), get_field(function, "property", "field")
    if owner is None or get_text(member) not in SEARCHES:
        return []
    given = list(arguments.named_children)
    return given[:2] if get_text(owner) in ("strings", "bytes") else [owner, *given[:1]]


def _is_constant(node: Node) -> bool:
    """Return whether an expression contains a literal and no variable; capital names are classes and constants."""
    parts = list(walk(node))
    literals = [get_text(part) for part in parts if part.type in LITERALS]
    is_variable = any(
        part.type == "identifier" and get_text(part)[:1].islower() and not _is_owner(part) for part in parts
    )
    has_literal = any(text.strip("\"'`") not in NEUTRAL for text in literals)
    return not is_variable and (has_literal or DURATION.fullmatch(get_text(node)) is not None)


def _is_owner(node: Node) -> bool:
    """Return whether a name is the package of a constant or function: `time.Minute`."""
    return node.parent is not None and node.parent.type in MEMBERS


def _find_place(side: Node, values: Mapping[str, Node], resolve: Resolve) -> str:
    """Return what names the machine or the process in an expression, or in the value of one of its variables."""
    for part in _expand(side, values):
        name = resolve(part) if part.type in ("identifier", *MEMBERS) else ""
        if PLACES.fullmatch(name):
            return name
        if part.type == "call_expression" and READ_VARIABLE.fullmatch(get_text(part)):
            return get_text(part)
    return ""


def _find_clock(node: Node, side: Node, values: Mapping[str, Node], resolve: Resolve) -> str:
    """Return the clock on which alone an expression depends, or on the time when the file was loaded."""
    operator = get_text(node.child_by_field_name("operator"))
    if node.type == "binary_expression" and operator not in ORDERING:
        return ""
    found = ""
    for part in walk(side):
        is_name = part.type == "identifier" and not _is_owner(part)
        value = values.get(get_text(part)) if is_name else None
        if value is not None and (
            find_enclosing(value, FUNCTIONS) is not None or not _find_called_clock(value, resolve)
        ):
            return ""
        if is_name and value is None and not CLOCKS.fullmatch(resolve(part)):
            return ""
        found = found or _find_called_clock(part, resolve)
    return found


def _find_called_clock(value: Node, resolve: Resolve) -> str:
    for part in walk(value):
        function = (
            get_field(part, "function", "constructor")
            if part.type in ("call_expression", "new_expression")
            else None
        )
        name = resolve(function) if function is not None else ""
        arguments = part.child_by_field_name("arguments")
        if CLOCKS.fullmatch(name) and not (
            name == "Date" and arguments is not None and arguments.named_children
        ):
            return name
    return ""


def _expand(node: Node, values: Mapping[str, Node]) -> Iterator[Node]:
    """Yield the parts of an expression, and those of the values of its variables."""
    for part in walk(node):
        yield part
        value = values.get(get_text(part)) if part.type == "identifier" else None
        if value is not None and value.type not in FUNCTIONS:
            yield from walk(value)
