"""A reply in any usual form becomes the contents of files, and nothing in it is lost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from suture.agents.replies.change_reading import read_change
from suture.project.workspace import unified_diff

SHOP = '''"""A shop."""

import os


def total(prices):
    return sum(prices) - 1


def describe(name):
    """Say what it is.

    >>> describe("a")
    'a'
    """
    return f"{name}"


class Cart:
    """A cart."""

    limit = 3

    def __init__(self):
        self.items = []

    @property
    def size(self):
        return 0

    @size.setter
    def size(self, value):
        self.items = [0] * value

    def total(self):
        return 0

    async def fetch(self):
        return None


class Order:
    def total(self):
        return 0

    def cancel(self):
        def inner(reason):
            return reason

        return inner

    class Line:
        def price(self):
            return 1
'''
TAX = "def tax(n):\n    return 0\n\n\ndef untouched(n):\n    return n\n"
JS = """const fs = require('fs');

// Adds.
function add(a, b) {
  return a - b;
}

const twice = (n) => n + n;

class Cart {
  total() {
    return 0;
  }

  get size() {
    return 1;
  }
}

module.exports = { add, twice, Cart };
"""
TS = """import { a } from './a';

export interface Point {
  x: number;
}

export function add(x: number, y: number): number {
  return x - y;
}

export default class Cart {
  private items: number[] = [];

  total(): number {
    return 0;
  }
}
"""
GO = """package clock

import "fmt"

// Add moves.
func Add(a, b int) int {
	return a - b
}

type Clock struct {
	Hours int
}

func (c *Clock) Show() string {
	return fmt.Sprint(c.Hours)
}
"""
README = "# Shop\n\nRun `make`.\n\n```sh\nmake\n```\n"
TABS = "def f(x):\n\tif x:\n\t\treturn 1\n\treturn 2\n"
CRLF = "def f(x):\r\n    return 1\r\n\r\n\r\ndef g(x):\r\n    return 2\r\n"
NO_END = "a = 1\nb = 2\nc = 3\nd = 4"
UMLAUT = 'GREETING = "Grüß Gott – 你好"\n\n\ndef greet():\n    return GREETING + "!"\n'
TEST = "from shop import total\n\n\ndef test_total():\n    assert total([1]) == 1\n"

PROJECT = {
    "shop.py": SHOP,
    "lib/__init__.py": "",
    "lib/tax.py": TAX,
    "web/cart.js": JS,
    "web/cart.ts": TS,
    "clock.go": GO,
    "README.md": README,
    "tabs.py": TABS,
    "win.py": CRLF,
    "noend.txt": NO_END,
    "umlaut.py": UMLAUT,
    "a/util.py": "def helper():\n    return 1\n",
    "b/util.py": "def helper():\n    return 2\n",
    "Makefile": "all:\n\tpython shop.py\n\ntest:\n\tpytest\n",
    "tests/test_shop.py": TEST,
}
SHOWN = ("shop.py", "lib/tax.py", "tests/test_shop.py")
PROTECTED = ("tests/test_shop.py",)


FIXED_SHOP = SHOP.replace("sum(prices) - 1", "sum(prices)")
REPLIES = yaml.safe_load(Path(__file__).with_name("model_replies.yaml").read_text("utf-8"))


def encode(files: Mapping[str, str]) -> dict[str, bytes]:
    return {path: text.encode() for path, text in files.items()}


@pytest.mark.parametrize("case", REPLIES, ids=lambda case: case["name"])
def test_a_reply_changes_exactly_these_files(case: Mapping[str, Any]) -> None:
    reply = case["reply"].replace("«shop.py, fixed»\n", FIXED_SHOP)

    change = read_change(reply, PROJECT, shown=SHOWN, protected=PROTECTED)

    assert [problem.code for problem in change.problems] == case.get("problems", [])
    assert unified_diff(encode(PROJECT), encode({**PROJECT, **change.files})) == case.get("diff", "")


def test_a_problem_shows_the_nearest_lines_with_their_numbers() -> None:
    reply = (
        "### shop.py\n<<<<<<< SEARCH\n    return sum(prices) + 5\n=======\n    return 1\n>>>>>>> REPLACE\n"
    )

    (problem,) = read_change(reply, PROJECT).problems

    assert problem.path == "shop.py"
    assert "    7      return sum(prices) - 1" in problem.render()


def test_a_path_that_does_not_exist_is_answered_with_similar_ones() -> None:
    reply = '{"path": "libs/taxes.py", "old_str": "return 0", "new_str": "return n"}'

    (problem,) = read_change(reply, PROJECT).problems

    assert problem.candidates[0] == "lib/tax.py"


def test_a_method_of_two_classes_is_answered_with_both() -> None:
    reply = "```python\ndef total(self):\n    return 5\n```"

    (problem,) = read_change(reply, PROJECT, shown=SHOWN).problems

    assert problem.candidates == ("Cart.total", "Order.total")


def test_no_new_file_is_made_where_none_is_wanted() -> None:
    change = read_change("### lib/rates.py\n```python\nRATE = 3\n```", PROJECT, may_create=False)

    assert not change.files
    assert [problem.code for problem in change.problems] == ["no_such_file"]


def test_a_reply_with_absurdly_many_blocks_is_a_problem() -> None:
    change = read_change("```python\nx = 1\n```\n" * 1000, PROJECT)

    assert [problem.code for problem in change.problems] == ["unreadable"]
