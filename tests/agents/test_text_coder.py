"""Replies in other languages than Python."""

from __future__ import annotations

import pytest

from suture.agents import packaged_prompt
from suture.agents.replies.repaired_files import read_repaired_files
from suture.agents.roles.coder import TextBrief, draft_text_prompt
from suture.core.records import Language
from suture.errors import MalformedReply
from suture.models import Reply

GO = """package clock

import "fmt"

// Add moves.
func Add(a, b int) int {
	return a - b
}

func (c Clock) Show() string {
	return fmt.Sprint(c)
}
"""
JS = """const fs = require('fs');

function add(a, b) {
  return a - b;
}

module.exports = { add };
"""
TS = """interface Point {
  x: number;
}

export function add(a: number, b: number): number {
  return a - b;
}

export const enum Side {
  Left,
}
"""

ENDINGS: dict[Language, str] = {"go": "go", "javascript": "js", "typescript": "ts"}


def extract_files(text: str, language: Language, **files: str) -> dict[str, str]:
    files_by_path = {name.replace("__", "/").replace("_", "."): content for name, content in files.items()}
    brief = TextBrief(statement="", language=language, files=files_by_path)
    return read_repaired_files(Reply(text=text), brief)


def test_a_whole_file_replaces_the_file() -> None:
    repaired = JS.replace("a - b", "a + b")
    assert extract_files(f"Here:\n```js\n{repaired}```", "javascript", lib__a_js=JS) == {"lib/a.js": repaired}


@pytest.mark.parametrize(
    ("language", "original", "function"),
    [
        ("go", GO, "// Add moves.\nfunc Add(a, b int) int {\n\treturn a + b\n}\n"),
        ("go", GO, "package clock\n\nfunc Add(a, b int) int {\n\treturn a + b\n}\n"),
        ("javascript", JS, "function add(a, b) {\n  return a + b;\n}\n"),
        ("typescript", TS, "export function add(a: number, b: number): number {\n  return a + b;\n}\n"),
    ],
)
def test_a_function_replaces_its_namesake_only(language: Language, original: str, function: str) -> None:
    (text,) = extract_files(f"```\n{function}```", language, **{f"a_{ENDINGS[language]}": original}).values()
    assert "a + b" in text
    assert "a - b" not in text
    for line in original.splitlines():
        assert "a - b" in line or line.startswith("// Add") or line in text.splitlines(), line


def test_a_reply_is_applied_to_the_named_file() -> None:
    repaired = JS.replace("a - b", "a + b")
    files = {"lib__a_js": JS, "b_js": JS.replace("add", "sum")}
    for text in (
        f"### lib/a.js\n```\n{repaired}```",
        f"```javascript\n// lib/a.js\n{repaired}```",
        f"```\n{repaired}```",
    ):
        assert list(extract_files(text, "javascript", **files)) == ["lib/a.js"]


def test_search_and_replace_blocks_apply() -> None:
    text = "### a.js\n<<<<<<< SEARCH\n  return a - b;\n=======\n  return a + b;\n>>>>>>> REPLACE\n"
    assert extract_files(text, "javascript", a_js=JS) == {"a.js": JS.replace("a - b", "a + b")}


@pytest.mark.parametrize(
    "text",
    [
        "It is fine as it is.",
        f"```js\n{JS}```",
        "```js\nconsole.log(1);\n```",
        f"```js\n{JS.replace('a - b', 'a + b')}",
        "```bash\nnpm test\n```",
    ],
)
def test_a_reply_without_a_change_is_malformed(text: str) -> None:
    with pytest.raises(MalformedReply):
        extract_files(text, "javascript", a_js=JS)


def test_the_prompt_names_the_language_instead_of_python() -> None:
    brief = TextBrief(
        statement="", language="go", files={"a.go": GO, "b.go": GO}, output="a_test.go:1: Python"
    )
    draft = draft_text_prompt(brief, packaged_prompt("coder"))
    system, user = draft.messages(draft.full_counts())

    assert "Go programmer" in system.content
    assert user.content.count("```go") == 3
    assert "```python" not in user.content
    assert "a_test.go:1: Python" in user.content
