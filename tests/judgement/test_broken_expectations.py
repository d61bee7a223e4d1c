"""Right code that a change breaks, together with the test that would have shown it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from judgement.conftest import CART, RIGHT, TESTS, run_git
from suture.api import JudgeOptions, judge

ASSERTION = 'assert cart_total([("mug", 1200, 3)]) == 4090'
EMPTIED = {
    "another fact": "assert 1200 + 2890 == 4090",
    "another input": "assert cart_total([]) == 0",
    "an input that hides it": 'assert cart_total([("mug", 1200, 1)]) == 1690',
    "itself": 'assert cart_total([("mug", 1200, 3)]) == cart_total([("mug", 1200, 3)])',
    "a multiple": 'assert cart_total([("mug", 1200, 3)]) % 10 == 0',
    "a truth": 'assert bool(cart_total([("mug", 1200, 3)])) == True',
}


@pytest.mark.heavy
@pytest.mark.parametrize("kind", EMPTIED)
async def test_a_test_that_no_longer_tells_broken_code_from_right_code_rejects_the_change(
    kind: str, write: Callable[[Mapping[str, str | None]], Path]
) -> None:
    shop = write({"cart.py": RIGHT})
    run_git(shop, "commit", "-q", "-a", "-m", "Quantities count")
    write({"cart.py": CART, "test_cart.py": TESTS.replace(ASSERTION, EMPTIED[kind])})
    judgement = await judge(shop, JudgeOptions())
    assert judgement.outcome == "rejected", judgement


async def test_new_code_cannot_excuse_changed_test_data_by_a_missing_package(
    write: Callable[[Mapping[str, str | None]], Path],
) -> None:
    tests = "from cart import cart_total\nfrom cases import LINES, TOTAL\n\n\ndef test_total():\n"
    tests += "    assert cart_total(LINES) == TOTAL\n"
    cases = 'LINES = [("mug", 1200, {0})]\nTOTAL = {1}\n'
    files = {"tests/test_total.py": tests, "tests/cases.py": cases.format(3, 4090), "test_cart.py": None}
    shop = write({**files, "requirements.txt": "stripe\n", "conftest.py": ""})
    run_git(shop, "add", "-A")
    run_git(shop, "commit", "-q", "-m", "Totals have cases of their own")
    refusing = "    if lines[0][2] > 1:\n        raise ModuleNotFoundError(\"No module named 'stripe'\")\n"
    write(
        {
            "cart.py": CART.replace("    goods = 0\n", f"{refusing}    goods = 0\n"),
            "tests/cases.py": cases.format(1, 1690),
        }
    )
    judgement = await judge(shop, JudgeOptions())
    assert "expectation_follows_code" in {finding.code for finding in judgement.findings}, judgement


async def test_changed_behaviour_with_its_test_is_a_remark(
    write: Callable[[Mapping[str, str | None]], Path],
) -> None:
    shop = write({"cart.py": RIGHT})
    run_git(shop, "commit", "-q", "-a", "-m", "Quantities count")
    free = RIGHT.replace("return goods + SHIPPING", "return goods if goods > 3000 else goods + SHIPPING")
    write({"cart.py": free, "test_cart.py": TESTS.replace("== 4090", "== 3600")})
    judgement = await judge(shop, JudgeOptions())
    assert judgement.outcome == "accepted_with_remarks", judgement
    assert [finding.code for finding in judgement.findings if finding.severity == "remark"] == [
        "expectation_changed"
    ]
