"""Conversion of our messages, tools and schemas into what LangChain sends to a provider.

Schemas go into the request directly and not through LangChain's `with_structured_output`, which parses the reply
itself: a reply that reached the token limit would be lost together with its usage.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from suture.models.chat_model import Message, ToolCall, ToolDeclaration

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel, LanguageModelInput
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.runnables import Runnable

CACHE_MARK = {"type": "ephemeral"}
"""Anthropic caches what is marked this way for five minutes after its last use."""
UNDECODED_ARGUMENTS = "INVALID_JSON"
"""The only argument of a call whose arguments were not a JSON object: providers accept only objects in a history.
The name is the one that Anthropic's documentation on streamed tool arguments recommends."""


def convert_messages(
    messages: Sequence[Message], originals: Mapping[str, AIMessage] | None = None
) -> list[BaseMessage]:
    """Return messages as LangChain's, from which it makes the provider's own forms.

    Args:
        originals: Id of a tool call -> the provider's answer with it, which takes the place of an equal turn. It
            may hold signed thinking, without which Gemini, Anthropic and DeepSeek may refuse a tool's result.
    """
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
                original = (originals or {}).get(message.tool_calls[0].id) if message.tool_calls else None
                calls = list(map(_convert_call, message.tool_calls))
                converted.append(original or AIMessage(text, tool_calls=calls))
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
    """Return a string without lone surrogates, which JSON over HTTP cannot hold; program output may have some."""
    return text.encode("utf-8", "replace").decode("utf-8")


def declare_tools(tools: Sequence[ToolDeclaration]) -> list[dict[str, Any]]:
    """Return tool declarations in OpenAI's form, from which LangChain makes those of other providers."""
    declarations: list[dict[str, Any]] = []
    for tool in tools:
        inputs = {
            name: {"type": "string", **({"description": text} if text else {})}
            for name, text in tool.inputs.items()
        }
        required = [name for name in inputs if name not in tool.optional]
        parameters = {"type": "object", "properties": inputs, "required": required}
        function = {"name": tool.name, "description": tool.description, "parameters": parameters}
        declarations.append({"type": "function", "function": function})
    return declarations


def merge_system_message(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return messages with those of the system at the beginning of the first one of the user."""
    system_text = "\n\n".join(message.content for message in messages if message.role == "system")
    merged = [message for message in messages if message.role != "system"]
    position = next((number for number, message in enumerate(merged) if message.role == "user"), None)
    if position is None:
        return (Message(role="user", content=system_text), *merged)
    merged[position] = replace(merged[position], content=f"{system_text}\n\n{merged[position].content}")
    return tuple(merged)


def mark_for_anthropic(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return the last of the tool declarations in Anthropic's form, marked so that all of them are cached."""
    function = tool["function"]
    return {
        "name": function["name"],
        "description": function["description"],
        "input_schema": function["parameters"],
        "cache_control": CACHE_MARK,
    }


def mark_cached_prefixes(turns: Sequence[BaseMessage], *, has_tools: bool) -> None:
    """Mark the stable beginnings of a prompt, which Anthropic caches only where a request says so.

    At most four marks are allowed: the tools, the system message, and the last two turns that are not the
    model's. The last one writes what the next request reads; the one before it is where the previous request
    wrote. A prompt without tools and earlier turns gets no mark after the system message: nothing follows it, and
    writing to the cache costs a quarter more than reading the prompt.
    """
    inputs = [turn for turn in turns if turn.type not in ("system", "ai")]
    continues = has_tools or len(inputs) > 1
    marked = [turn for turn in turns if turn.type == "system"][-1:] + (inputs[-2:] if continues else [])
    for turn in marked:
        if isinstance(turn.content, str) and turn.content:  # an empty string may have no mark
            turn.content = [{"type": "text", "text": turn.content, "cache_control": CACHE_MARK}]


def constrain_to_schema(
    chat: BaseChatModel, schema: Mapping[str, Any] | None
) -> Runnable[LanguageModelInput, AIMessage]:
    """Return `chat` with a request to follow a schema, as far as the provider supports one.

    OpenAI's protocol takes it as `response_format` (OpenAI itself, llama.cpp, vLLM, SGLang), its Responses API as
    `text`, Ollama as `format`, Gemini as `response_schema`, Anthropic as a tool that must be called. Any other
    model is returned unchanged.
    """
    if schema is None:
        return chat
    title = str(schema.get("title", "reply"))
    fields = type(chat).model_fields
    if "extra_body" in fields:  # the models of OpenAI's protocols
        json_schema = {"name": title, "strict": True, "schema": dict(schema)}
        body: dict[str, Any] = {"response_format": {"type": "json_schema", "json_schema": json_schema}}
        if getattr(chat, "speaks_responses_api", False):
            body = {"text": {"format": {"type": "json_schema", **json_schema}}}
        return with_extra_body(chat, body)
    if type(chat).__module__.startswith("langchain_anthropic"):
        tool = {"name": title, "description": "Give the answer.", "input_schema": dict(schema)}
        return chat.bind_tools([tool], tool_choice=title)
    if "response_schema" in fields:
        update = {"response_mime_type": "application/json", "response_schema": dict(schema)}
        return chat.model_copy(update=update)
    if "format" in fields:
        return chat.model_copy(update={"format": dict(schema)})
    return chat


def with_extra_body(chat: BaseChatModel, body: Mapping[str, Any]) -> BaseChatModel:
    """Return a model of OpenAI's protocol that adds fields to its requests."""
    extra_body: Mapping[str, Any] = getattr(chat, "extra_body", None) or {}
    return chat.model_copy(update={"extra_body": {**extra_body, **body}})
