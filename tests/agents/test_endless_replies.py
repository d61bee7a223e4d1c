"""Replies that are expensive to parse are refused, and ordinary replies are read."""

from __future__ import annotations

import contextlib

import pytest

from suture.agents import RepairBrief, files_from_reply
from suture.agents.replies.generated_checks import checks_from_reply
from suture.agents.roles.coder import WriteBrief
from suture.errors import MalformedReply
from suture.models import Reply
from suture.project.tuning import MAX_REPLY_BLOCKS

ADD = "def add(a, b):\n    return a - b\n"
WRITE_BRIEF = WriteBrief(statement="Write add(a, b).", module="solution.py", entry_point="add")
REPAIR_BRIEF = RepairBrief(statement="", files={"a.py": ADD}, entry_point="add", project=frozenset({"a.py"}))
REPLY_CHARS = 128 * 1024
ENDLESS_REPLIES = {
    "code that ends nowhere": "def add(a, b):\n    return (\n" + "a\n" * (REPLY_CHARS // 2),
    "open fences": "```python\nx\n" * (REPLY_CHARS // 12),
    "fences of two kinds": "`````\n" * (REPLY_CHARS // 12) + "```\n" * (REPLY_CHARS // 8),
    "fences": "```\n" * (REPLY_CHARS // 4),
    "blocks": ("```python\n" + ADD + "```\n") * (REPLY_CHARS // 48),
    "edits": "a.py\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n" * (REPLY_CHARS // 50),
    "definitions": "```python\n" + ADD * (REPLY_CHARS // 32) + "x = y = 1\n```",
    "a cut block": "```python\n" + "def f(): pass\n" * (REPLY_CHARS // 15) + "(",
    "blanks before a fence": " " * REPLY_CHARS + "!\n```python\nx = (\n```",
    "a label": "```" + "a." * (REPLY_CHARS // 2) + "!\nx\n```",
    "tests": "```python\n" + "assert add(1, 2) == 3\n" * (REPLY_CHARS // 22) + "```",
}


@pytest.mark.parametrize("name", ENDLESS_REPLIES)
@pytest.mark.parametrize("finish", ["stop", "length"])
def test_an_endless_reply_is_abandoned(name: str, finish: str) -> None:
    """These replies once kept the parser busy for too long, so the test's time limit detects a regression."""
    reply = Reply(text=ENDLESS_REPLIES[name], finish="length" if finish == "length" else "stop")
    for brief in (WRITE_BRIEF, REPAIR_BRIEF):
        with contextlib.suppress(MalformedReply):
            assert all(len(text) < 2 * REPLY_CHARS for text in files_from_reply(reply, brief).values())
    with contextlib.suppress(MalformedReply):
        assert len(checks_from_reply(reply, provenance="spec", entry_point="add").checks) <= 24


def test_ordinary_replies_are_parsed() -> None:
    prose = "And this is why it is right.\n" * 200

    assert files_from_reply(Reply(text=ADD.replace("-", "+") + prose), WRITE_BRIEF)["solution.py"].startswith(
        "def add"
    )
    blocks = "".join(f"```python\ndef f{number}(x):\n    return x\n```\n" for number in range(60))
    reply = blocks + "```python\n" + ADD + "```\n"
    assert "def add" in files_from_reply(Reply(text=reply), WRITE_BRIEF)["solution.py"]


def test_the_number_of_blocks_is_limited() -> None:
    with pytest.raises(MalformedReply, match=str(MAX_REPLY_BLOCKS)):
        files_from_reply(Reply(text=("```python\n" + ADD + "```\n") * (MAX_REPLY_BLOCKS + 2)), WRITE_BRIEF)
