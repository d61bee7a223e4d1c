"""The catalogue of events in words, from its types and their docstrings."""

from __future__ import annotations

import inspect
import re
import sys
import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from suture.core.ledger.event import CATALOGUE, Payload

STAGES = (
    "runs",
    "rounds",
    "searching",
    "calls",
    "agents",
    "advice",
    "memory",
    "spending",
    "people",
    "proofs",
)
"""The parts of `ledger.kinds`, in the order of a run."""
ATTRIBUTE = re.compile(r"    (\w+): (.*)")
WORDS: Mapping[Any, str] = {str: "text", int: "whole number", float: "number", bool: "true or false"}


@dataclass(frozen=True, kw_only=True)
class FieldDescription:
    """One field of an event, or of a value in it.

    Attributes:
        name: What it is called on disk.
        type: What its JSON value is, in words.
        text: What it says.
        optional: Whether it is written only where there is something to say.
    """

    name: str
    type: str
    text: str
    optional: bool


@dataclass(frozen=True, kw_only=True)
class TypeDescription:
    """One kind of event, or one type of value in them.

    Attributes:
        name: The kind, or the type's name.
        version: Of the form of a kind.
        text: What has happened, or what the value is.
        fields: Its fields, in their order.
    """

    name: str
    version: int
    text: str
    fields: tuple[FieldDescription, ...]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Kinds of events that belong together.

    Attributes:
        text: What they are about.
        kinds: The kinds.
        values: Types of values in them that are objects of fields of their own.
    """

    text: str
    kinds: tuple[TypeDescription, ...]
    values: tuple[TypeDescription, ...]


def describe_events() -> Iterator[Stage]:
    """Every kind of event, by the stage of a run that writes it; each type of value where it is first met."""
    met: set[type] = set()
    for stage in STAGES:
        module = sys.modules[f"suture.core.ledger.kinds.{stage}"]
        kinds = [cls for cls in CATALOGUE.values() if cls.__module__ == module.__name__]
        new = [value for kind in kinds for value in _values_in(kind) if value not in met]
        met.update(new)
        yield Stage(
            text=(module.__doc__ or "").strip(),
            kinds=tuple(map(described_type, kinds)),
            values=tuple(map(described_type, dict.fromkeys(new))),
        )


def described_type(cls: Any) -> TypeDescription:
    """A kind of event, or a record, by its fields and its docstring."""
    text, _, attributes = (inspect.getdoc(cls) or "").partition("\n\nAttributes:\n")
    texts = _texts(attributes)
    hints = get_type_hints(cls)
    return TypeDescription(
        name=cls.event_kind if issubclass(cls, Payload) else cls.__name__,
        version=cls.event_version if issubclass(cls, Payload) else 1,
        text=" ".join(text.split()),
        fields=tuple(
            FieldDescription(
                name=one.name,
                type=_in_words(hints[one.name]),
                text=texts.get(one.name, ""),
                optional=issubclass(cls, Payload) and _has_default(one),
            )
            for one in fields(cls)
        ),
    )


def _has_default(one: Field[Any]) -> bool:
    return one.default is not MISSING or one.default_factory is not MISSING


def _texts(attributes: str) -> dict[str, str]:
    """Field -> what a docstring says of it."""
    texts: dict[str, str] = {}
    name = ""
    for line in attributes.splitlines():
        if found := ATTRIBUTE.fullmatch(line):
            name, texts[found[1]] = found[1], found[2]
        elif name:
            texts[name] = f"{texts[name]} {line.strip()}".strip()
    return texts


def _in_words(hint: Any) -> str:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return f"{_in_words(arguments[0])}, or null"
    if origin is Literal:
        return " or ".join(f"`{value}`" for value in arguments)
    if origin is tuple:
        return f"list of {_in_words(arguments[0])}"
    if origin is Mapping:
        return "object" if arguments[1] is Any else f"object of {_in_words(arguments[1])}"
    return WORDS.get(hint) or f"`{hint.__name__}`"


def _values_in(cls: Any) -> Iterator[type]:
    """The types of objects that a type holds, and those that these hold."""
    for hint in get_type_hints(cls).values():
        for inner in _classes_in(hint):
            yield inner
            yield from _values_in(inner)


def _classes_in(hint: Any) -> Iterator[type]:
    if isinstance(hint, type) and is_dataclass(hint):
        yield hint
    for argument in get_args(hint):
        yield from _classes_in(argument)
