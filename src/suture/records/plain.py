"""Records as JSON values and back, exactly: bytes, and text that is not quite Unicode, included."""

from __future__ import annotations

import base64
import sys
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

__all__ = ["from_plain", "restored", "to_plain"]

RecordT = TypeVar("RecordT")


def to_plain(record: Any) -> dict[str, Any]:
    """A record as JSON values; bytes become base64, tuples become lists."""
    return {field.name: _plain(getattr(record, field.name)) for field in fields(record)}


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return to_plain(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def from_plain(cls: type[RecordT], plain: Mapping[str, Any]) -> RecordT:
    """The record that `to_plain` made `plain` of.

    Unknown fields are passed over: a newer Suture may have written them.

    Raises:
        ValueError: `plain` is not such a record.
    """
    kind: Any = cls
    hints = _hints(kind)
    values: dict[str, Any] = {}
    for field in fields(kind):
        where = f"{cls.__name__}.{field.name}"
        if field.name in plain:
            values[field.name] = restored(hints[field.name], plain[field.name], where)
        elif field.default is MISSING and field.default_factory is MISSING:
            raise ValueError(f"{where} is missing")
    record: RecordT = kind(**values)
    return record


@cache
def _hints(cls: Any) -> dict[str, Any]:
    return get_type_hints(cls)


def restored(hint: Any, value: Any, where: str) -> Any:
    """The value of a type that was made a JSON value.

    Args:
        hint: The type, as a record's field has it.
        value: The JSON value.
        where: What to call it, for people.

    Raises:
        ValueError: It is no such value.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return value
    if origin in (Union, types.UnionType):  # a record's unions are all `X | None`
        return None if value is None else restored(arguments[0], value, where)
    if origin is Literal:
        return _required(value in arguments, value, where)
    if origin is tuple:
        _required(isinstance(value, list | tuple), value, where)
        return tuple(restored(arguments[0], item, where) for item in value)
    if origin is Mapping:
        _required(isinstance(value, Mapping), value, where)
        return {key: restored(arguments[1], item, where) for key, item in value.items()}
    if isinstance(hint, type) and is_dataclass(hint):
        _required(isinstance(value, Mapping), value, where)
        return from_plain(hint, value)
    if hint is bytes:
        return base64.b64decode(_required(isinstance(value, str), value, where), validate=True)
    if hint is float:
        held = type(value) is float or (type(value) is int and abs(value) <= sys.float_info.max)
        return float(_required(held, value, where))
    return _required(type(value) is hint, value, where)


def _required(holds: bool, value: Any, where: str) -> Any:
    if not holds:
        raise ValueError(f"{where} cannot be {value!r:.80}")
    return value
