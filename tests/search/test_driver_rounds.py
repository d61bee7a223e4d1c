"""Rounds of trials that run concurrently."""

from __future__ import annotations

import asyncio
import time

import pytest

from suture.errors import SandboxError
from suture.judge.trials.drivers.driver_protocol import run_rounds
from suture.judge.trials.tuning import MIN_ROUND_LINGER_S


async def report_after(seconds: float, *words: str) -> list[str]:
    await asyncio.sleep(seconds)
    return list(words)


async def test_a_pass_ends_the_other_round_soon() -> None:
    began_s = time.monotonic()
    assert await run_rounds(
        [report_after(30.0, "timed_out"), report_after(0.0, "passes")], lambda w: "passes" in w
    ) == ["passes"]
    assert time.monotonic() - began_s < MIN_ROUND_LINGER_S + 10.0


@pytest.mark.parametrize("first", ["passes", "fails"])
async def test_reports_that_come_soon_keep_their_order(first: str) -> None:
    rounds = [report_after(0.1, "timed_out"), report_after(0.0, first)]
    assert await run_rounds(rounds, lambda words: "passes" in words) == ["timed_out", first]


async def test_a_sandbox_error_is_raised() -> None:
    async def raise_error() -> list[str]:
        raise SandboxError("the sandbox is gone")

    with pytest.raises(SandboxError, match="the sandbox is gone"):
        await run_rounds([report_after(0.0, "passes"), raise_error()], lambda words: "passes" in words)
