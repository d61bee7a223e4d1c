"""Search/replace blocks apply exactly, or are refused with the reason."""

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


def apply(text: str, files: dict[str, str] = FILES) -> dict[str, str]:
    return files_from_reply(Reply(text=text), RepairBrief(statement="", files=files, project=PROJECT))


def edit(search: str, replace: str, path: str = "") -> str:
    above = f"### {path}\n" if path else ""
    middle = "".join(f"{part}\n" if part else "" for part in (search, "=======", replace))
    return f"{above}<<<<<<< SEARCH\n{middle}>>>>>>> REPLACE\n"


PRICE = edit("    return n - 1", "    return n + 1", "shop.py")
FIXED = SHOP.replace("n - 1", "n + 1")


def test_the_lines_that_are_found_give_way_to_others() -> None:
    assert apply(f"The sign is wrong.\n\n{PRICE}\nDone.") == {"shop.py": FIXED}


def test_several_files_are_edited_in_one_reply() -> None:
    tax = edit("    return 0", "    return n", "lib/tax.py")
    assert apply(PRICE + tax) == {"shop.py": FIXED, "lib/tax.py": TAX.replace("0", "n")}


@pytest.mark.parametrize(
    "text",
    [
        "### shop.py\n```python\n" + edit("    return n - 1", "    return n + 1") + "```",
        "```python\nshop.py\n" + edit("    return n - 1", "    return n + 1") + "```",
        "**shop.py**\n\n```\n" + edit("    return n - 1", "    return n + 1") + "```\nwhich gives\n"
        f"### shop.py\n```python\n{FIXED}```",
    ],
)
def test_fences_around_a_block_do_not_matter(text: str) -> None:
    assert apply(text) == {"shop.py": FIXED}


def test_a_second_block_is_of_the_same_file_and_sees_the_first() -> None:
    again = edit("    return n + 1\n\n\ndef half(n):", "    return n + 2\n\n\ndef half(n):")
    assert apply(PRICE + again) == {"shop.py": SHOP.replace("n - 1", "n + 2")}


def test_whole_functions_and_blocks_may_stand_in_one_reply() -> None:
    reply = f"{PRICE}\n### lib/tax.py\n```python\ndef tax(n):\n    return n\n```"
    assert apply(reply) == {"shop.py": FIXED, "lib/tax.py": TAX.replace("0", "n")}


def test_lines_can_be_deleted_and_windows_line_ends_stay() -> None:
    files = {"a.py": "x = 1\r\ny = 2\r\nz = 3\r\n"}
    assert apply(edit("y = 2\nz = 3", "z = 4"), files) == {"a.py": "x = 1\r\nz = 4\r\n"}
    assert apply(edit("y = 2", ""), files) == {"a.py": "x = 1\r\nz = 3\r\n"}


@pytest.mark.parametrize(
    ("block", "why"),
    [
        (edit("    return n * 1", "    return n", "shop.py"), r"1 \(shop.py\).*'return n \* 1'.*is not in"),
        (
            edit("return n - 1", "return n", "shop.py"),
            "is not in.*line 2 is that with other blanks: '    return",
        ),
        (edit("return n // 3", "return n", "shop.py"), "is not in the file$"),
        (edit("    return n // 3", "    return n // 2", "shop.py"), "stands 2 times"),
        (edit("", "def more(): ...", "shop.py"), "SEARCH is empty"),
        (edit("    return 0", "    return n"), "names no file"),
        (edit("x", "y", "lib/other.py"), "may change only shop.py, lib/tax.py"),
        (edit("x", "y", "tests/test_shop.py"), "may change only"),
        (edit("x", "y", "lib/absent.py"), "there is no such file"),
        (edit("", "x = 1", "../outside.py"), "there is no such file"),
        (edit("", "x = 1", "/outside.py"), "there is no such file"),
        (edit("", "x = 1", ".git/hook.py"), "there is no such file"),
        ("### shop.py\n<<<<<<< SEARCH\n    return n - 1\n=======\n    return n + 1\n", "has no end"),
        ("### shop.py\n<<<<<<< SEARCH\n    return n - 1\n>>>>>>> REPLACE\n", "0 lines `=======`"),
        (edit("    return n - 1", "=======\n    return n", "shop.py"), "2 lines `=======`"),
    ],
)
def test_a_block_that_does_not_apply_is_named_and_nothing_is_changed(block: str, why: str) -> None:
    with pytest.raises(EditDoesNotApply, match=why):
        apply(block)
    if "names no file" not in why:  # a good block before it does not save it
        with pytest.raises(EditDoesNotApply, match="edit block 2"):
            apply(PRICE.replace("n + 1", "n + 5") + block)


def test_a_partial_change_of_two_files_is_refused() -> None:
    with pytest.raises(MalformedReply, match="leaves out"):
        apply(f"{PRICE}### lib/tax.py\n```python\nreturn n\n```")


def test_a_block_that_changes_nothing_is_no_repair() -> None:
    with pytest.raises(MalformedReply, match="changes none"):
        apply(edit("    return n - 1", "    return n - 1", "shop.py"))


def test_a_new_file_is_made_by_an_empty_search_or_by_a_whole_block() -> None:
    rates = {"lib/rates.py": "RATE = 3\n"}
    assert apply(edit("", "RATE = 3", "lib/rates.py")) == rates
    assert apply("### lib/rates.py\n```python\nRATE = 3\n```") == rates


def test_code_may_move_into_a_new_file() -> None:
    moved = "### lib/half.py\n```python\ndef half(n):\n    return n // 2\n```\n"
    tax = "### lib/tax.py\n```python\nfrom lib.half import half\n\n\ndef tax(n):\n    return half(n)\n```\n"
    assert set(apply(moved + tax)) == {"lib/tax.py", "lib/half.py"}
    with pytest.raises(MalformedReply):
        apply(moved)  # alone it is our own function under a wrong name


@pytest.mark.parametrize("path", ["lib/other.py", "tests/test_shop.py", "shop.py/x.py", "a/../b.py", "/b.py"])
def test_no_file_is_made_where_there_is_one_or_outside(path: str) -> None:
    with pytest.raises(MalformedReply):
        apply(f"### {path}\n```python\nRATE = 3\n```")
