"""JSON schemas of the types that replies hold, and their descriptions in prompts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel


@cache
def strict_schema(type_: type[BaseModel]) -> dict[str, Any]:
    """Return a type's JSON schema, closed and with all properties required, as strict modes demand.

    Raises:
        TypeError: A field has a default. A model that omits the field would be taken to have said the
            default.
    """
    schema = type_.model_json_schema()
    for part in _objects(schema):
        properties = part.get("properties", {})
        optional = [name for name in properties if name not in part.get("required", ())]
        if optional:
            raise TypeError(f"{type_.__name__}: a reply must have all fields, but {optional} have defaults")
        part["additionalProperties"] = False
        part.pop("description", None)  # the docstring of the class is for programmers
    return schema


def _objects(node: Any) -> Iterator[dict[str, Any]]:
    """Yield every part of a schema that describes an object."""
    if isinstance(node, dict):
        if node.get("type") == "object":
            yield node
        for inner in node.values():
            yield from _objects(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from _objects(inner)


def resolve_reference(part: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a part of a schema, or the definition in `$defs` that it refers to."""
    reference = part.get("$ref")
    if reference is None:
        return part
    definition: Mapping[str, Any] = root["$defs"][str(reference).rpartition("/")[2]]
    return definition


def describe_schema(type_: type[BaseModel]) -> str:
    """Describe a type for a prompt: one line per field, in an object's braces."""
    schema = strict_schema(type_)
    return _describe_part(schema, schema, "")


def _describe_part(part: Mapping[str, Any], root: Mapping[str, Any], indent: str) -> str:
    """Describe a part of a schema; `indent` is that of the line in which it begins."""
    part = resolve_reference(part, root)
    if "const" in part:
        return f'"{part["const"]}"'
    if "enum" in part:
        return "one of " + ", ".join(f'"{value}"' for value in part["enum"])
    match part.get("type"):
        case "object":
            inner_indent = indent + "  "
            lines = []
            for name, field in part.get("properties", {}).items():
                remark = f" ({field['description']})" if field.get("description") else ""
                lines.append(f'{inner_indent}"{name}": {_describe_part(field, root, inner_indent)}{remark}')
            return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
        case "array":
            return f"[{_describe_part(part.get('items', {}), root, indent)}, ...]"
        case "number" | "integer" as kind:
            minimum, maximum = part.get("minimum"), part.get("maximum")
            bounds = f" from {minimum} to {maximum}" if minimum is not None and maximum is not None else ""
            return ("a whole number" if kind == "integer" else "a number") + bounds
        case "boolean":
            return "true or false"
        case "string":
            max_length = part.get("maxLength")
            return f"a text of at most {max_length} characters" if max_length else "a text"
    return "a value"
