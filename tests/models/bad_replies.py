"""Malformed structured replies of the kinds that small models write, with the value that each one means.

`expected` is the value that a careful person would read. `None` means that such a person would have to guess,
so that the only correct reaction is to ask again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["BAD_REPLIES", "BadReply", "Review", "Triage"]


class Triage(BaseModel):
    """A type like those of the roles: free text, a closed set, a number."""

    model_config = ConfigDict(frozen=True)

    root_cause: str = Field(min_length=1, max_length=300)
    category: Literal["syntax", "off_by_one", "wrong_type", "wrong_logic"]
    confidence: float = Field(ge=0, le=1)


class Review(BaseModel):
    """The type of a critic, for which a misread reply could become an approval."""

    model_config = ConfigDict(frozen=True)

    approved: bool
    problems: tuple[str, ...]
    line: int


@dataclass(frozen=True, kw_only=True)
class BadReply:
    """One reply, the type that was requested, and its meaning."""

    id: str
    text: str
    expected: BaseModel | None
    type_: type[BaseModel]


PLAIN = {"root_cause": "the range stops too early", "category": "off_by_one", "confidence": 0.8}
MEANING = Triage(root_cause="the range stops too early", category="off_by_one", confidence=0.8)
JSON = json.dumps(PLAIN)


def readable_reply(id: str, text: str, **changes: Any) -> BadReply:
    """Return a reply that means `MEANING`, apart from these changes."""
    return BadReply(id=id, text=text, expected=MEANING.model_copy(update=changes), type_=Triage)


def unreadable_reply(id: str, text: str) -> BadReply:
    """Return a reply that cannot be read without guessing."""
    return BadReply(id=id, text=text, expected=None, type_=Triage)


def critic_reply(id: str, text: str, expected: Review | None = None) -> BadReply:
    """Return the reply of a critic."""
    return BadReply(id=id, text=text, expected=expected, type_=Review)


APPROVAL = '{"approved": true, "problems": [], "line": 1}'
REFUSED = Review(approved=False, problems=("no test",), line=3)

BAD_REPLIES = (
    # Around the object
    readable_reply("prose before", f"Sure! Here is the diagnosis:\n\n{JSON}"),
    readable_reply("prose after", f"{JSON}\n\nLet me know if you need anything else!"),
    readable_reply("fence", f"```json\n{JSON}\n```"),
    readable_reply("fence without a label", f"```\n{JSON}\n```"),
    readable_reply("fence that is not closed", f"```json\n{JSON}\n"),
    readable_reply(
        "fence and an explanation with braces", f"```json\n{JSON}\n```\nThe set {{1, 2}} is not reached."
    ),
    readable_reply("braces in the prose before", f"The call f({{1: 2}}) fails in {{x}}.\n{JSON}"),
    readable_reply("thinking before", f'<think>maybe {{"category": "syntax"}} or not</think>\n{JSON}'),
    readable_reply("tool call", f'<tool_call>\n{{"name": "Triage", "arguments": {JSON}}}\n</tool_call>'),
    readable_reply("tool call with text arguments", json.dumps({"name": "Triage", "arguments": JSON})),
    readable_reply("wrapped in its name", json.dumps({"triage": PLAIN})),
    readable_reply("wrapped in a list", json.dumps([PLAIN])),
    readable_reply("wrapped in result and data", json.dumps({"result": {"data": PLAIN}})),
    readable_reply("put into the schema", json.dumps({"type": "object", "properties": PLAIN})),
    readable_reply(
        "values with types",
        json.dumps({name: {"type": "string", "value": value} for name, value in PLAIN.items()}),
    ),
    readable_reply("a text of JSON", json.dumps(JSON)),
    readable_reply("escaped without quotes around", json.dumps(JSON)[1:-1]),
    readable_reply("twice the same", f"{JSON}\n{JSON}"),
    readable_reply("template markers behind", f"{JSON}<|im_end|>\n<|im_start|>"),
    readable_reply("one closing brace too many", f"{JSON}}}"),
    readable_reply("an assignment", f"diagnosis = {JSON}"),
    readable_reply("byte order mark", f"\ufeff{JSON}"),
    # Inside the object
    readable_reply("single quotes", str(PLAIN)),
    readable_reply(
        "curly quotes", JSON.replace(' "', " “").replace('":', "”:").replace('",', "”,").replace('{"', "{“")
    ),
    readable_reply("backquotes", JSON.replace('"', "`")),
    readable_reply(
        "bare keys", '{root_cause: "the range stops too early", category: "off_by_one", confidence: 0.8}'
    ),
    readable_reply(
        "bare words", '{"root_cause": "the range stops too early", "category": off_by_one, "confidence": 0.8}'
    ),
    readable_reply("trailing comma", JSON.replace("}", ",}")),
    readable_reply("doubled comma", JSON.replace(", ", ",, ", 1)),
    readable_reply("no commas between lines", JSON.replace(", ", "\n")),
    readable_reply("semicolons", JSON.replace(", ", "; ")),
    readable_reply("equals signs", JSON.replace(": ", " = ")),
    readable_reply("arrows", JSON.replace(": ", " => ")),
    readable_reply("comment behind a member", JSON.replace(", ", ", // the fault\n", 1)),
    readable_reply("hash comment", JSON.replace(", ", ", # the fault\n", 1)),
    readable_reply("block comment", JSON.replace("{", "{/* see below */", 1)),
    readable_reply("no closing brace", JSON[:-1]),
    readable_reply("nested without closing braces", f'{{"diagnosis": {JSON[:-1]}'),
    readable_reply(
        "line end inside a text",
        JSON.replace("stops too", "stops\ntoo"),
        root_cause="the range stops\ntoo early",
    ),
    readable_reply(
        "quotes inside a text", JSON.replace("range", '"range"'), root_cause='the "range" stops too early'
    ),
    readable_reply(
        "quotes and a comma inside a text",
        JSON.replace("the range", 'of "n", the range'),
        root_cause='of "n", the range stops too early',
    ),
    readable_reply(
        "escape that JSON has not",
        JSON.replace("range", r"\d range"),
        root_cause=r"the \d range stops too early",
    ),
    readable_reply(
        "escaped single quote", JSON.replace("the", r"it\'s the"), root_cause="it's the range stops too early"
    ),
    readable_reply(
        "triple quotes",
        JSON.replace('"the range stops too early"', '"""the range\nstops"""'),
        root_cause="the range\nstops",
    ),
    readable_reply("tabs and odd blanks", JSON.replace(", ", ",\u00a0\t")),
    # Names and values
    readable_reply("camel case", JSON.replace("root_cause", "rootCause")),
    readable_reply(
        "titles as keys", JSON.replace("root_cause", "Root Cause").replace("category", "Category")
    ),
    readable_reply("choice in title case", JSON.replace("off_by_one", "Off By One")),
    readable_reply("choice with hyphens", JSON.replace("off_by_one", "off-by-one")),
    readable_reply("choice in capitals", JSON.replace("off_by_one", "OFF_BY_ONE")),
    readable_reply("choice with the word error", JSON.replace("off_by_one", "Off-by-one error")),
    readable_reply("choice as an enum's member", JSON.replace("off_by_one", "Category.OFF_BY_ONE")),
    readable_reply("choice in a list", JSON.replace('"off_by_one"', '["off_by_one"]')),
    readable_reply("number as a text", JSON.replace("0.8", '"0.8"')),
    readable_reply("number in per cent", JSON.replace("0.8", '"80%"')),
    readable_reply("number as a fraction", JSON.replace("0.8", '"8/10"')),
    readable_reply("number without its zero", JSON.replace("0.8", ".8")),
    readable_reply("members nobody asked for", JSON.replace("{", '{"id": 7, "note": null, ', 1)),
    readable_reply(
        "text as a list of sentences",
        JSON.replace('"the range stops too early"', '["the range", "stops too early"]'),
    ),
    # No object at all
    readable_reply("lines", "root_cause: the range stops too early\ncategory: off_by_one\nconfidence: 0.8"),
    readable_reply(
        "a list in Markdown",
        "Here is my diagnosis:\n\n- **Root cause:** the range stops too early\n- **Category:** `off_by_one`\n"
        "- **Confidence:** 0.8\n",
    ),
    readable_reply(
        "tags",
        "<root_cause>the range stops too early</root_cause>\n<category>off_by_one</category>\n"
        "<confidence>0.8</confidence>",
    ),
    # Nothing to be read without guessing
    unreadable_reply("nothing", ""),
    unreadable_reply("blanks", " \n\t"),
    unreadable_reply("prose", "The code has an off-by-one error in its range, I am quite sure."),
    unreadable_reply("a refusal", "I'm sorry, but I can't help with that."),
    unreadable_reply("null", "null"),
    unreadable_reply("an empty object", "{}"),
    unreadable_reply("an empty list", "[]"),
    unreadable_reply("the words true and ok", "true ok"),
    unreadable_reply(
        "a member is missing", '{"root_cause": "the range stops too early", "category": "off_by_one"}'
    ),
    unreadable_reply("a member without a value", JSON.replace("0.8", "")),
    unreadable_reply("a member that is null", JSON.replace("0.8", "null")),
    unreadable_reply("not a number", JSON.replace("0.8", "NaN")),
    unreadable_reply("undefined", JSON.replace("0.8", "undefined")),
    unreadable_reply("a number in words", JSON.replace("0.8", '"high"')),
    unreadable_reply("a number out of bounds", JSON.replace("0.8", "80")),
    unreadable_reply("a negative number", JSON.replace("0.8", "-0.8")),
    unreadable_reply("true as a number", JSON.replace("0.8", "true")),
    unreadable_reply("a choice that is none", JSON.replace("off_by_one", "runtime")),
    unreadable_reply(
        "all choices echoed", JSON.replace("off_by_one", "syntax|off_by_one|wrong_type|wrong_logic")
    ),
    unreadable_reply("a choice denied", JSON.replace("off_by_one", "not a syntax error")),
    unreadable_reply("two choices", JSON.replace('"off_by_one"', '["syntax", "off_by_one"]')),
    unreadable_reply("the text says nothing", JSON.replace("the range stops too early", "...")),
    unreadable_reply("the text is a placeholder", JSON.replace("the range stops too early", "<root cause>")),
    unreadable_reply("the text is its type", JSON.replace("the range stops too early", "string")),
    unreadable_reply("the schema echoed", json.dumps(Triage.model_json_schema())),
    unreadable_reply("cut inside a text", JSON[:30]),
    unreadable_reply("cut behind a colon", JSON[:-4]),
    unreadable_reply("cut inside a key", JSON[:-12]),
    unreadable_reply("two answers", f"{JSON}\nOr rather:\n{JSON.replace('0.8', '0.2')}"),
    unreadable_reply("one member said twice", JSON.replace("}", ', "confidence": 0.1}')),
    unreadable_reply("a promise", "I will give my answer as soon as I have looked at the code."),
    unreadable_reply("code instead", "```python\ndef total(n):\n    return {'confidence': n}\n```"),
    unreadable_reply("a text that never ends", JSON.replace("the range", "the range " * 60)),
    unreadable_reply("the same word for ever", '{"root_cause": "' + "the " * 500),
    unreadable_reply("blank lines without end", JSON[:20] + "\n" * 20_000),
    unreadable_reply(
        "blanks behind a text without end", JSON[:38] + '"' + " " * 20_000 + "x" + "\n " * 9_000
    ),
    unreadable_reply("a number too long to be one", JSON.replace("0.8", "0" * 5000 + "1")),
    unreadable_reply("a number that is infinite", JSON.replace("0.8", "1e999")),
    unreadable_reply("an example inside a bad answer", JSON.replace("0.8", f'"high", "example": {JSON}')),
    unreadable_reply("brackets without end", "[" * 3000),
    unreadable_reply("braces without end", '{"a":' * 3000),
    # A critic that must not be read as approving
    critic_reply("a refusal in Python", "{'approved': False, 'problems': ['no test'], 'line': 3}", REFUSED),
    critic_reply(
        "one problem that is not in a list", '{"approved": "no", "problems": "no test", "line": "3"}', REFUSED
    ),
    critic_reply("approval missing", '{"problems": [], "line": 1}'),
    critic_reply("approval without a value", '{"approved": , "problems": [], "line": 1}'),
    critic_reply("approval is null", '{"approved": null, "problems": [], "line": 1}'),
    critic_reply("approval is maybe", '{"approved": "maybe", "problems": [], "line": 1}'),
    critic_reply("approval is a number", '{"approved": 1, "problems": [], "line": 1}'),
    critic_reply("approval is a text", '{"approved": "approved", "problems": [], "line": 1}'),
    critic_reply("approval in prose", "Looks good to me, approved!"),
    critic_reply(
        "approval echoes the format", '{"approved": true or false, "problems": ["a text", ...], "line": 1}'
    ),
    critic_reply("approved and refused", '{"approved": true, "approved": false, "problems": [], "line": 1}'),
    critic_reply("an example inside a refusal", f'{{"approved": "maybe", "e": {APPROVAL}}}'),
    critic_reply("an example inside what cannot be read", f'{{"approved": , "e": {APPROVAL}}}'),
    critic_reply("an infinite line number", '{"approved": true, "problems": [], "line": Infinity}'),
    critic_reply("half a line number", '{"approved": true, "problems": [], "line": 1.5}'),
)
