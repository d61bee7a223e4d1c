"""Rounds of trials side by side."""

from __future__ import annotations

import asyncio
import time

import pytest

from suture.errors import SandboxError
from suture.search.tree_sitter.driver_protocol import run_rounds
from suture.search.tuning import MIN_ROUND_LINGER_S


async def told(seconds: float, *words: str) -> list[str]:
    await asyncio.sleep(seconds)
    return list(words)


async def test_where_one_has_passed_the_other_is_not_waited_for_long() -> None:
    began_s = time.monotonic()
    assert await run_rounds([told(30.0, "timed_out"), told(0.0, "passes")], lambda w: "passes" in w) == [
        "passes"
    ]
    assert time.monotonic() - began_s < MIN_ROUND_LINGER_S + 10.0


@pytest.mark.parametrize("first", ["passes", "fails"])
async def test_what_comes_soon_is_heard_in_its_order(first: str) -> None:
    rounds = [told(0.1, "timed_out"), told(0.0, first)]
    assert await run_rounds(rounds, lambda words: "passes" in words) == ["timed_out", first]


async def test_a_fault_of_the_wall_is_told() -> None:
    async def fails() -> list[str]:
        raise SandboxError("the wall is gone")

    with pytest.raises(SandboxError, match="the wall is gone"):
        await run_rounds([told(0.0, "passes"), fails()], lambda words: "passes" in words)
