"""Descriptions of all events, from their types and docstrings."""

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
    "run",
    "candidates",
    "search",
    "flakiness",
    "model",
    "agents",
    "roles",
    "memory",
    "budget",
    "review",
    "delivery",
)
"""The modules of `suture.core.ledger.kinds`, in the order of a run."""
ATTRIBUTE = re.compile(r"    (\w+): (.*)")
WORDS: Mapping[Any, str] = {str: "text", int: "whole number", float: "number", bool: "true or false"}


@dataclass(frozen=True, kw_only=True)
class FieldDescription:
    """A field of an event, or of a value in it.

    Attributes:
        name: The field's name on disk.
        type: The type of its JSON value, as text.
        text: Its meaning.
        optional: Whether it is left out if it has its default.
    """

    name: str
    type: str
    text: str
    optional: bool


@dataclass(frozen=True, kw_only=True)
class TypeDescription:
    """A kind of event, or a type of value in events.

    Attributes:
        name: The kind, or the type's name.
        version: The version of the kind's form.
        text: What has happened, or what the value is.
        fields: Its fields, in order.
    """

    name: str
    version: int
    text: str
    fields: tuple[FieldDescription, ...]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Kinds of events that belong together.

    Attributes:
        text: Their common topic.
        kinds: The kinds.
        values: Types of values in them that are objects.
    """

    text: str
    kinds: tuple[TypeDescription, ...]
    values: tuple[TypeDescription, ...]


def describe_events() -> Iterator[Stage]:
    """Yield every kind of event by stage; each type of value appears at its first use."""
    described: set[type] = set()
    for stage in STAGES:
        module = sys.modules[f"suture.core.ledger.kinds.{stage}"]
        kinds = [cls for cls in CATALOGUE.values() if cls.__module__ == module.__name__]
        new = [value for kind in kinds for value in _values_in(kind) if value not in described]
        described.update(new)
        yield Stage(
            text=(module.__doc__ or "").strip(),
            kinds=tuple(map(describe_type, kinds)),
            values=tuple(map(describe_type, dict.fromkeys(new))),
        )


def describe_type(cls: Any) -> TypeDescription:
    """Return the description of an event kind or a record, from its fields and docstring."""
    text, _, attributes = (inspect.getdoc(cls) or "").partition("\n\nAttributes:\n")
    texts = _texts(attributes)
    hints = get_type_hints(cls)
    return TypeDescription(
        name=cls.event_kind if issubclass(cls, Payload) else cls.__name__,
        version=cls.event_version if issubclass(cls, Payload) else 1,
        text=" ".join(text.split()),
        fields=tuple(
            FieldDescription(
                name=field.name,
                type=_type_text(hints[field.name]),
                text=texts.get(field.name, ""),
                optional=issubclass(cls, Payload) and _has_default(field),
            )
            for field in fields(cls)
        ),
    )


def _has_default(field: Field[Any]) -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING


def _texts(attributes: str) -> dict[str, str]:
    """Return field -> description from the attributes section of a docstring."""
    texts: dict[str, str] = {}
    name = ""
    for line in attributes.splitlines():
        if found := ATTRIBUTE.fullmatch(line):
            name, texts[found[1]] = found[1], found[2]
        elif name:
            texts[name] = f"{texts[name]} {line.strip()}".strip()
    return texts


def _type_text(hint: Any) -> str:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return f"{_type_text(arguments[0])}, or null"
    if origin is Literal:
        return " or ".join(f"`{value}`" for value in arguments)
    if origin is tuple:
        return f"list of {_type_text(arguments[0])}"
    if origin is Mapping:
        return "object" if arguments[1] is Any else f"object of {_type_text(arguments[1])}"
    return WORDS.get(hint) or f"`{hint.__name__}`"


def _values_in(cls: Any) -> Iterator[type]:
    """Yield the dataclasses inside a type, recursively."""
    for hint in get_type_hints(cls).values():
        for inner in _classes_in(hint):
            yield inner
            yield from _values_in(inner)


def _classes_in(hint: Any) -> Iterator[type]:
    if isinstance(hint, type) and is_dataclass(hint):
        yield hint
    for argument in get_args(hint):
        yield from _classes_in(argument)
