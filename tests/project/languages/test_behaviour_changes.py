"""Which changed statements of a Python file can alter what the program does."""

from __future__ import annotations

import pytest

from suture.project.python_source.behaviour_changes import find_behaviour_lines

BEFORE = '''"""Prices."""
import decimal

__version__ = "1.2.1"


def total(prices, rate=0):
    """Return the sum."""
    goods = sum(prices)
    if rate:
        goods += goods * rate
    return goods


def spare():
    return 1
'''


@pytest.mark.parametrize(
    "after",
    [
        BEFORE.replace("1.2.1", "1.2.2"),
        BEFORE.replace('"""Return the sum."""', '"""Return the sum of the prices."""'),
        BEFORE.replace("    return goods", "    # With taxes.\n    return goods"),
        BEFORE.replace("(prices, rate=0):", "(prices: list[int], rate: float = 0) -> float:"),
        BEFORE.replace("goods = sum(prices)", "goods: float = sum(prices)"),
        BEFORE.replace("return goods", "return t.cast(float, goods)"),
        BEFORE.replace("import decimal", "from __future__ import annotations\n\nimport decimal\nimport typing as t"),
        BEFORE.replace("import decimal", "import decimal\nif TYPE_CHECKING:\n    from numbers import Number"),
        BEFORE.replace("def total", "@overload\ndef total(prices: int) -> int: ...\n\n\ndef total"),
        BEFORE.replace("sum(prices)", "sum(\n        prices\n    )"),
        BEFORE[: BEFORE.index("def spare")],
    ],
)  # fmt: skip
def test_types_documentation_layout_and_metadata_alter_nothing(after: str) -> None:
    assert after != BEFORE
    assert find_behaviour_lines(BEFORE, after) == frozenset()


@pytest.mark.parametrize(
    ("after", "lines"),
    [
        (BEFORE.replace("rate=0", "rate=1"), {7}),
        (BEFORE.replace("goods * rate", "goods * rate / 100"), {11}),
        (BEFORE.replace("if rate:", "if rate > 0:"), {10}),
        (BEFORE.replace('__version__ = "1.2.1"', "__version__ = read_version()"), {4}),
        (BEFORE + "\n\ndef more():\n    return 2\n", {19, 20}),
        # A function that lost a statement, and one in which a statement moved.
        (BEFORE.replace("    if rate:\n        goods += goods * rate\n", ""), {9, 10}),
        (BEFORE.replace("    return goods", "        return goods"), {9, 10, 11, 12}),
        ("not Python", set()),
    ],
)
def test_other_statements_alter_what_the_program_does(after: str, lines: set[int]) -> None:
    # A function that has another statement has lost the old one, so all of its statements may matter.
    found = find_behaviour_lines(BEFORE, after)
    assert lines <= found
    assert not lines or found <= lines | {9, 10, 11, 12}
