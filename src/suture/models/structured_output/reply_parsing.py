"""What was said, in the form that the schema asks for. Only the form changes, never what is said."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from suture.models.structured_output.lenient_json import bare_name, objects_in, written_out
from suture.models.structured_output.reply_schemas import resolved, schema_of

YES_NO = {"true": True, "yes": True, "false": False, "no": False}
PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%")
FRACTION = re.compile(r"(\d+(?:\.\d+)?)\s*/\s*(\d+(?:\.\d+)?)")
KIND_WORD = re.compile(r"(?:error|fault|bug|issue|problem|strategy)s?$")
PLACEHOLDER = re.compile(
    r"[\W_]*|<[^<>]*>|(?:a )?(?:string|text|number|value|example)|your .*|a text of at most .*"
)


class Unfit(ValueError):
    """What was said has no place in the schema; the message says which member and why."""


def coerced(value: Any, part: Mapping[str, Any], root: Mapping[str, Any], where: str = "") -> Any:
    """A value in the form that a part of a schema asks for.

    Args:
        value: What the reply says, as JSON values.
        part: The schema of the value.
        root: The whole schema, for its `$defs`.
        where: The path of the value, for messages.

    Raises:
        Unfit: It cannot be put into that form without guessing.
    """
    part = resolved(part, root)
    if isinstance(value, dict) and part.get("type") != "object":
        value = _unwrapped(value, where)
    if "enum" in part or "const" in part:
        return _choice(value, part.get("enum") or [part["const"]], where)
    match part.get("type"):
        case "object":
            return _object(value, part, root, where)
        case "array":
            items = value if isinstance(value, list) else [value]
            return [coerced(item, part["items"], root, f"{where}[{i}]") for i, item in enumerate(items)]
        case "number" | "integer" as kind:
            return _number(value, kind, where)
        case "boolean":
            return _boolean(value, where)
        case "string":
            return _text(value, where)
    return value


def _unwrapped(value: dict[str, Any], where: str) -> Any:
    """The value of `{"type": "string", "value": ...}`: a model that mixed the schema with its data."""
    if "value" in value and value.keys() <= {"value", "type", "description", "title", "enum"}:
        return value["value"]
    raise Unfit(f"{where} is an object")


def _object(value: Any, part: Mapping[str, Any], root: Mapping[str, Any], where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Unfit(f"{where or 'the reply'} is not an object")
    given: dict[str, Any] = {}
    for name, inner in value.items():
        bare = bare_name(str(name))
        if bare in given and given[bare] != inner:
            raise Unfit(f"{name!r} is said twice, differently")
        given[bare] = inner
    result: dict[str, Any] = {}
    for name, field in part.get("properties", {}).items():
        path = f"{where}.{name}" if where else name
        if bare_name(name) not in given:
            raise Unfit(f"{path} is missing")
        result[name] = coerced(given[bare_name(name)], field, root, path)
    return result


def _choice(value: Any, choices: list[Any], where: str) -> Any:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, str):
        said = bare_name(value.rpartition(".")[2] if re.fullmatch(r"[A-Z]\w*\.\w+", value) else value)
        for wanted in (said, KIND_WORD.sub("", said)):
            named = [choice for choice in choices if bare_name(str(choice)) == wanted]
            if len(named) == 1:
                return named[0]
    elif value in choices and type(value) is not bool:
        return value
    raise Unfit(f"{where} must be one of {', '.join(map(str, choices))}, not {value!r:.60}")


def _number(value: Any, kind: str, where: str) -> int | float:
    if isinstance(value, str):
        value = _parsed_number(value, where)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise Unfit(f"{where} must be a number, not {value!r:.60}")
    if kind == "integer" and value != int(value):
        raise Unfit(f"{where} must be a whole number, not {value!r}")
    return int(value) if kind == "integer" else value


def _parsed_number(text: str, where: str) -> float:
    text = text.strip()
    if percent := PERCENT.fullmatch(text):
        return float(percent[1]) / 100
    if (fraction := FRACTION.fullmatch(text)) and float(fraction[2]):
        return float(fraction[1]) / float(fraction[2])
    if re.fullmatch(r"[-+]?\d+(?:\.\d+)?", text):
        return float(text)
    raise Unfit(f"{where} must be a number, not {text!r:.60}")


def _boolean(value: Any, where: str) -> bool:
    if isinstance(value, str):
        value = YES_NO.get(value.strip().lower())
    if not isinstance(value, bool):
        raise Unfit(f"{where} must be true or false")
    return value


def _text(value: Any, where: str) -> str:
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        value = " ".join(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise Unfit(f"{where} must be a text, not {value!r:.60}")
    text = value.strip()
    if PLACEHOLDER.fullmatch(text.lower()):
        raise Unfit(f"{where} says nothing: {text!r:.60}")
    return text


T = TypeVar("T", bound=BaseModel)


class Unreadable(ValueError):
    """The reply holds no value of the type; the message is for the model that wrote it."""


@dataclass(frozen=True, kw_only=True)
class Reading(Generic[T]):
    """What a reply says, and whether it took tolerance to read it."""

    value: T
    salvaged: bool


def read_reply(text: str, type_: type[T], *, salvage: bool = True) -> Reading[T]:
    """Read a whole reply; one that was cut short is not for here.

    A reply that says two different things says nothing.

    Args:
        text: The reply's text.
        type_: What it must be.
        salvage: Whether anything but the plain JSON is read.

    Raises:
        Unreadable: There is no such value in it.
    """
    schema = schema_of(type_)
    why = "it is not a JSON object"
    try:
        data = json.loads(text, object_pairs_hook=_members)
        value = _validated(coerced(data, schema, schema), type_)
    except Unfit as fault:
        why = str(fault)
    except (ValueError, RecursionError):
        pass  # no JSON
    else:
        return Reading(value=value, salvaged=value.model_dump(mode="json") != data)
    if not salvage:
        raise Unreadable(why)
    return Reading(value=_salvaged(text, type_, schema), salvaged=True)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    for name, value in pairs:
        if members[name] != value:
            raise Unfit(f"{name!r} is said twice, differently")
    return members


def _salvaged(text: str, type_: type[T], schema: dict[str, Any]) -> T:
    values: list[T] = []
    faults: list[Unfit] = []
    for data in objects_in(text, schema.get("properties", ())):
        try:
            value = _validated(coerced(data, schema, schema), type_)
        except Unfit as fault:
            faults.append(fault)
        else:
            values += [value] if value not in values else []
    if not values and not faults and (lines := written_out(text, schema.get("properties", ()))):
        try:
            values = [_validated(coerced(lines, schema, schema), type_)]
        except Unfit as fault:
            faults.append(fault)
    if len(values) > 1:
        raise Unreadable(f"it holds {len(values)} different answers")
    if not values:
        raise Unreadable(str(faults[0]) if faults else "it holds no JSON object that can be read")
    return values[0]


def _validated(data: Any, type_: type[T]) -> T:
    """Strictly: whatever leniency there is, is in `coerced`, where it can be seen.

    Raises:
        Unfit: It breaks a bound of the type.
    """
    try:
        return type_.model_validate_json(json.dumps(data), strict=True)
    except ValidationError as fault:
        first = fault.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise Unfit(f"{where}: {first['msg']}" if where else str(first["msg"])) from fault
