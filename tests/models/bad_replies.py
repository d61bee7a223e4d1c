"""Malformed structured replies of the kinds that small models write, with the value that each one means.

`expected` is what a careful person would read; `None` is where such a person would have to guess, so that the
only right thing is to ask again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["BAD_REPLIES", "BadReply", "Review", "Triage"]


class Triage(BaseModel):
    """A type like the roles' own: free text, a closed set, numbers."""

    model_config = ConfigDict(frozen=True)

    root_cause: str = Field(min_length=1, max_length=300)
    category: Literal["syntax", "off_by_one", "wrong_type", "wrong_logic"]
    confidence: float = Field(ge=0, le=1)


class Review(BaseModel):
    """A critic's type, whose wrong reading would be a success."""

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
MEANT = Triage(root_cause="the range stops too early", category="off_by_one", confidence=0.8)
JSON = json.dumps(PLAIN)


def triage(id: str, text: str, **said: Any) -> BadReply:
    """A reply that means `MEANT`, except for the given parts."""
    return BadReply(id=id, text=text, expected=MEANT.model_copy(update=said), type_=Triage)


def hopeless(id: str, text: str) -> BadReply:
    return BadReply(id=id, text=text, expected=None, type_=Triage)


def review(id: str, text: str, expected: Review | None = None) -> BadReply:
    return BadReply(id=id, text=text, expected=expected, type_=Review)


APPROVAL = '{"approved": true, "problems": [], "line": 1}'
REFUSED = Review(approved=False, problems=("no test",), line=3)

BAD_REPLIES = (
    # Around the object
    triage("prose before", f"Sure! Here is the diagnosis:\n\n{JSON}"),
    triage("prose after", f"{JSON}\n\nLet me know if you need anything else!"),
    triage("fence", f"```json\n{JSON}\n```"),
    triage("fence without a label", f"```\n{JSON}\n```"),
    triage("fence that is not closed", f"```json\n{JSON}\n"),
    triage("fence and an explanation with braces", f"```json\n{JSON}\n```\nThe set {{1, 2}} is not reached."),
    triage("braces in the prose before", f"The call f({{1: 2}}) fails in {{x}}.\n{JSON}"),
    triage("thinking before", f'<think>maybe {{"category": "syntax"}} or not</think>\n{JSON}'),
    triage("tool call", f'<tool_call>\n{{"name": "Triage", "arguments": {JSON}}}\n</tool_call>'),
    triage("tool call with text arguments", json.dumps({"name": "Triage", "arguments": JSON})),
    triage("wrapped in its name", json.dumps({"triage": PLAIN})),
    triage("wrapped in a list", json.dumps([PLAIN])),
    triage("wrapped in result and data", json.dumps({"result": {"data": PLAIN}})),
    triage("put into the schema", json.dumps({"type": "object", "properties": PLAIN})),
    triage(
        "values with types",
        json.dumps({name: {"type": "string", "value": value} for name, value in PLAIN.items()}),
    ),
    triage("a text of JSON", json.dumps(JSON)),
    triage("escaped without quotes around", json.dumps(JSON)[1:-1]),
    triage("twice the same", f"{JSON}\n{JSON}"),
    triage("template markers behind", f"{JSON}<|im_end|>\n<|im_start|>"),
    triage("one closing brace too many", f"{JSON}}}"),
    triage("an assignment", f"diagnosis = {JSON}"),
    triage("byte order mark", f"\ufeff{JSON}"),
    # Inside the object
    triage("single quotes", str(PLAIN)),
    triage(
        "curly quotes", JSON.replace(' "', " “").replace('":', "”:").replace('",', "”,").replace('{"', "{“")
    ),
    triage("backquotes", JSON.replace('"', "`")),
    triage("bare keys", '{root_cause: "the range stops too early", category: "off_by_one", confidence: 0.8}'),
    triage(
        "bare words", '{"root_cause": "the range stops too early", "category": off_by_one, "confidence": 0.8}'
    ),
    triage("trailing comma", JSON.replace("}", ",}")),
    triage("doubled comma", JSON.replace(", ", ",, ", 1)),
    triage("no commas between lines", JSON.replace(", ", "\n")),
    triage("semicolons", JSON.replace(", ", "; ")),
    triage("equals signs", JSON.replace(": ", " = ")),
    triage("arrows", JSON.replace(": ", " => ")),
    triage("comment behind a member", JSON.replace(", ", ", // the fault\n", 1)),
    triage("hash comment", JSON.replace(", ", ", # the fault\n", 1)),
    triage("block comment", JSON.replace("{", "{/* see below */", 1)),
    triage("no closing brace", JSON[:-1]),
    triage("nested without closing braces", f'{{"diagnosis": {JSON[:-1]}'),
    triage(
        "line end inside a text",
        JSON.replace("stops too", "stops\ntoo"),
        root_cause="the range stops\ntoo early",
    ),
    triage(
        "quotes inside a text", JSON.replace("range", '"range"'), root_cause='the "range" stops too early'
    ),
    triage(
        "quotes and a comma inside a text",
        JSON.replace("the range", 'of "n", the range'),
        root_cause='of "n", the range stops too early',
    ),
    triage(
        "escape that JSON has not",
        JSON.replace("range", r"\d range"),
        root_cause=r"the \d range stops too early",
    ),
    triage(
        "escaped single quote", JSON.replace("the", r"it\'s the"), root_cause="it's the range stops too early"
    ),
    triage(
        "triple quotes",
        JSON.replace('"the range stops too early"', '"""the range\nstops"""'),
        root_cause="the range\nstops",
    ),
    triage("tabs and odd blanks", JSON.replace(", ", ",\u00a0\t")),
    # Names and values
    triage("camel case", JSON.replace("root_cause", "rootCause")),
    triage("titles as keys", JSON.replace("root_cause", "Root Cause").replace("category", "Category")),
    triage("choice in title case", JSON.replace("off_by_one", "Off By One")),
    triage("choice with hyphens", JSON.replace("off_by_one", "off-by-one")),
    triage("choice in capitals", JSON.replace("off_by_one", "OFF_BY_ONE")),
    triage("choice with the word error", JSON.replace("off_by_one", "Off-by-one error")),
    triage("choice as an enum's member", JSON.replace("off_by_one", "Category.OFF_BY_ONE")),
    triage("choice in a list", JSON.replace('"off_by_one"', '["off_by_one"]')),
    triage("number as a text", JSON.replace("0.8", '"0.8"')),
    triage("number in per cent", JSON.replace("0.8", '"80%"')),
    triage("number as a fraction", JSON.replace("0.8", '"8/10"')),
    triage("number without its zero", JSON.replace("0.8", ".8")),
    triage("members nobody asked for", JSON.replace("{", '{"id": 7, "note": null, ', 1)),
    triage(
        "text as a list of sentences",
        JSON.replace('"the range stops too early"', '["the range", "stops too early"]'),
    ),
    # No object at all
    triage("lines", "root_cause: the range stops too early\ncategory: off_by_one\nconfidence: 0.8"),
    triage(
        "a list in Markdown",
        "Here is my diagnosis:\n\n- **Root cause:** the range stops too early\n- **Category:** `off_by_one`\n"
        "- **Confidence:** 0.8\n",
    ),
    triage(
        "tags",
        "<root_cause>the range stops too early</root_cause>\n<category>off_by_one</category>\n"
        "<confidence>0.8</confidence>",
    ),
    # Nothing to be read without guessing
    hopeless("nothing", ""),
    hopeless("blanks", " \n\t"),
    hopeless("prose", "The code has an off-by-one error in its range, I am quite sure."),
    hopeless("a refusal", "I'm sorry, but I can't help with that."),
    hopeless("null", "null"),
    hopeless("an empty object", "{}"),
    hopeless("an empty list", "[]"),
    hopeless("the words true and ok", "true ok"),
    hopeless("a member is missing", '{"root_cause": "the range stops too early", "category": "off_by_one"}'),
    hopeless("a member without a value", JSON.replace("0.8", "")),
    hopeless("a member that is null", JSON.replace("0.8", "null")),
    hopeless("not a number", JSON.replace("0.8", "NaN")),
    hopeless("undefined", JSON.replace("0.8", "undefined")),
    hopeless("a number in words", JSON.replace("0.8", '"high"')),
    hopeless("a number out of bounds", JSON.replace("0.8", "80")),
    hopeless("a negative number", JSON.replace("0.8", "-0.8")),
    hopeless("true as a number", JSON.replace("0.8", "true")),
    hopeless("a choice that is none", JSON.replace("off_by_one", "runtime")),
    hopeless("all choices echoed", JSON.replace("off_by_one", "syntax|off_by_one|wrong_type|wrong_logic")),
    hopeless("a choice denied", JSON.replace("off_by_one", "not a syntax error")),
    hopeless("two choices", JSON.replace('"off_by_one"', '["syntax", "off_by_one"]')),
    hopeless("the text says nothing", JSON.replace("the range stops too early", "...")),
    hopeless("the text is a placeholder", JSON.replace("the range stops too early", "<root cause>")),
    hopeless("the text is its type", JSON.replace("the range stops too early", "string")),
    hopeless("the schema echoed", json.dumps(Triage.model_json_schema())),
    hopeless("cut inside a text", JSON[:30]),
    hopeless("cut behind a colon", JSON[:-4]),
    hopeless("cut inside a key", JSON[:-12]),
    hopeless("two answers", f"{JSON}\nOr rather:\n{JSON.replace('0.8', '0.2')}"),
    hopeless("one member said twice", JSON.replace("}", ', "confidence": 0.1}')),
    hopeless("only thoughts", f"<think>It could be {JSON}"),
    hopeless("code instead", "```python\ndef total(n):\n    return {'confidence': n}\n```"),
    hopeless("a text that never ends", JSON.replace("the range", "the range " * 60)),
    hopeless("the same word for ever", '{"root_cause": "' + "the " * 500),
    hopeless("blank lines without end", JSON[:20] + "\n" * 20_000),
    hopeless("blanks behind a text without end", JSON[:38] + '"' + " " * 20_000 + "x" + "\n " * 9_000),
    hopeless("a number too long to be one", JSON.replace("0.8", "0" * 5000 + "1")),
    hopeless("a number that is infinite", JSON.replace("0.8", "1e999")),
    hopeless("an example inside a bad answer", JSON.replace("0.8", f'"high", "example": {JSON}')),
    hopeless("brackets without end", "[" * 3000),
    hopeless("braces without end", '{"a":' * 3000),
    # A critic that must not be read as approving
    review("a refusal in Python", "{'approved': False, 'problems': ['no test'], 'line': 3}", REFUSED),
    review(
        "one problem that is not in a list", '{"approved": "no", "problems": "no test", "line": "3"}', REFUSED
    ),
    review("approval missing", '{"problems": [], "line": 1}'),
    review("approval without a value", '{"approved": , "problems": [], "line": 1}'),
    review("approval is null", '{"approved": null, "problems": [], "line": 1}'),
    review("approval is maybe", '{"approved": "maybe", "problems": [], "line": 1}'),
    review("approval is a number", '{"approved": 1, "problems": [], "line": 1}'),
    review("approval is a text", '{"approved": "approved", "problems": [], "line": 1}'),
    review("approval in prose", "Looks good to me, approved!"),
    review(
        "approval echoes the format", '{"approved": true or false, "problems": ["a text", ...], "line": 1}'
    ),
    review("approved and refused", '{"approved": true, "approved": false, "problems": [], "line": 1}'),
    review("an example inside a refusal", f'{{"approved": "maybe", "e": {APPROVAL}}}'),
    review("an example inside what cannot be read", f'{{"approved": , "e": {APPROVAL}}}'),
    review("an infinite line number", '{"approved": true, "problems": [], "line": Infinity}'),
    review("half a line number", '{"approved": true, "problems": [], "line": 1.5}'),
)
