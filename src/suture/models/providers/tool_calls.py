"""Reading the tool calls of a LangChain message: all of them, in the model's order, arguments decoded strictly."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from suture.models.chat_model import ToolCall

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage


@dataclass(frozen=True, kw_only=True)
class _RawCall:
    """A call as LangChain has it; `arguments` is a text or an object."""

    id: str
    name: str
    arguments: object


def read_tool_calls(answer: AIMessage, *, id_prefix: str) -> tuple[ToolCall, ...]:
    """Return the calls of an answer.

    Args:
        answer: The provider's answer, complete or put together from the chunks of a stream.
        id_prefix: Begins the id of a call whose own id is missing, or belongs to an earlier call of the answer.
    """
    calls: list[ToolCall] = []
    for number, raw in enumerate(_raw_calls(answer), 1):
        is_taken = not raw.id or any(call.id == raw.id for call in calls)
        arguments, undecoded = _decode_arguments(raw.arguments)
        calls.append(
            ToolCall(
                id=f"{id_prefix}{number}" if is_taken else raw.id,
                name=raw.name,
                arguments=arguments,
                undecoded=undecoded,
            )
        )
    return tuple(calls)


def _raw_calls(answer: AIMessage) -> list[_RawCall]:
    # LangChain completes the arguments of a streamed call that was cut off, so that half a file would look like
    # a whole one. The chunks still hold the arguments' text.
    chunks = getattr(answer, "tool_call_chunks", None)
    calls: Sequence[Any] = chunks or (*answer.tool_calls, *answer.invalid_tool_calls)
    raw_calls = [
        _RawCall(id=call.get("id") or "", name=call.get("name") or "", arguments=call.get("args"))
        for call in calls
    ]
    # LangChain sorts calls into readable and unreadable ones; the blocks of the answer have the model's order.
    order = _call_order(answer)
    return sorted(raw_calls, key=lambda call: order.index(call.id) if call.id in order else len(order))


def _call_order(answer: AIMessage) -> list[str]:
    """Return the ids of the calls among the answer's blocks; empty if it is a plain text."""
    blocks = answer.content if isinstance(answer.content, list) else ()
    return [str(block.get("call_id") or block.get("id")) for block in blocks if isinstance(block, Mapping)]


def _decode_arguments(arguments: object) -> tuple[Mapping[str, Any], str]:
    """Return `(arguments, "")`, or `({}, text)` if the text is not a JSON object."""
    if arguments is None or arguments == "":
        return {}, ""  # how OpenAI's protocol calls a tool without inputs
    value = _load_json(arguments)
    if isinstance(value, str):  # some servers encode the arguments twice
        value = _load_json(value)
    if isinstance(value, Mapping):
        return value, ""
    return {}, arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _load_json(value: object) -> object:
    """Return the value of a JSON text, or `value` itself if it is none."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value, strict=False)  # models write line breaks inside of strings
    except (ValueError, RecursionError):
        return value
