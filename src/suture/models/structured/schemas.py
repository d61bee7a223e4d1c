"""The JSON schema of a reply type, as providers enforce it and as a prompt describes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel

__all__ = ["describe_schema", "resolved", "schema_of"]


@cache
def schema_of(type_: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a type, closed and with every property required, as strict modes demand.

    Raises:
        TypeError: A field has a default. A model that leaves it out would be taken to have said it.
    """
    schema = type_.model_json_schema()
    for part in _objects(schema):
        properties = part.get("properties", {})
        optional = [name for name in properties if name not in part.get("required", ())]
        if optional:
            raise TypeError(f"{type_.__name__}: a reply may leave out no field, but {optional} have defaults")
        part["additionalProperties"] = False
    return schema


def _objects(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        if node.get("type") == "object":
            yield node
        for inner in node.values():
            yield from _objects(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from _objects(inner)


def resolved(part: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """A part of a schema, or what it refers to in the schema's `$defs`."""
    reference = part.get("$ref")
    if reference is None:
        return part
    found: Mapping[str, Any] = root["$defs"][str(reference).rpartition("/")[2]]
    return found


def describe_schema(type_: type[BaseModel]) -> str:
    """A type in words, for the prompt: one line for each field, in an object's braces."""
    schema = schema_of(type_)
    return _described(schema, schema, "")


def _described(part: Mapping[str, Any], root: Mapping[str, Any], indent: str) -> str:
    part = resolved(part, root)
    if "const" in part:
        return f'"{part["const"]}"'
    if "enum" in part:
        return "one of " + ", ".join(f'"{value}"' for value in part["enum"])
    match part.get("type"):
        case "object":
            inner = indent + "  "
            lines = [
                f'{inner}"{name}": {_described(field, root, inner)}{_remark(field)}'
                for name, field in part.get("properties", {}).items()
            ]
            return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
        case "array":
            return f"[{_described(part.get('items', {}), root, indent)}, ...]"
        case "number" | "integer" as kind:
            least, most = part.get("minimum"), part.get("maximum")
            span = f" from {least} to {most}" if least is not None and most is not None else ""
            return ("a whole number" if kind == "integer" else "a number") + span
        case "boolean":
            return "true or false"
        case "string":
            most = part.get("maxLength")
            return f"a text of at most {most} characters" if most else "a text"
    return "a value"


def _remark(field: Mapping[str, Any]) -> str:
    text = field.get("description")
    return f" ({text})" if text else ""
