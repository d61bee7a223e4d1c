"""JSON schemas and tools in requests: how providers enforce them and how prompts describe them.

Schemas go into the request directly and not through LangChain's `with_structured_output`, which parses by
itself: a reply that reached the token limit would be lost together with its usage.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from suture.models.chat_model import ToolDeclaration

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel, LanguageModelInput
    from langchain_core.messages import AIMessage
    from langchain_core.runnables import Runnable


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


def constrain_to_schema(
    chat: BaseChatModel, schema: Mapping[str, Any] | None
) -> Runnable[LanguageModelInput, AIMessage]:
    """Return `chat` with a request to follow a schema, as far as the provider supports one.

    OpenAI's protocol takes it as `response_format` (OpenAI itself, llama.cpp, vLLM, SGLang), Ollama as
    `format`, Anthropic as a tool that must be called. Any other model is returned unchanged.
    """
    if schema is None:
        return chat
    title = str(schema.get("title", "reply"))
    fields = type(chat).model_fields
    if "extra_body" in fields:  # the models of OpenAI's protocol
        json_schema = {"name": title, "strict": True, "schema": dict(schema)}
        extra_body: Mapping[str, Any] = getattr(chat, "extra_body", None) or {}
        response_format = {"type": "json_schema", "json_schema": json_schema}
        return chat.model_copy(update={"extra_body": {**extra_body, "response_format": response_format}})
    if type(chat).__module__.startswith("langchain_anthropic"):
        tool = {"name": title, "description": "Give the answer.", "input_schema": dict(schema)}
        return chat.bind_tools([tool], tool_choice=title)
    if "format" in fields:
        return chat.model_copy(update={"format": dict(schema)})
    return chat


def answer_text(answer: AIMessage) -> str:
    """Return the reply's text; of a tool call, its arguments as JSON."""
    calls = getattr(answer, "tool_calls", None)
    return json.dumps(calls[0]["args"], ensure_ascii=False) if calls else str(answer.text)


def bind_tools_to(
    chat: BaseChatModel, tools: Sequence[ToolDeclaration]
) -> Runnable[LanguageModelInput, AIMessage]:
    """Return `chat` with these tools declared in its provider's protocol."""
    declarations = []
    for tool in tools:
        inputs = {name: {"type": "string", "description": text} for name, text in tool.inputs.items()}
        parameters = {"type": "object", "properties": inputs, "required": list(inputs)}
        function = {"name": tool.name, "description": tool.description, "parameters": parameters}
        declarations.append({"type": "function", "function": function})
    return chat.bind_tools(declarations)


def answer_text_with_tool_call(answer: AIMessage) -> str:
    """Return the reply's text and its first tool call as two lines.

    Further calls are dropped: the model made them before it knew the first result.
    """
    text, calls = str(answer.text), answer.tool_calls
    if not calls:
        return text
    arguments = json.dumps(calls[0]["args"], ensure_ascii=False)
    return f"{text}\n\nTOOL: {calls[0]['name']}\nINPUT: {arguments}".lstrip()
