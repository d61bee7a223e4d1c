"""Replies with several files, which models name in many different ways."""

from __future__ import annotations

import pytest

from suture.agents import WriteBrief, files_from_reply
from suture.agents.replies.written_files import surplus_files_in_reply
from suture.errors import MalformedReply
from suture.loop.intake.test_subject import asks_for_several_files, find_requested_files
from suture.models import Reply

CART = "def total(prices):\n    return sum(prices)\n"
CLI = "from shop.cart import total\n\n\ndef main(argv):\n    return total(map(int, argv))\n"
BRIEF = WriteBrief(
    statement="A shop.",
    module="shop/cart.py",
    other_modules=("shop/cli.py",),
    allows_several_files=True,
    entry_point="total",
)
FILES = {"shop/cart.py": CART, "shop/cli.py": CLI}

NAMING_STYLES = {
    "a heading": "### {path}\n\n```python\n{code}```",
    "a heading in backticks, numbered": "#### 1. `{path}`\n```python\n{code}```",
    "bold": "**{path}**\n\n```python\n{code}```",
    "bold, called a file": "**File: `{path}`**\n\n```python\n{code}```",
    "a file with a number": "### File 1: {path}\n```python\n{code}```",
    "in backticks, with a colon": "`{path}`:\n```python\n{code}```",
    "a list item with what it is": "- `{path}` - one of the files\n```python\n{code}```",
    "a sentence": "Now create `{path}`:\n\n```python\n{code}```",
    "another sentence": "Here is the code of `{path}`:\n\n```python\n{code}```",
    "the info string": "```python {path}\n{code}```",
    "the info string, as a title": '```python title="{path}"\n{code}```',
    "behind a colon": "```python:{path}\n{code}```",
    "a comment as first line": "```python\n# {path}\n{code}```",
    "a comment that says file": "```python\n# file: {path}\n{code}```",
    "a comment that says filename": "```python\n# Filename: {path}\n{code}```",
    "a tag": '<file path="{path}">\n{code}</file>',
    "a tag around a fence": '<file path="{path}">\n```python\n{code}```\n</file>',
    "a folder around all": "### my-project/{path}\n```python\n{code}```",
    "a dot in front": "### ./{path}\n```python\n{code}```",
}


def extract_files(text: str, brief: WriteBrief = BRIEF) -> dict[str, str]:
    return files_from_reply(Reply(text=text), brief)


@pytest.mark.parametrize("style", NAMING_STYLES.values(), ids=NAMING_STYLES)
def test_each_style_of_naming_files_is_read(style: str) -> None:
    text = "\n\n".join(style.format(path=path, code=code) for path, code in FILES.items())
    files = extract_files(f"Sure, here they are.\n\n{text}\n\nRun it:\n```bash\npython -m shop.cli 1\n```\n")
    commented = {path: code.split("\n", 1)[1] for path, code in files.items() if code.startswith("#")}
    assert {**files, **commented} == FILES


def test_a_file_list_before_the_files_is_not_a_file() -> None:
    tree = "Files:\n- `shop/cart.py`: the cart\n- `shop/cli.py`: the rest\n\n```\nshop/\n  cart.py\n```\n"
    text = "\n".join(f"### {path}\n```python\n{code}```" for path, code in FILES.items())
    assert extract_files(f"{tree}\n{text}") == FILES


def test_the_module_may_be_unnamed_beside_named_files() -> None:
    assert extract_files(f"```python\n{CART}```\n\n### shop/cli.py\n```python\n{CLI}```") == FILES


def test_the_complete_block_of_a_file_is_used() -> None:
    partial_block = "### shop/cli.py\n```python\nmain(['1'])\n```"
    text = "\n".join(f"### {path}\n```python\n{code}```" for path, code in FILES.items())
    assert extract_files(f"{text}\n{partial_block}") == FILES


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"### shop/cart.py\n```python\n{CART}```", r"holds no shop/cli\.py"),
        (f"### shop/cart.py\n```python\n{CART}```\n### shop/cli.py\n```python\ndef (:\n```", "is no Python"),
        (f"### shop/cart.py\n```python\nx = 1\n```\n### shop/cli.py\n```python\n{CLI}```", "'total'"),
    ],
)
def test_a_missing_requested_file_is_malformed(text: str, message: str) -> None:
    with pytest.raises(MalformedReply, match=message):
        extract_files(text)


@pytest.mark.parametrize("path", ["/etc/x.py", "../x.py", ".ssh/x.py", "a/../../x.py"])
def test_a_file_outside_the_folder_is_ignored(path: str) -> None:
    text = "\n".join(
        f"### {file_path}\n```python\n{code}```" for file_path, code in {**FILES, path: "x = 1\n"}.items()
    )
    assert extract_files(text).keys() <= {*FILES, "etc/x.py", "x.py"}


def test_surplus_files_are_reported() -> None:
    brief = WriteBrief(statement="Write total.", module="solution.py", entry_point="total")
    reply = Reply(
        text=f"```python\n{CART}```\n### extra.py\n```python\ndef more(): return 1\n```\n"
        "### notes.md\n```markdown\n# Notes\n```\nRun `extra.py`:\n```bash\npython extra.py\n```"
    )
    files = files_from_reply(reply, brief)

    assert files == {"solution.py": CART}
    assert surplus_files_in_reply(reply, brief, files) == ("extra.py", "notes.md")


def test_imported_files_are_kept_with_the_module() -> None:
    brief = WriteBrief(statement="Write main.", module="solution.py", entry_point="main")
    reply = Reply(
        text=f"```python\n{CLI}```\n### shop/cart.py\n```python\n{CART}```\n"
        "### other.py\n```python\ny = 1\n```"
    )
    files = files_from_reply(reply, brief)

    assert files == {"solution.py": CLI, "shop/cart.py": CART}
    assert surplus_files_in_reply(reply, brief, files) == ("other.py",)


@pytest.mark.parametrize(
    ("statement", "files"),
    [
        ("Write shop/cart.py with total(prices) and shop/cli.py.", ("shop/cart.py", "shop/cli.py")),
        ("Write a module `intervals.py` with merge(intervals).", ("intervals.py",)),
        ("Write a function that sorts like the one in utils.py does.", ()),
        ("Write add(a, b).", ()),
        ("Write cart.py, cart_cli.py and tests/test_cart.py.", ("cart.py", "cart_cli.py")),
    ],
)
def test_a_statement_names_the_requested_files(statement: str, files: tuple[str, ...]) -> None:
    assert find_requested_files(statement) == files


def test_a_statement_may_ask_for_several_files() -> None:
    assert asks_for_several_files("Write a small package for intervals.")
    assert asks_for_several_files("Write merge(intervals) and a command line for it.")
    assert not asks_for_several_files("Write a function that compares package versions in two lists.")
