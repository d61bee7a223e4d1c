"""The JSON schema of a reply type: as providers enforce it, as a prompt describes it, and how it is sent.

It goes into the request by hand and not through LangChain's `with_structured_output`: that parses by itself,
and a reply that reached the token limit is then lost together with its usage.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from suture.models.chat_model import Tool

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel, LanguageModelInput
    from langchain_core.messages import AIMessage
    from langchain_core.runnables import Runnable


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


def constrained(
    chat: BaseChatModel, schema: Mapping[str, Any] | None
) -> Runnable[LanguageModelInput, AIMessage]:
    """`chat`, told to follow a schema as far as it can be told.

    OpenAI's protocol takes it as `response_format` (OpenAI itself, llama.cpp, vLLM, SGLang), Ollama as
    `format`, Anthropic as a tool that must be called. Any other model is left as it is.
    """
    if schema is None:
        return chat
    title = str(schema.get("title", "reply"))
    fields = type(chat).model_fields
    if "extra_body" in fields:
        wanted = {"name": title, "strict": True, "schema": dict(schema)}
        extra: Mapping[str, Any] = getattr(chat, "extra_body", None) or {}
        body = {**extra, "response_format": {"type": "json_schema", "json_schema": wanted}}
        return chat.model_copy(update={"extra_body": body})
    if type(chat).__module__.startswith("langchain_anthropic"):
        tool = {"name": title, "description": "Give the answer.", "input_schema": dict(schema)}
        return chat.bind_tools([tool], tool_choice=title)
    if "format" in fields:
        return chat.model_copy(update={"format": dict(schema)})
    return chat


def text_of(answer: AIMessage) -> str:
    """The reply's text; a reply that is a tool call is the JSON of its arguments."""
    calls = getattr(answer, "tool_calls", None)
    return json.dumps(calls[0]["args"], ensure_ascii=False) if calls else str(answer.text)


def with_tools(chat: BaseChatModel, tools: Sequence[Tool]) -> Runnable[LanguageModelInput, AIMessage]:
    """`chat`, told which tools there are."""
    return chat.bind_tools([_declared(tool) for tool in tools])


def _declared(tool: Tool) -> dict[str, Any]:
    inputs = {name: {"type": "string", "description": what} for name, what in tool.inputs.items()}
    schema = {"type": "object", "properties": inputs, "required": list(inputs)}
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": schema},
    }


def text_with_call(answer: AIMessage) -> str:
    """The reply's text, and its first call as two lines; others were made before the first had a result."""
    text, calls = str(answer.text), answer.tool_calls
    if not calls:
        return text
    given = json.dumps(calls[0]["args"], ensure_ascii=False)
    return f"{text}\n\nTOOL: {calls[0]['name']}\nINPUT: {given}".lstrip()
