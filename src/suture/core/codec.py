"""Records as JSON values and back, exactly: bytes, and text that is not quite Unicode, included."""

from __future__ import annotations

import base64
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, partial
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

Restore = Callable[[Any, str], Any]
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
    values: dict[str, Any] = {}
    for name, where, restore, required in _ways(kind):
        if name in plain:
            values[name] = restore(plain[name], where)
        elif required:
            raise ValueError(f"{where} is missing")
    record: RecordT = kind(**values)
    return record


@cache
def _ways(cls: Any) -> tuple[tuple[str, str, Restore, bool], ...]:
    """Of each field of a record: name, what to call it, how it is restored, whether it must be there."""
    hints = get_type_hints(cls)
    return tuple(
        (
            field.name,
            f"{cls.__name__}.{field.name}",
            restoring(hints[field.name]),
            field.default is MISSING and field.default_factory is MISSING,
        )
        for field in fields(cls)
    )


@cache
def restoring(hint: Any) -> Restore:
    """How the values of a type that were made JSON values become themselves again.

    It is found once for each type: a long ledger has millions of values.

    Args:
        hint: The type, as a record's field has it.

    Returns:
        A function of the JSON value and of what to call it, for people. It raises `ValueError` where that is
        no such value.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return lambda value, where: value
    if origin in (Union, types.UnionType):  # a record's unions are all `X | None`
        some = restoring(arguments[0])
        return lambda value, where: None if value is None else some(value, where)
    if origin is Literal:
        return lambda value, where: _required(value in arguments, value, where)
    if origin is tuple:
        return partial(_list_restored, restoring(arguments[0]))
    if origin is Mapping:
        return partial(_mapping_restored, restoring(arguments[1]))
    if isinstance(hint, type) and is_dataclass(hint):
        return partial(_record_restored, hint)
    return SCALARS.get(hint) or (lambda value, where: _required(type(value) is hint, value, where))


def _list_restored(restore: Restore, value: Any, where: str) -> tuple[Any, ...]:
    _required(isinstance(value, list | tuple), value, where)
    return tuple([restore(item, where) for item in value])


def _mapping_restored(restore: Restore, value: Any, where: str) -> dict[str, Any]:
    _required(isinstance(value, Mapping), value, where)
    return {key: restore(item, where) for key, item in value.items()}


def _record_restored(cls: Any, value: Any, where: str) -> Any:
    return from_plain(cls, _required(isinstance(value, Mapping), value, where))


def _bytes_restored(value: Any, where: str) -> bytes:
    return base64.b64decode(_required(isinstance(value, str), value, where), validate=True)


def _float_restored(value: Any, where: str) -> float:
    held = type(value) is float or (type(value) is int and abs(value) <= sys.float_info.max)
    return float(_required(held, value, where))


SCALARS: Mapping[Any, Restore] = {bytes: _bytes_restored, float: _float_restored}


def _required(holds: bool, value: Any, where: str) -> Any:
    if not holds:
        raise ValueError(f"{where} cannot be {value!r:.80}")
    return value
