"""The tools that a conversation offers, the inputs of a model's calls of them, and its messages.

The descriptions of the tools are part of the prompt.

Messages are only appended until the model's context is full. A provider can reuse its cache of a prompt only where a
later prompt begins with the same messages. So nothing is shortened while there is room, and then so much at once that
it is not needed again soon.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from suture.agents.tuning import COMPACTED_SHARE, MAX_COMPACTED_CHARS, MAX_ECHOED_CHARS, RECENT_MESSAGES
from suture.models import Message, ToolCall, ToolDeclaration
from suture.models.token_counting import estimate_tokens

TOOLS = (
    ToolDeclaration(
        name="read_file",
        description="Show a file, or list a folder.",
        inputs={"path": "", "lines": "such as 10-40; by default all"},
        optional=("lines",),
    ),
    ToolDeclaration(
        name="search",
        description="Show the lines that contain a text.",
        inputs={"text": "", "path": "a file or folder; by default all"},
        optional=("path",),
    ),
    ToolDeclaration(
        name="shell",
        description="Run a shell command in the project. Its changes of files are kept.",
        inputs={"command": ""},
    ),
    ToolDeclaration(
        name="edit",
        description="Change a file, or write a whole file.",
        inputs={
            "path": "path in the project",
            "new_str": "the text that takes the place of `old_str`",
            "old_str": "text as it is in the file, found once in it; by default the whole file",
        },
        optional=("old_str",),
    ),
    ToolDeclaration(
        name="run_tests",
        description="Run the tests again. They run by themselves after each change.",
        inputs={},
    ),
)
OFFERED_TOOLS = TOOLS[:3]
"""The tools that a request declares. The others are understood, but a declaration costs tokens in each call, and the
text of a reply changes files as well."""
TOOL_NAMES = tuple(tool.name for tool in TOOLS)
TEXT_CALL = re.compile(r"^[ \t]*TOOL:[ \t]*(\w+)[ \t]*(.*)$", re.MULTILINE)
"""A call in the text of a reply, for models without a tool protocol: `TOOL: search {"text": "def total"}`."""


@dataclass(frozen=True, kw_only=True)
class ToolInputs:
    """What a model's call of a tool means.

    Attributes:
        name: The tool's name as the model wrote it.
        values: The inputs by name; all that the tool requires.
        error: Why the call cannot be carried out, for the model; empty if it can.
    """

    name: str
    values: Mapping[str, str]
    error: str = ""


def read_inputs(call: ToolCall) -> ToolInputs:
    """Return the inputs of a call, or what is wrong with them."""
    tool = next((tool for tool in TOOLS if tool.name == call.name), None)
    if tool is None:
        return _wrong(
            call, f"there is no tool {call.name[:MAX_ECHOED_CHARS]!r}, only {', '.join(TOOL_NAMES)}"
        )
    if call.undecoded:
        return _wrong(call, f"the arguments are not a JSON object: {_explain_json(call.undecoded)}")
    values = {name: value for name, value in call.arguments.items() if value is not None}
    missing = [name for name in tool.inputs if name not in values and name not in tool.optional]
    unknown = [name[:MAX_ECHOED_CHARS] for name in values if name not in tool.inputs]
    if missing or unknown:
        faults = [f"{name!r} is missing" for name in missing]
        faults += [f"there is no {name!r}" for name in unknown]
        takes = ", ".join(tool.inputs) or "no arguments"
        return _wrong(call, f"{'; '.join(faults)}: {tool.name} takes {takes}")
    return ToolInputs(name=tool.name, values={name: _as_text(value) for name, value in values.items()})


def read_text_calls(text: str) -> tuple[ToolCall, ...]:
    """Return the calls in the text of a reply, for models without a tool protocol."""
    return tuple(
        decode_call(str(number), match[1], match[2] or "{}")
        for number, match in enumerate(TEXT_CALL.finditer(text), 1)
    )


def decode_call(call_id: str, name: str, arguments: str) -> ToolCall:
    """Return a call whose arguments are a JSON string."""
    try:
        values = json.loads(arguments)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        return ToolCall(id=call_id, name=name, undecoded=arguments)
    return ToolCall(id=call_id, name=name, arguments=values)


def render_text_tools() -> str:
    """Return the tools as the prompt describes them to models without a tool protocol."""
    return "\n".join(f"- {tool.name}({_render_inputs(tool)}): {tool.description}" for tool in OFFERED_TOOLS)


def _render_inputs(tool: ToolDeclaration) -> str:
    return ", ".join(f"{name}{'?' * (name in tool.optional)}" for name in tool.inputs)


def _wrong(call: ToolCall, why: str) -> ToolInputs:
    return ToolInputs(name=call.name, values={}, error=f"ToolError: {why}.")


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _explain_json(text: str) -> str:
    try:
        value = json.loads(text)
    except RecursionError:
        return "it is nested too deeply"
    except ValueError as fault:
        return f"{fault} in {text[:MAX_ECHOED_CHARS]!r}"
    return f"it is a {type(value).__name__}"


SHORTENED_RESULT = "(This result is not shown any more.)"
SHORTENED_REPLY = "(This reply is not shown any more.)"


@dataclass(kw_only=True)
class MessageHistory:
    """The messages of a conversation.

    Attributes:
        opening: The rules and the task, which always stay.
        messages: The messages after that, oldest first.
    """

    opening: tuple[Message, ...]
    messages: list[Message] = field(default_factory=list)

    def extend(self, messages: Iterable[Message]) -> None:
        """Append messages."""
        self.messages.extend(messages)

    def within(self, room_tokens: int) -> tuple[Message, ...]:
        """Return all messages, shortened for good if they have more than about `room_tokens` tokens.

        Old results of tools are shortened first, and then old replies. The opening and the latest messages stay.
        Each message keeps its role, so that every call still has its result.
        """
        target = int(room_tokens * COMPACTED_SHARE)
        if self._count_tokens() > room_tokens:
            self._shorten(("tool", "user"), SHORTENED_RESULT, target)
            self._shorten(("assistant",), SHORTENED_REPLY, target)
        return (*self.opening, *self.messages)

    def _shorten(self, roles: Sequence[str], note: str, target_tokens: int) -> None:
        for index, message in enumerate(self.messages[:-RECENT_MESSAGES]):
            if self._count_tokens() <= target_tokens:
                return
            if message.role in roles:
                self.messages[index] = _shorten_message(message, note)

    def _count_tokens(self) -> int:
        calls = [
            Message(role="assistant", content=f"{call.name} {dict(call.arguments)}")
            for message in self.messages
            for call in message.tool_calls
        ]
        return estimate_tokens([*self.opening, *self.messages, *calls])


def _shorten_message(message: Message, note: str) -> Message:
    """Return a message with only the beginning of its text, and its calls with short inputs."""
    if len(message.content) > MAX_COMPACTED_CHARS:
        beginning = message.content[:MAX_COMPACTED_CHARS].partition("\n")[0]
        message = replace(message, content=f"{beginning}\n{note}")
    calls = tuple(
        replace(call, arguments={name: _shorten_input(value) for name, value in call.arguments.items()})
        for call in message.tool_calls
    )
    return replace(message, tool_calls=calls)


def _shorten_input(value: Any) -> Any:
    is_long = isinstance(value, str) and len(value) > MAX_COMPACTED_CHARS
    return f"{value[:MAX_COMPACTED_CHARS]} ..." if is_long else value
