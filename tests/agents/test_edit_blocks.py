"""Search/replace blocks apply to one place, or are refused with a reason."""

from __future__ import annotations

import pytest

from suture.agents import RepairBrief, files_from_reply
from suture.errors import EditDoesNotApply, MalformedReply
from suture.models import Reply

SHOP = (
    "def price(n):\n    return n - 1\n\n\ndef half(n):\n    return n // 3\n\n\n"
    "def third(n):\n    return n // 3\n"
)
TAX = "def tax(n):\n    return 0\n"
FILES = {"shop.py": SHOP, "lib/tax.py": TAX}
PROJECT = frozenset({*FILES, "lib/__init__.py", "lib/other.py", "tests/test_shop.py"})


def apply_reply(text: str, files: dict[str, str] = FILES) -> dict[str, str]:
    return files_from_reply(Reply(text=text), RepairBrief(statement="", files=files, project=PROJECT))


def make_edit_block(search: str, replace: str, path: str = "") -> str:
    heading = f"### {path}\n" if path else ""
    body = "".join(f"{part}\n" if part else "" for part in (search, "=======", replace))
    return f"{heading}<<<<<<< SEARCH\n{body}>>>>>>> REPLACE\n"


PRICE = make_edit_block("    return n - 1", "    return n + 1", "shop.py")
FIXED = SHOP.replace("n - 1", "n + 1")


def test_the_found_lines_are_replaced() -> None:
    assert apply_reply(f"The sign is wrong.\n\n{PRICE}\nDone.") == {"shop.py": FIXED}


def test_several_files_are_edited_in_one_reply() -> None:
    tax = make_edit_block("    return 0", "    return n", "lib/tax.py")
    assert apply_reply(PRICE + tax) == {"shop.py": FIXED, "lib/tax.py": TAX.replace("0", "n")}


@pytest.mark.parametrize(
    "text",
    [
        "### shop.py\n```python\n" + make_edit_block("    return n - 1", "    return n + 1") + "```",
        "```python\nshop.py\n" + make_edit_block("    return n - 1", "    return n + 1") + "```",
        "**shop.py**\n\n```\n"
        + make_edit_block("    return n - 1", "    return n + 1")
        + "```\nwhich gives\n"
        f"### shop.py\n```python\n{FIXED}```",
    ],
)
def test_fences_around_a_block_do_not_matter(text: str) -> None:
    assert apply_reply(text) == {"shop.py": FIXED}


def test_a_second_block_applies_to_the_result_of_the_first() -> None:
    second = make_edit_block("    return n + 1\n\n\ndef half(n):", "    return n + 2\n\n\ndef half(n):")
    assert apply_reply(PRICE + second) == {"shop.py": SHOP.replace("n - 1", "n + 2")}


def test_a_reply_may_contain_edit_blocks_and_functions() -> None:
    reply = f"{PRICE}\n### lib/tax.py\n```python\ndef tax(n):\n    return n\n```"
    assert apply_reply(reply) == {"shop.py": FIXED, "lib/tax.py": TAX.replace("0", "n")}


def test_lines_can_be_deleted_and_line_endings_are_kept() -> None:
    files = {"a.py": "x = 1\r\ny = 2\r\nz = 3\r\n"}
    assert apply_reply(make_edit_block("y = 2\nz = 3", "z = 4"), files) == {"a.py": "x = 1\r\nz = 4\r\n"}
    assert apply_reply(make_edit_block("y = 2", ""), files) == {"a.py": "x = 1\r\nz = 3\r\n"}


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        (
            make_edit_block("    return n * 1", "    return n", "shop.py"),
            r"Edit 1 \(shop.py\), from 'return n \* 1' on, .*not in the file(.|\n)*2      return n - 1",
        ),
        (make_edit_block("return n // 3", "return n", "shop.py"), "2 times"),
        (make_edit_block("    return n // 3", "    return n // 2", "shop.py"), "2 times"),
        (make_edit_block("", "def more(): ...", "shop.py"), "is there already"),
        (make_edit_block("    return 5", "    return n"), "names no file"),
        (make_edit_block("x", "y", "lib/other.py"), "may not be changed"),
        (make_edit_block("x", "y", "tests/test_shop.py"), "may not be changed"),
        (make_edit_block("x", "y", "lib/absent.py"), "has no such file"),
        (make_edit_block("", "x = 1", "../outside.py"), "no file can be written"),
        (make_edit_block("", "x = 1", "/outside.py"), "no file can be written"),
        (make_edit_block("", "x = 1", ".git/hook.py"), "no file can be written"),
        ("### shop.py\n<<<<<<< SEARCH\n    return n - 1\n=======\n    return n + 1\n", "has no end"),
        ("### shop.py\n<<<<<<< SEARCH\n    return n - 1\n>>>>>>> REPLACE\n", "cannot be read"),
        (make_edit_block("    return n - 1", "=======\n    return n", "shop.py"), "cannot be read"),
    ],
)
def test_a_block_that_does_not_apply_is_refused_with_a_reason(block: str, reason: str) -> None:
    with pytest.raises(EditDoesNotApply, match=reason):
        apply_reply(block)
    if "names no file" not in reason:  # a valid block before it does not change this
        with pytest.raises(EditDoesNotApply, match="Edit 2"):
            apply_reply(PRICE.replace("n + 1", "n + 5") + block)


def test_a_partial_change_of_two_files_is_refused() -> None:
    with pytest.raises(MalformedReply, match=r"Edit 2 \(lib/tax.py\)"):
        apply_reply(f"{PRICE}### lib/tax.py\n```python\nreturn n\n```")


def test_a_block_without_a_change_is_malformed() -> None:
    with pytest.raises(MalformedReply, match="changes none"):
        apply_reply(make_edit_block("    return n - 1", "    return n - 1", "shop.py"))


def test_a_file_is_created_by_an_empty_search_or_a_code_block() -> None:
    rates = {"lib/rates.py": "RATE = 3\n"}
    assert apply_reply(make_edit_block("", "RATE = 3", "lib/rates.py")) == rates
    assert apply_reply("### lib/rates.py\n```python\nRATE = 3\n```") == rates


def test_code_may_be_moved_into_a_new_file() -> None:
    moved = "### lib/half.py\n```python\ndef half(n):\n    return n // 2\n```\n"
    tax = "### lib/tax.py\n```python\nfrom lib.half import half\n\n\ndef tax(n):\n    return half(n)\n```\n"
    assert set(apply_reply(moved + tax)) == {"lib/tax.py", "lib/half.py"}
    with pytest.raises(MalformedReply):
        apply_reply(moved)  # without the edit, this is an existing function under another file's name


@pytest.mark.parametrize("path", ["lib/other.py", "tests/test_shop.py", "shop.py/x.py", "a/../b.py", "/b.py"])
def test_no_file_is_created_over_an_existing_one_or_outside(path: str) -> None:
    with pytest.raises(MalformedReply):
        apply_reply(f"### {path}\n```python\nRATE = 3\n```")


def test_an_edit_may_change_a_file_that_the_prompt_did_not_show() -> None:
    brief = RepairBrief(
        statement="", files={"shop.py": SHOP}, project=PROJECT, other_files={"lib/tax.py": TAX}
    )
    tax = make_edit_block("    return 0", "    return n", "lib/tax.py")

    assert files_from_reply(Reply(text=tax), brief) == {"lib/tax.py": TAX.replace("0", "n")}


def test_a_block_may_lack_the_indentation_of_the_file() -> None:
    assert apply_reply(make_edit_block("return n - 1", "return n + 1", "shop.py")) == {"shop.py": FIXED}
