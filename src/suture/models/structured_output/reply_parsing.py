"""Parsing of a structured reply: from its text to a value of a type, or the reason why that is impossible."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from suture.models.structured_output.lenient_json import find_labelled_fields, find_objects, normalise_name
from suture.models.structured_output.reply_schemas import resolve_reference, strict_schema

BOOLEAN_WORDS = {"true": True, "yes": True, "false": False, "no": False}
PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%")
FRACTION = re.compile(r"(\d+(?:\.\d+)?)\s*/\s*(\d+(?:\.\d+)?)")
KIND_WORD = re.compile(r"(?:error|fault|bug|issue|problem|strategy)s?$")
PLACEHOLDER = re.compile(
    r"[\W_]*|<[^<>]*>|(?:a )?(?:string|text|number|value|example)|your .*|a text of at most .*"
)


class SchemaMismatch(ValueError):
    """A value that does not fit the schema; the message names the member and the reason, for the model."""


def coerce_value(value: Any, part: Mapping[str, Any], root: Mapping[str, Any], where: str = "") -> Any:
    """Convert a value to the form that a part of a schema asks for. Only the form changes, never the meaning.

    Args:
        value: A JSON value of the reply.
        part: The schema of the value.
        root: The whole schema, for its `$defs`.
        where: Path of the value, for messages.

    Raises:
        SchemaMismatch: The value cannot be converted without guessing.
    """
    part = resolve_reference(part, root)
    if isinstance(value, dict) and part.get("type") != "object":
        value = _unwrap_schema_value(value, where)
    if "enum" in part or "const" in part:
        return _choice(value, part.get("enum") or [part["const"]], where)
    match part.get("type"):
        case "object":
            return _object(value, part, root, where)
        case "array":
            items = value if isinstance(value, list) else [value]
            return [coerce_value(item, part["items"], root, f"{where}[{i}]") for i, item in enumerate(items)]
        case "number" | "integer" as kind:
            return _number(value, kind, where)
        case "boolean":
            return _boolean(value, where)
        case "string":
            return _text(value, where)
    return value


def _unwrap_schema_value(value: dict[str, Any], where: str) -> Any:
    """Return the value of `{"type": "string", "value": ...}`: some models mix schema and data."""
    if "value" in value and value.keys() <= {"value", "type", "description", "title", "enum"}:
        return value["value"]
    raise SchemaMismatch(f"{where} is an object")


def _object(value: Any, part: Mapping[str, Any], root: Mapping[str, Any], where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SchemaMismatch(f"{where or 'the reply'} is not an object")
    given: dict[str, Any] = {}
    for name, inner in value.items():
        bare = normalise_name(str(name))
        if bare in given and given[bare] != inner:
            raise SchemaMismatch(f"{name!r} is said twice, differently")
        given[bare] = inner
    result: dict[str, Any] = {}
    for name, field in part.get("properties", {}).items():
        path = f"{where}.{name}" if where else name
        if normalise_name(name) not in given:
            raise SchemaMismatch(f"{path} is missing")
        result[name] = coerce_value(given[normalise_name(name)], field, root, path)
    return result


def _choice(value: Any, choices: list[Any], where: str) -> Any:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, str):
        name = normalise_name(value.rpartition(".")[2] if re.fullmatch(r"[A-Z]\w*\.\w+", value) else value)
        for wanted in (name, KIND_WORD.sub("", name)):
            named = [choice for choice in choices if normalise_name(str(choice)) == wanted]
            if len(named) == 1:
                return named[0]
    elif value in choices and type(value) is not bool:
        return value
    raise SchemaMismatch(f"{where} must be one of {', '.join(map(str, choices))}, not {value!r:.60}")


def _number(value: Any, kind: str, where: str) -> int | float:
    if isinstance(value, str):
        value = _parsed_number(value, where)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise SchemaMismatch(f"{where} must be a number, not {value!r:.60}")
    if kind == "integer" and value != int(value):
        raise SchemaMismatch(f"{where} must be a whole number, not {value!r}")
    return int(value) if kind == "integer" else value


def _parsed_number(text: str, where: str) -> float:
    text = text.strip()
    if percent := PERCENT.fullmatch(text):
        return float(percent[1]) / 100
    if (fraction := FRACTION.fullmatch(text)) and float(fraction[2]):
        return float(fraction[1]) / float(fraction[2])
    if re.fullmatch(r"[-+]?\d+(?:\.\d+)?", text):
        return float(text)
    raise SchemaMismatch(f"{where} must be a number, not {text!r:.60}")


def _boolean(value: Any, where: str) -> bool:
    if isinstance(value, str):
        value = BOOLEAN_WORDS.get(value.strip().lower())
    if not isinstance(value, bool):
        raise SchemaMismatch(f"{where} must be true or false")
    return value


def _text(value: Any, where: str) -> str:
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        value = " ".join(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise SchemaMismatch(f"{where} must be a text, not {value!r:.60}")
    text = value.strip()
    if PLACEHOLDER.fullmatch(text.lower()):
        raise SchemaMismatch(f"{where} says nothing: {text!r:.60}")
    return text


T = TypeVar("T", bound=BaseModel)


class UnreadableReply(ValueError):
    """A reply without a value of the type; the message is for the model that wrote it."""


@dataclass(frozen=True, kw_only=True)
class ParsedReply(Generic[T]):
    """A parsed value, and whether it took tolerance to read it."""

    value: T
    salvaged: bool


def parse_reply(text: str, type_: type[T], *, salvage: bool = True) -> ParsedReply[T]:
    """Parse a complete reply; truncated ones must not be passed here.

    A reply with two different values is refused.

    Args:
        text: The reply's text.
        type_: The type of the value.
        salvage: Whether anything but plain JSON is read.

    Raises:
        UnreadableReply: The reply has no such value.
    """
    schema = strict_schema(type_)
    reason = "it is not a JSON object"
    try:
        data = json.loads(text, object_pairs_hook=_unique_members)
        value = _validate(coerce_value(data, schema, schema), type_)
    except SchemaMismatch as fault:
        reason = str(fault)
    except (ValueError, RecursionError):
        pass  # not JSON
    else:
        return ParsedReply(value=value, salvaged=value.model_dump(mode="json") != data)
    if not salvage:
        raise UnreadableReply(reason)
    return ParsedReply(value=_salvage(text, type_, schema), salvaged=True)


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    for name, value in pairs:
        if members[name] != value:
            raise SchemaMismatch(f"{name!r} is said twice, differently")
    return members


def _salvage(text: str, type_: type[T], schema: dict[str, Any]) -> T:
    values: list[T] = []
    faults: list[SchemaMismatch] = []
    for data in find_objects(text, schema.get("properties", ())):
        try:
            value = _validate(coerce_value(data, schema, schema), type_)
        except SchemaMismatch as fault:
            faults.append(fault)
        else:
            values += [value] if value not in values else []
    if not values and not faults and (lines := find_labelled_fields(text, schema.get("properties", ()))):
        try:
            values = [_validate(coerce_value(lines, schema, schema), type_)]
        except SchemaMismatch as fault:
            faults.append(fault)
    if len(values) > 1:
        raise UnreadableReply(f"it holds {len(values)} different answers")
    if not values:
        raise UnreadableReply(str(faults[0]) if faults else "it holds no JSON object that can be read")
    return values[0]


def _validate(data: Any, type_: type[T]) -> T:
    """Validate strictly: all tolerance is in `coerce_value`.

    Raises:
        SchemaMismatch: The value breaks a bound of the type.
    """
    try:
        return type_.model_validate_json(json.dumps(data), strict=True)
    except ValidationError as fault:
        first = fault.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise SchemaMismatch(f"{where}: {first['msg']}" if where else str(first["msg"])) from fault
