"""From the text of a reply to a value of a type, or to the reason why not."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from suture.models.structured.coercion import Unfit, coerced
from suture.models.structured.json_candidates import objects_in, written_out
from suture.models.structured.schemas import schema_of

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
