"""The debugger's tools describe the signature, docstring, complexity and calls of a function."""

from __future__ import annotations

import pytest

from suture.project.python_source.functions import describe_function, find_function, iter_functions

CODE = '''
import os

class Cart:
    async def total(self, tax: float = 0.2, *more, key=None) -> float:
        """Sum of all prices.

        With tax.
        """
        def add(a, b):
            return a + b
        return add(self.sum(), os.getpid())

if True:
    def total(values):
        return sum(v for v in values if v and v > 1 or v < -1) if values else 0
'''
FILES = {"shop.py": CODE, "broken.py": "def f(:", "other.py": "def f():\n    pass\n"}


def test_nested_functions_are_found() -> None:
    assert [function.name for function in iter_functions("shop.py", CODE)] == [
        "Cart.total",
        "Cart.total.add",
        "total",
    ]
    assert list(iter_functions("broken.py", "def f(:")) == []


def test_a_function_is_described() -> None:
    facts = find_function("Cart.total", FILES)

    assert facts is not None
    assert facts.signature == "async def Cart.total(self, tax: float=0.2, *more, key=None) -> float"
    assert facts.docstring == "Sum of all prices.\n\nWith tax."
    assert (facts.path, facts.line) == ("shop.py", 5)
    assert facts.calls == ("add", "os.getpid", "self.sum")
    text = describe_function("`Cart.total()`", FILES)
    assert "cyclomatic complexity 1\n" in text
    assert "return add(self.sum(), os.getpid())" in text


@pytest.mark.parametrize(
    ("body", "complexity"),
    [
        ("return 1", 1),
        ("if a:\n  return 1\n elif b:\n  return 2", 3),
        ("for x in a:\n  while b and c:\n   pass", 4),
        ("return [x for x in a if x if x > 1]", 4),
        ("try:\n  pass\n except ValueError:\n  pass\n except KeyError:\n  pass", 3),
        ("return 1 if a or b or c else 2", 4),
    ],
)
def test_complexity_counts_branches(body: str, complexity: int) -> None:
    facts = find_function("f", {"m.py": f"def f(a, b, c):\n {body}\n"})
    assert facts is not None
    assert facts.complexity == complexity


def test_a_plain_name_prefers_a_function_to_a_method() -> None:
    facts = find_function("total", FILES)
    assert facts is not None
    assert facts.name == "total"
    assert facts.complexity == 6


def test_an_unknown_function_is_answered_with_the_known_ones() -> None:
    assert describe_function("sums", FILES) == (
        "There is no function 'sums'. There are: Cart.total, Cart.total.add, total, f."
    )
    assert describe_function("f", {}) == "There is no function 'f'. There are: none."
    deep = f"def f(a={'-' * 5000}1):\n    return {'.'.join('x' * 3000)}()\n"
    assert "f" in describe_function("f", {"m.py": deep})
