"""The question which of several repairs is meant, and how its answer is read."""

from __future__ import annotations

import pytest

from suture.agents.prompting.prompt_files import packaged_prompt
from suture.agents.roles.repair_chooser import ChoiceBrief, draft_choice_prompt, read_choice
from suture.core.ledger.kinds import ComparedCall
from suture.errors import MalformedReply
from suture.models import Reply

CODE = "```python\ndef f():\n    return 1\n```"


@pytest.mark.parametrize(
    ("text", "number", "explanation"),
    [
        ("CHOICE: 2\nIt keeps the discount.", 2, "It keeps the discount."),
        ("CHOICE: 2. It keeps the discount.", 2, "It keeps the discount."),
        ("I compared them.\n\n**Choice: Version 1** - the names say so.", 1, "the names say so."),
        ("choice: `3`", 3, ""),
        (f"CHOICE: NONE\nAll of them are wrong.\n{CODE}", 0, "All of them are wrong."),
        (f"No version is right.\n{CODE}", 0, ""),
    ],
)
def test_a_choice_is_read_in_any_usual_form(text: str, number: int, explanation: str) -> None:
    choice = read_choice(Reply(text=text), 3)
    assert (choice.number, choice.explanation) == (number, explanation)


@pytest.mark.parametrize(
    "text", ["", "Version 2 looks right.", "CHOICE: 4\nIt is right.", "CHOICE: NONE\nAll are wrong."]
)
def test_a_reply_without_a_usable_choice_is_malformed(text: str) -> None:
    with pytest.raises(MalformedReply):
        read_choice(Reply(text=text), 3)


def test_the_prompt_shows_the_versions_side_by_side() -> None:
    brief = ChoiceBrief(
        statement="Members pay too much.",
        language="python",
        files={"shop.py": "def f(n):\n    return n"},
        tests=["def test_f():\n    assert f(1) == 2"],
        versions=["-    return n\n+    return n + 1", "-    return n\n+    return n * 2"],
        calls=[ComparedCall(call="f(5)", before="5", answers=("6", "10"))],
    )
    draft = draft_choice_prompt(brief, packaged_prompt("repair_chooser"))
    prompt = draft.messages(draft.full_counts())[1].content

    assert "Members pay too much." in prompt
    assert "Version 2:\n```diff\n-    return n\n+    return n * 2\n```" in prompt
    assert "- `f(5)`: now 5; version 1 6; version 2 10" in prompt
    assert "assert f(1) == 2" in prompt
