"""How a provider is told to constrain its output to a schema, and where the constrained reply stands.

The schema goes into the request by hand and not through LangChain's `with_structured_output`: that parses by
itself, and a reply that reached the token limit is then lost together with its usage.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel, LanguageModelInput
    from langchain_core.messages import AIMessage
    from langchain_core.runnables import Runnable

__all__ = ["constrained", "text_of"]


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
