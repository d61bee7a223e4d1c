"""The messages of a conversation are only appended to, and shortened when the context is full."""

from __future__ import annotations

from suture.agents.conversation.tool_calls import MessageHistory
from suture.models import Message, ToolCall
from suture.models.token_counting import estimate_tokens

OPENING = (Message(role="system", content="rules"), Message(role="user", content="the failing tests " * 50))
ROOM_TOKENS = 6000


def make_history(steps: int) -> MessageHistory:
    """Return a conversation in which the model reads a long file in each step, and then sends a long patch."""
    history = MessageHistory(opening=OPENING)
    for number in range(steps):
        call = ToolCall(id=f"call-{number}", name="read_file", arguments={"path": f"{number}.py"})
        history.extend(
            [
                Message(role="assistant", content=f"I read {number}.py", tool_calls=(call,)),
                Message(role="tool", content=f"file {number}\n" + "x = 1\n" * 300, tool_call_id=call.id),
                Message(role="assistant", content=f"patch {number}\n" + "y = 2\n" * 300),
                Message(role="user", content=f"Patch {number}: 1 of 2 tests pass."),
            ]
        )
    return history


def test_nothing_is_shortened_while_there_is_room() -> None:
    history = make_history(2)
    before = (*OPENING, *history.messages)
    assert history.within(ROOM_TOKENS) == before


def test_old_results_are_shortened_before_old_replies() -> None:
    history = make_history(4)

    messages = history.within(ROOM_TOKENS)

    assert estimate_tokens(messages) < ROOM_TOKENS
    assert messages[:2] == OPENING
    assert "not shown any more" in messages[3].content
    assert messages[3].content.startswith("file 0\n")
    assert messages[-3:] == tuple(make_history(4).messages[-3:])
    shortened = [message for message in messages if "reply is not shown" in message.content]
    whole_results = [message for message in messages if message.content.count("x = 1") == 300]
    assert not shortened or not whole_results[:-1]


def test_each_call_keeps_its_result_and_its_role() -> None:
    long_edit = ToolCall(id="edit", name="edit", arguments={"path": "a.py", "new_str": "z = 3\n" * 3000})
    history = MessageHistory(opening=OPENING)
    history.extend(
        [
            Message(role="assistant", content="", tool_calls=(long_edit,)),
            Message(role="tool", content="a.py is changed.", tool_call_id="edit"),
            *make_history(3).messages,
        ]
    )

    messages = history.within(ROOM_TOKENS)

    assert [message.role for message in messages[2:]] == [message.role for message in history.messages]
    asked = [call.id for message in messages for call in message.tool_calls]
    answered = [message.tool_call_id for message in messages if message.role == "tool"]
    assert asked == answered
    assert len(str(messages[2].tool_calls[0].arguments["new_str"])) < 300


def test_a_shortened_prompt_can_grow_again_before_its_beginning_changes() -> None:
    history = make_history(4)
    first = history.within(ROOM_TOKENS)
    history.extend([Message(role="assistant", content="next"), Message(role="user", content="result")])
    assert history.within(ROOM_TOKENS)[: len(first)] == first
