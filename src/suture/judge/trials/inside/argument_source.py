"""Read the arguments of a call from their source, which may make objects of a few standard types.

The sandbox, which makes the calls, and Suture's own process, which plans them, read the same source. Nothing is
evaluated but literals and the constructors listed here; code under test may have written the source.
"""

from __future__ import annotations

import ast
import datetime
import enum
import fractions
import pathlib
import sys
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

MEMBER = "enum_member"
"""The function that stands for a member of an enumeration in source."""
MAX_SOURCE_CHARS = 1500
"""Characters up to which a value is searched for members of enumerations; longer arguments are not made again."""
MAX_DEPTH = 10
"""Levels of a value that are searched for members of enumerations."""
READ_FAULTS = (
    SyntaxError,
    ValueError,
    TypeError,
    ArithmeticError,
    AttributeError,
    AssertionError,
    LookupError,
    RecursionError,
    MemoryError,
)
"""What `read_source` raises for source that it does not accept; the constructors of UUIDs assert, for instance."""


class EnumMember:
    """Describes a member of an enumeration to a process that does not import the project.

    Args:
        module: Name of the module.
        name: Name of the enumeration in it.
        index: Number of the member, from 0.
        count: How many members there are.
    """

    def __init__(self, module: str, name: str, index: int, count: int) -> None:
        self.module, self.name, self.index, self.count = module, name, index, count

    def __repr__(self) -> str:
        return f"{MEMBER}{(self.module, self.name, self.index, self.count)!r}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EnumMember) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def find(self) -> Any:
        """Return the member itself, from a module that is imported."""
        return list(getattr(sys.modules[self.module], self.name))[self.index]


def _make_fraction(numerator: int, denominator: int) -> fractions.Fraction:
    """Return a fraction of two numbers. A string such as `1e999999999` would use up the memory."""
    if type(numerator) is not int or type(denominator) is not int:
        raise TypeError
    return fractions.Fraction(numerator, denominator)


def _make_decimal(text: str) -> Decimal:
    """Return a finite decimal number; comparisons with others may raise."""
    value = Decimal(text)
    if not value.is_finite():
        raise ValueError(text)
    return value


def _describe_member(module: str, name: str, index: int, count: int) -> EnumMember:
    """Return a description that a process can choose other members by."""
    if not (type(module) is type(name) is str and type(index) is type(count) is int and 0 <= index < count):
        raise ValueError(name)
    return EnumMember(module, name, index, count)


CONSTRUCTORS: dict[str, Callable[..., Any]] = {
    "datetime.date": datetime.date,
    "datetime.datetime": datetime.datetime,
    "datetime.time": datetime.time,
    "datetime.timedelta": datetime.timedelta,
    "datetime.timezone": datetime.timezone,
    "Decimal": _make_decimal,
    "Fraction": _make_fraction,
    "PosixPath": pathlib.PurePosixPath if sys.platform == "win32" else pathlib.PosixPath,
    "PurePosixPath": pathlib.PurePosixPath,
    "UUID": uuid.UUID,
    "frozenset": frozenset,
    "set": set,
}
"""The name in the `repr` of an object -> what makes it. None of these opens, imports or allocates anything."""


def read_source(text: str, find_member: Callable[[EnumMember], Any] | None = None) -> Any:
    """Return the value of an expression's source.

    Args:
        find_member: Returns the value for a member of an enumeration; without it, the description is the value.

    Raises:
        READ_FAULTS: It is anything other than literals and objects of the listed types.
    """
    return _read(ast.parse(text.strip(), mode="eval").body, find_member)


def _read(node: ast.expr, find_member: Callable[[EnumMember], Any] | None) -> Any:
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        items = [_read(item, find_member) for item in node.elts]
        return (
            items
            if isinstance(node, ast.List)
            else tuple(items)
            if isinstance(node, ast.Tuple)
            else set(items)
        )
    if isinstance(node, ast.Dict):
        keys = [_read(key, find_member) for key in node.keys if key is not None]
        return dict(zip(keys, [_read(value, find_member) for value in node.values]))  # noqa: B905  (Python 3.8)
    if not isinstance(node, ast.Call):
        is_utc = isinstance(node, ast.Attribute) and _get_dotted_name(node) == "datetime.timezone.utc"
        utc = datetime.timezone.utc  # noqa: UP017  (the project's interpreter may be older than `datetime.UTC`)
        return utc if is_utc else ast.literal_eval(node)
    name = _get_dotted_name(node.func)
    values = [_read(value, find_member) for value in node.args]
    if name == MEMBER:
        member = _describe_member(*values)
        return member if find_member is None else find_member(member)
    if name not in CONSTRUCTORS:
        raise ValueError(name)
    words = {str(word.arg): _read(word.value, find_member) for word in node.keywords}
    return CONSTRUCTORS[name](*values, **words)


def _get_dotted_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_get_dotted_name(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def render_source(value: Any) -> str:
    """Return the source of a value: its `repr`, in which members of enumerations are described."""
    text = repr(value)
    return _render(value, text, ()) if "<" in text and len(text) <= MAX_SOURCE_CHARS else text


def _render(value: Any, text: str, enclosing: tuple[int, ...]) -> str:
    """Return the source of a value.

    Args:
        text: Its `repr`.
        enclosing: Identities of the containers that it is in; it may be one of them.
    """
    kind: Any = type(value)
    if id(value) in enclosing or len(enclosing) > MAX_DEPTH:
        return text
    inner = (*enclosing, id(value))
    if isinstance(value, enum.Enum):
        members = list(kind)
        found = getattr(sys.modules.get(kind.__module__), kind.__name__, None) is kind and value in members
        member = (
            EnumMember(kind.__module__, kind.__name__, members.index(value), len(members)) if found else None
        )
        return repr(member) if member is not None else text
    if kind is dict:
        pairs = [
            f"{_render(key, repr(key), inner)}: {_render(item, repr(item), inner)}"
            for key, item in value.items()
        ]
        return "{" + ", ".join(pairs) + "}"
    if kind not in (list, tuple, set, frozenset) or not value:
        return text
    items = ", ".join(_render(item, repr(item), inner) for item in value)
    if kind is list:
        return f"[{items}]"
    if kind is tuple:
        return f"({items},)"
    return f"frozenset({{{items}}})" if kind is frozenset else f"{{{items}}}"
