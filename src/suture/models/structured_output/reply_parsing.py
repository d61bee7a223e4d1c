"""Parsing of a structured reply: from its text to a value of a type, or the reason why that is impossible."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from suture.models.structured_output.lenient_json import find_labelled_fields, find_objects, normalise_name
from suture.models.structured_output.reply_schemas import resolve_reference, strict_schema

BOOLEAN_WORDS = {"true": True, "yes": True, "false": False, "no": False}
"""Words that models write for a boolean."""
PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%")
FRACTION = re.compile(r"(\d+(?:\.\d+)?)\s*/\s*(\d+(?:\.\d+)?)")
KIND_WORD = re.compile(r"(?:error|fault|bug|issue|problem|strategy)s?$")
"""Matches a word that models append to a choice, as in `logic error` for `logic`."""
PLACEHOLDER = re.compile(
    r"[\W_]*|<[^<>]*>|(?:a )?(?:string|text|number|value|example)|your .*|a text of at most .*"
)
"""Matches a string that says nothing, such as the description of the field from the prompt (`describe_schema`)."""


class SchemaMismatch(ValueError):
    """A value does not fit the schema. The message is for the model: it names the member and the reason."""


def coerce_value(value: Any, part: Mapping[str, Any], root: Mapping[str, Any], path: str = "") -> Any:
    """Convert a value to the form that a part of a schema asks for. Only the form changes, never the meaning.

    Args:
        part: The schema of the value.
        root: The whole schema, for its `$defs`.
        path: Path of the value in the reply, such as `steps[0].name`, for messages.

    Raises:
        SchemaMismatch: The value cannot be converted without guessing.
    """
    part = resolve_reference(part, root)
    if isinstance(value, dict) and part.get("type") != "object":
        # Some models mix schema and data: {"type": "string", "value": ...}
        if "value" not in value or not value.keys() <= {"value", "type", "description", "title", "enum"}:
            raise SchemaMismatch(f"{path} is an object")
        value = value["value"]
    if "enum" in part or "const" in part:
        return _coerce_choice(value, part.get("enum") or [part["const"]], path)
    match part.get("type"):
        case "object":
            return _coerce_object(value, part, root, path)
        case "array":
            items = value if isinstance(value, list) else [value]
            return [coerce_value(item, part["items"], root, f"{path}[{i}]") for i, item in enumerate(items)]
        case "number" | "integer" as kind:
            return _coerce_number(value, kind, path)
        case "boolean":
            if isinstance(value, str):
                value = BOOLEAN_WORDS.get(value.strip().lower())
            if not isinstance(value, bool):
                raise SchemaMismatch(f"{path} must be true or false")
        case "string":
            return _coerce_text(value, path)
    return value


def _coerce_object(value: Any, part: Mapping[str, Any], root: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Convert an object; names are compared as `normalise_name` does, and unknown members are left out."""
    if not isinstance(value, dict):
        raise SchemaMismatch(f"{path or 'the reply'} is not an object")
    members: dict[str, Any] = {}
    for name, member in value.items():
        normalised = normalise_name(str(name))
        if normalised in members and members[normalised] != member:
            raise SchemaMismatch(f"{name!r} is said twice, differently")
        members[normalised] = member
    result: dict[str, Any] = {}
    for name, member_schema in part.get("properties", {}).items():
        member_path = f"{path}.{name}" if path else name
        if normalise_name(name) not in members:
            raise SchemaMismatch(f"{member_path} is missing")
        result[name] = coerce_value(members[normalise_name(name)], member_schema, root, member_path)
    return result


def _coerce_choice(value: Any, choices: list[Any], path: str) -> Any:
    """Convert a value to the one choice that it means, ignoring case and blanks."""
    if isinstance(value, list) and len(value) == 1:  # a list of one choice means that choice
        value = value[0]
    if isinstance(value, str):
        # Some models write an enum member as in code: `Category.LOGIC`.
        name = normalise_name(value.rpartition(".")[2] if re.fullmatch(r"[A-Z]\w*\.\w+", value) else value)
        for spelling in (name, KIND_WORD.sub("", name)):
            matches = [choice for choice in choices if normalise_name(str(choice)) == spelling]
            if len(matches) == 1:
                return matches[0]
    elif value in choices and type(value) is not bool:  # `True == 1` does not choose 1
        return value
    raise SchemaMismatch(f"{path} must be one of {', '.join(map(str, choices))}, not {value!r:.60}")


def _coerce_number(value: Any, kind: str, path: str) -> int | float:
    """Convert a number, a percentage or a fraction."""
    if isinstance(value, str):
        text = value.strip()
        if percent := PERCENT.fullmatch(text):
            value = float(percent[1]) / 100
        elif (fraction := FRACTION.fullmatch(text)) and float(fraction[2]):
            value = float(fraction[1]) / float(fraction[2])
        elif re.fullmatch(r"[-+]?\d+(?:\.\d+)?", text):
            value = float(text)
        else:
            raise SchemaMismatch(f"{path} must be a number, not {text!r:.60}")
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise SchemaMismatch(f"{path} must be a number, not {value!r:.60}")
    if kind == "integer" and value != int(value):
        raise SchemaMismatch(f"{path} must be a whole number, not {value!r}")
    return int(value) if kind == "integer" else value


def _coerce_text(value: Any, path: str) -> str:
    """Convert a string or a number to a string; refuse one that says nothing."""
    # A list of strings is one text in several sentences.
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        value = " ".join(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise SchemaMismatch(f"{path} must be a text, not {value!r:.60}")
    text = value.strip()
    if PLACEHOLDER.fullmatch(text.lower()):
        raise SchemaMismatch(f"{path} says nothing: {text!r:.60}")
    return text


T = TypeVar("T", bound=BaseModel)


class UnreadableReply(ValueError):
    """A reply without a value of the type; the message is for the model that wrote it."""


def parse_reply(text: str, type_: type[T], *, salvage: bool = True) -> T:
    """Parse a complete reply; truncated ones must not be passed here.

    Without `salvage` only plain JSON is read. A reply with two different values is refused.

    Raises:
        UnreadableReply: The reply has no such value.
    """
    schema = strict_schema(type_)
    reason = "it is not a JSON object"
    try:
        data = json.loads(text, object_pairs_hook=_unique_members)
        return _validate(coerce_value(data, schema, schema), type_)
    except SchemaMismatch as fault:
        reason = str(fault)
    except (ValueError, RecursionError):
        pass  # not JSON
    if not salvage:
        raise UnreadableReply(reason)
    return _salvage(text, type_, schema)


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of an object; refuse one with two different values of one name."""
    members = dict(pairs)
    for name, value in pairs:
        if members[name] != value:
            raise SchemaMismatch(f"{name!r} is said twice, differently")
    return members


def _salvage(text: str, type_: type[T], schema: dict[str, Any]) -> T:
    """Return the one value in a reply that is not plain JSON, read as tolerantly as possible."""
    names = schema.get("properties", ())
    values: list[T] = []
    faults: list[SchemaMismatch] = []

    def add_value(data: Mapping[str, Any]) -> None:
        try:
            value = _validate(coerce_value(data, schema, schema), type_)
        except SchemaMismatch as fault:
            faults.append(fault)
        else:
            if value not in values:
                values.append(value)

    for data in find_objects(text, names):
        add_value(data)
    # Labelled lines count only if the reply has no object at all: one that is faulty must be corrected.
    if not values and not faults and (fields := find_labelled_fields(text, names)):
        add_value(fields)
    if len(values) > 1:
        raise UnreadableReply(f"it holds {len(values)} different answers")
    if not values:
        raise UnreadableReply(str(faults[0]) if faults else "it holds no JSON object that can be read")
    return values[0]


def _validate(data: Any, type_: type[T]) -> T:
    """Validate strictly: all tolerance is in `coerce_value`."""
    try:
        return type_.model_validate_json(json.dumps(data), strict=True)
    except ValidationError as fault:
        error = fault.errors(include_url=False)[0]
        path = ".".join(map(str, error["loc"]))
        raise SchemaMismatch(f"{path}: {error['msg']}" if path else str(error["msg"])) from fault
