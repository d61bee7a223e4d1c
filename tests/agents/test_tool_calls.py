"""Calls of tools: their inputs, what is wrong with them, and calls in the text of a reply."""

from __future__ import annotations

import pytest

from suture.agents.conversation.tool_calls import read_inputs, read_text_calls
from suture.models import ToolCall


@pytest.mark.parametrize(
    ("name", "arguments", "values"),
    [
        ("read_file", {"path": "a.py"}, {"path": "a.py"}),
        ("read_file", {"path": "a.py", "lines": None}, {"path": "a.py"}),
        ("read_file", {"path": "a.py", "lines": [3, 9]}, {"path": "a.py", "lines": "[3, 9]"}),
        ("run_tests", {}, {}),
    ],
)
def test_inputs_are_read_as_text(name: str, arguments: dict[str, object], values: dict[str, str]) -> None:
    inputs = read_inputs(ToolCall(id="1", name=name, arguments=arguments))
    assert (inputs.error, inputs.values) == ("", values)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (ToolCall(id="1", name="bash"), "there is no tool 'bash', only read_file, search, shell,"),
        (ToolCall(id="1", name="shell"), "'command' is missing: shell takes command"),
        (
            ToolCall(id="1", name="run_tests", arguments={"path": "a"}),
            "there is no 'path': run_tests takes no",
        ),
        (ToolCall(id="1", name="search", undecoded="[1"), "not a JSON object: Expecting ',' delimiter"),
        (ToolCall(id="1", name="search", undecoded="[1]"), "not a JSON object: it is a list"),
        (ToolCall(id="1", name="search", undecoded="[" * 100_000), "it is nested too deeply"),
    ],
)
def test_a_wrong_call_is_answered_with_what_is_wrong(call: ToolCall, error: str) -> None:
    assert error in read_inputs(call).error


def test_calls_in_a_text_are_read_in_their_order() -> None:
    text = """I look.
TOOL: read_file {"path": "a.py"}
  TOOL: run_tests
A line `TOOL: x` in a sentence is none.
TOOL: search {"text": "a
"""

    first, second, third = read_text_calls(text)

    assert (first.name, dict(first.arguments)) == ("read_file", {"path": "a.py"})
    assert (second.name, dict(second.arguments)) == ("run_tests", {})
    assert (third.name, third.undecoded) == ("search", '{"text": "a')
