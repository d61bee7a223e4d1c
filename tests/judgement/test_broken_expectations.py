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
