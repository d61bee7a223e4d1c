"""Replies made to keep the parser busy are refused; ordinary ones are read."""

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
WRITE = WriteBrief(statement="Write add(a, b).", module="solution.py", entry_point="add")
REPAIR = RepairBrief(statement="", files={"a.py": ADD}, entry_point="add", project=frozenset({"a.py"}))
CHARS = 128 * 1024
ENDLESS = {
    "code that ends nowhere": "def add(a, b):\n    return (\n" + "a\n" * (CHARS // 2),
    "open fences": "```python\nx\n" * (CHARS // 12),
    "fences of two kinds": "`````\n" * (CHARS // 12) + "```\n" * (CHARS // 8),
    "fences": "```\n" * (CHARS // 4),
    "blocks": ("```python\n" + ADD + "```\n") * (CHARS // 48),
    "edits": "a.py\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n" * (CHARS // 50),
    "definitions": "```python\n" + ADD * (CHARS // 32) + "x = y = 1\n```",
    "a cut block": "```python\n" + "def f(): pass\n" * (CHARS // 15) + "(",
    "blanks before a fence": " " * CHARS + "!\n```python\nx = (\n```",
    "a label": "```" + "a." * (CHARS // 2) + "!\nx\n```",
    "tests": "```python\n" + "assert add(1, 2) == 3\n" * (CHARS // 22) + "```",
}


@pytest.mark.parametrize("name", ENDLESS)
@pytest.mark.parametrize("finish", ["stop", "length"])
def test_an_endless_reply_is_abandoned(name: str, finish: str) -> None:
    """None of these ended within seconds before; the test's time limit detects a regression."""
    reply = Reply(text=ENDLESS[name], finish="length" if finish == "length" else "stop")
    for brief in (WRITE, REPAIR):
        with contextlib.suppress(MalformedReply):
            assert all(len(text) < 2 * CHARS for text in files_from_reply(reply, brief).values())
    with contextlib.suppress(MalformedReply):
        assert len(checks_from_reply(reply, provenance="spec", entry_point="add").checks) <= 24


def test_real_replies_of_models_are_parsed() -> None:
    prose = "And this is why it is right.\n" * 200
    assert files_from_reply(Reply(text=ADD.replace("-", "+") + prose), WRITE)["solution.py"].startswith(
        "def add"
    )
    blocks = "".join(f"```python\ndef f{number}(x):\n    return x\n```\n" for number in range(60))
    whole = blocks + "```python\n" + ADD + "```\n"
    assert "def add" in files_from_reply(Reply(text=whole), WRITE)["solution.py"]


def test_more_blocks_than_anybody_writes_are_named() -> None:
    with pytest.raises(MalformedReply, match=str(MAX_REPLY_BLOCKS)):
        files_from_reply(Reply(text=("```python\n" + ADD + "```\n") * (MAX_REPLY_BLOCKS + 2)), WRITE)
