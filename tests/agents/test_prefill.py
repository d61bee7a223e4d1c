"""A prefill starts the reply, so that the model writes only the missing code."""

from __future__ import annotations

import pytest

from suture.agents import RepairBrief, WriteBrief, files_from_reply
from suture.agents.prompting.fitting import Prefill
from suture.agents.prompting.prefill import FENCE_END, MARGIN_STOPS, prefill_function, prefill_module
from suture.agents.replies.coder_reply import add_known_imports, repeats_itself
from suture.models import Reply

STUB = '''from typing import List


def total(xs: List[int]) -> int:
    """Add up.

    >>> total([1])
    1
    """
'''
CART = '''class Cart(dict, metaclass=M):
    limit = 3

    @property
    def total(self):
        """All."""
        return -1

    def add(self, x): self[x] = 1


def total_of(
    carts,
):
    return 0
'''


def prefill_text(
    statement: str, entry: str | None = "total", tests: str = "", *, requires_entry_point: bool = True
) -> str:
    prefill = prefill_module(statement, entry, requires_entry_point=requires_entry_point, tests=tests)
    return prefill.text.removeprefix("```python")


def function_prefill(text: str, name: str) -> Prefill:
    prefill = prefill_function("a.py", text, name)
    assert prefill is not None
    return prefill


@pytest.mark.parametrize("body", ["", "    pass\n", "    ...\n", "    raise NotImplementedError\n"])
def test_a_stub_is_prefilled_up_to_its_body(body: str) -> None:
    assert prefill_text(STUB + body) == "\n" + STUB.rstrip() + "\n   "


def test_a_stub_without_a_docstring_ends_with_its_signature() -> None:
    assert prefill_text("def f(x): ...\n") == "\ndef f(x):\n   "
    assert (
        prefill_text("@wraps\nasync def f(\n    x,\n):\n    pass\n")
        == "\n@wraps\nasync def f(\n    x,\n):\n   "
    )
    assert prefill_text('class Stack:\n    """LIFO."""\n') == '\nclass Stack:\n    """LIFO."""\n   '


@pytest.mark.parametrize("statement", ["def f(x):\n    return x + 1\n", "x = 1\n", "", "Add up the numbers."])
def test_only_stubs_are_prefilled(statement: str) -> None:
    assert prefill_text(statement) == ""


SOLUTION = """class Solution:
    limit = 3

    def total(self, xs: list[int]) -> int:
        raise NotImplementedError
"""


def test_a_class_with_one_open_method_is_prefilled_to_its_body() -> None:
    head = SOLUTION.partition("        raise")[0]
    assert prefill_text(SOLUTION, "Solution") == f"\n{head}       "
    two_open_methods = SOLUTION.replace("    limit = 3", "    def other(self): ...")
    assert prefill_text(two_open_methods, "Solution") == ""


def test_a_stub_in_the_only_block_of_a_text_is_prefilled() -> None:
    prose = "Add up.\n\n```python\ndef total(xs):\n    ...\n```\n"
    assert prefill_text(prose) == "\ndef total(xs):\n   "
    assert prefill_text(prose, "other", requires_entry_point=False) == ""
    assert prefill_text(f"{prose}\nLike\n\n```python\ndef twice(x): ...\n```\n") == ""


def test_the_name_that_the_tests_call_starts_a_definition() -> None:
    prose = "Add up the numbers."
    assert prefill_text(prose, tests="assert total([1]) == 1") == "\ndef total("
    assert prefill_text(prose, "Stack", tests="assert Stack([1]).pop() == 1") == "\nclass Stack"
    assert prefill_text(prose, tests="assert total([1]) == 1", requires_entry_point=False) == ""
    assert prefill_text(prose, tests="assert subtotal([1]) == 1") == ""
    assert prefill_module(prose, None, requires_entry_point=False, tests="").stop == FENCE_END


@pytest.mark.parametrize(
    ("prose", "expected"),
    [
        ('The roman numeral of n. roman(4) == "IV"', "\ndef roman("),
        ("Write roman(n) that gives the numeral.", "\ndef roman("),
        ("roman(4) -> IV", "\ndef roman("),
        (">>> roman(4)\n'IV'", "\ndef roman("),
        ("Write a function called roman.", ""),
        ("Do not use roman() from any library.", ""),
    ],
)
def test_a_name_in_prose_is_prefilled_if_a_call_is_shown(prose: str, expected: str) -> None:
    assert prefill_text(prose, "roman", requires_entry_point=False) == expected


def test_a_statement_that_calls_a_second_unknown_function_is_not_prefilled() -> None:
    statement = "assert roman(4) == to_upper('iv')"
    assert prefill_text(statement, "roman", tests=statement) == ""
    assert prefill_text(statement, "roman", tests="") == ""


@pytest.mark.parametrize(
    ("lines", "repeats"),
    [
        (["x = 1"] * 9, True),
        (["a = b", "b = a"] * 7, True),
        (["a", "b", "c", "d"] * 7, True),
        ([f"x{n} = {n}" for n in range(30)], False),
        (["x = 1"] * 4, False),
        ([], False),
    ],
)
def test_repetitive_text_is_recognised(lines: list[str], repeats: bool) -> None:
    assert repeats_itself("def f():\n" + "\n\n".join(lines)) is repeats


def test_a_function_prefill_ends_before_the_body() -> None:
    assert prefill_function("a.py", CART, "nope") is None
    prefill = function_prefill(CART, "total_of")
    assert prefill.text == "### a.py\n```python\ndef total_of(\n    carts,\n):\n   "
    assert prefill.stop == (*FENCE_END, *MARGIN_STOPS)


def test_a_method_prefill_contains_its_class_and_stops_at_the_next() -> None:
    prefill = function_prefill(CART, "total")
    head = '    @property\n    def total(self):\n        """All."""'

    assert prefill.text == f"### a.py\n```python\nclass Cart(dict, metaclass=M):\n{head}\n       "
    assert {"\n    def ", "\n    @"} <= set(prefill.stop)
    reply = Reply(text=prefill.text + " return sum(self.values())", prefill=prefill.text)
    brief = RepairBrief(statement="", files={"a.py": CART}, project=frozenset({"a.py"}))
    assert files_from_reply(reply, brief) == {"a.py": CART.replace("return -1", "return sum(self.values())")}


def test_a_prefill_omits_a_body_on_the_line_of_the_signature() -> None:
    prefill = function_prefill(CART, "add")
    assert prefill.text.endswith("    def add(self, x):\n       ")


def test_an_ambiguous_name_has_no_prefill() -> None:
    assert prefill_function("a.py", "def f():\n    pass\n\n\ndef f():\n    pass\n", "f") is None
    assert prefill_function("a.py", "def f(:\n", "f") is None


def test_a_reply_with_a_body_becomes_a_module_with_imports() -> None:
    brief = WriteBrief(statement=STUB, module="solution.py", entry_point="total")
    head = prefill_module(STUB, "total", requires_entry_point=True, tests="").text
    files = files_from_reply(Reply(text=f"{head} return math.fsum(xs)", prefill=head), brief)
    names: dict[str, object] = {}
    exec(files["solution.py"], names)

    assert callable(names["total"])
    assert names["total"]([1, 2]) == 3


@pytest.mark.parametrize(
    ("code", "imports"),
    [
        ("def f(x):\n    return math.sqrt(x)\n", "import math\n"),
        ("def f(x):\n    return Counter(x)\n", "from collections import Counter\n"),
        ("def f(x: List[int]):\n    return re.sub('a', 'b', x)\n", "import re\nfrom typing import List\n"),
        ("def f(math):\n    return math.sqrt(1)\n", ""),
        ("import math\n\ndef f(x):\n    return math.sqrt(x)\n", ""),
        ("def f(x):\n    string = x\n    return string.upper()\n", ""),
        ("def f(x):\n    return nobody.knows(x)\n", ""),
        ("def f(x:\n", ""),
    ],
)
def test_known_imports_are_added_for_unbound_names(code: str, imports: str) -> None:
    assert add_known_imports(code) == imports + code
