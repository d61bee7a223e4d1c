"""Conversion of our messages, tools and schemas into what LangChain sends to a provider.

Schemas go into the request directly and not through LangChain's `with_structured_output`, which parses by
itself: a reply that reached the token limit would be lost together with its usage.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from suture.models.chat_model import Message, ToolCall, ToolDeclaration

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel, LanguageModelInput
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.runnables import Runnable

UNDECODED_ARGUMENTS = "INVALID_JSON"
"""The only argument of a call whose arguments were no JSON object: providers accept only objects in a history.
The name is the one that Anthropic's documentation on streamed tool arguments recommends."""


def convert_messages(messages: Sequence[Message]) -> list[BaseMessage]:
    """Return messages as LangChain's, from which it makes the provider's own forms."""
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

    tool_names = {call.id: call.name for message in messages for call in message.tool_calls}
    converted: list[BaseMessage] = []
    for message in messages:
        text = _sendable(message.content)
        match message.role:
            case "system":
                converted.append(SystemMessage(text))
            case "user":
                converted.append(HumanMessage(text))
            case "assistant":
                converted.append(AIMessage(text, tool_calls=list(map(_convert_call, message.tool_calls))))
            case "tool":
                call_id = message.tool_call_id
                converted.append(ToolMessage(text, tool_call_id=call_id, name=tool_names.get(call_id)))
    return converted


def openai_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return messages as OpenAI's protocol sends them."""
    from langchain_core.messages import convert_to_openai_messages

    converted = convert_to_openai_messages(convert_messages(messages))
    return converted if isinstance(converted, list) else [converted]


def _convert_call(call: ToolCall) -> dict[str, Any]:
    arguments = {UNDECODED_ARGUMENTS: call.undecoded} if call.undecoded else dict(call.arguments)
    sendable_arguments = json.loads(_sendable(json.dumps(arguments, ensure_ascii=False)))
    return {"type": "tool_call", "id": call.id, "name": call.name, "args": sendable_arguments}


def _sendable(text: str) -> str:
    """Return a text without lone surrogates, which JSON over HTTP cannot hold; program output may have some."""
    return text.encode("utf-8", "replace").decode("utf-8")


def declare_tools(tools: Sequence[ToolDeclaration]) -> list[dict[str, Any]]:
    """Return tool declarations in OpenAI's form, from which LangChain makes those of other providers."""
    declarations: list[dict[str, Any]] = []
    for tool in tools:
        inputs = {name: {"type": "string", "description": text} for name, text in tool.inputs.items()}
        required = [name for name in inputs if name not in tool.optional]
        parameters = {"type": "object", "properties": inputs, "required": required}
        function = {"name": tool.name, "description": tool.description, "parameters": parameters}
        declarations.append({"type": "function", "function": function})
    return declarations


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
