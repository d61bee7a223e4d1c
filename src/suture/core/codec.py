"""Turn records into JSON values and back, without loss.

Run folders, events, certificates and checkpoints all use `encode_record` and `decode_record`. A record is a
frozen dataclass. Its fields are numbers, strings, bytes, `Literal` codes, tuples, mappings with string keys,
or other records. Strings may hold lone surrogates: a model can write them, and `json.dumps` escapes them.
"""

from __future__ import annotations

import base64
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, partial
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

Decoder = Callable[[Any, str], Any]
"""Takes a JSON value and the name of its field for error messages; returns the decoded value."""
RecordT = TypeVar("RecordT")


class WrongTypeError(ValueError):
    """A JSON value has a type that Suture never writes into this field."""


def json_key(field_name: str) -> str:
    """Return the JSON key of a field.

    It is the field's name without an underscore at the end: `from` is a Python keyword, so the field of the
    key `from` is called `from_`.
    """
    return field_name.removesuffix("_")


def encode_record(record: Any) -> dict[str, Any]:
    """Return a record as JSON values. Bytes become base64, tuples become lists."""
    return {json_key(field.name): _encode(getattr(record, field.name)) for field in fields(record)}


def _encode(value: Any) -> Any:
    if is_dataclass(value):
        return encode_record(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Mapping):
        return {key: _encode(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encode(item) for item in value]
    return value


def decode_record(cls: type[RecordT], data: Mapping[str, Any]) -> RecordT:
    """Return the record that `encode_record` turned into `data`.

    Unknown keys are ignored, because a newer version may have written them. A missing key takes the default
    of its field.

    Raises:
        WrongTypeError: A value has the wrong type.
        ValueError: A required key is missing, or a value is not allowed.
    """
    record_class: Any = cls
    values: dict[str, Any] = {}
    missing = ""
    for name, key, label, decode, is_required in _field_decoders(record_class):
        if key in data:
            values[name] = decode(data[key], label)
        elif is_required:
            missing = missing or label
    if missing:  # reported last, because a wrong type is the stronger sign of damage
        raise ValueError(f"{missing} is missing")
    record: RecordT = record_class(**values)
    return record


@cache
def _field_decoders(cls: Any) -> tuple[tuple[str, str, str, Decoder, bool], ...]:
    """Return (name, JSON key, name for error messages, decoder, whether it is required) of each field."""
    hints = get_type_hints(cls)
    return tuple(
        (
            field.name,
            json_key(field.name),
            f"{cls.__name__}.{field.name}",
            _decoder_for(hints[field.name]),
            field.default is MISSING and field.default_factory is MISSING,
        )
        for field in fields(cls)
    )


# Cached for each type: a long ledger holds millions of values, and resolving a type is slow.
@cache
def _decoder_for(hint: Any) -> Decoder:
    """Return the decoder for fields with a type annotation."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return lambda value, label: value
    if origin in (Union, types.UnionType):  # every union in a record is `X | None`
        decode = _decoder_for(arguments[0])
        return lambda value, label: None if value is None else decode(value, label)
    if origin is Literal:
        return partial(_decode_literal, arguments)
    if origin is tuple:
        return partial(_decode_tuple, _decoder_for(arguments[0]))
    if origin is Mapping:
        return partial(_decode_mapping, _decoder_for(arguments[1]))
    if isinstance(hint, type) and is_dataclass(hint):
        return partial(_decode_nested, hint)
    if hint is bytes:
        return _decode_bytes
    if hint is float:
        return _decode_float
    return lambda value, label: _require_type(type(value) is hint, value, label)


def _decode_literal(allowed: tuple[Any, ...], value: Any, label: str) -> Any:
    _require_type(isinstance(value, str | int), value, label)
    if value not in allowed:
        raise ValueError(f"{label} cannot be {value!r:.80}")
    return value


def _decode_tuple(decode: Decoder, value: Any, label: str) -> tuple[Any, ...]:
    _require_type(isinstance(value, list | tuple), value, label)
    return tuple([decode(item, label) for item in value])


def _decode_mapping(decode: Decoder, value: Any, label: str) -> dict[str, Any]:
    _require_type(isinstance(value, Mapping), value, label)
    return {key: decode(item, label) for key, item in value.items()}


def _decode_nested(cls: Any, value: Any, label: str) -> Any:
    return decode_record(cls, _require_type(isinstance(value, Mapping), value, label))


def _decode_bytes(value: Any, label: str) -> bytes:
    return base64.b64decode(_require_type(isinstance(value, str), value, label), validate=True)


def _decode_float(value: Any, label: str) -> float:
    # A JSON number without a fraction arrives as an `int`, which may be too large for a `float`.
    is_number = type(value) is float or (type(value) is int and abs(value) <= sys.float_info.max)
    return float(_require_type(is_number, value, label))


def _require_type(is_right: bool, value: Any, label: str) -> Any:
    if not is_right:
        raise WrongTypeError(f"{label} cannot be {value!r:.80}")
    return value
