"""Tools in a provider's own way, and a reply that calls one as text: what is kept and read is always text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from suture.models.seam import Tool

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel, LanguageModelInput
    from langchain_core.messages import AIMessage
    from langchain_core.runnables import Runnable


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
