"""Some seconds of the fuzzer of `benchmarks/`; the results of longer runs are in docs/results.md."""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from requirements import find_bubblewrap

pytestmark = pytest.mark.heavy

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
TARGET_DURATION_S = 4.0
"""How long each target is fuzzed."""
SEED = 1
"""Fixed, so that the same cases run each time; new cases are searched for manually."""


@pytest.fixture
def benchmarks_importable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make the fuzzer importable, and forget its modules afterwards."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] in ("fuzz", "fuzzing")]:
        del sys.modules[name]


@pytest.mark.usefixtures("benchmarks_importable")
@pytest.mark.parametrize("target", ["verdicts", "trees", "settings", "replies"])
def test_the_fuzzer_finds_no_fault(target: str, require: Callable[[str, bool, str], None]) -> None:
    import fuzz

    bubblewrap = find_bubblewrap()
    require("bubblewrap", bubblewrap.ok, f"{bubblewrap.detail} ({bubblewrap.remedy})")
    tally = asyncio.run(fuzz.fuzz(target, SEED, TARGET_DURATION_S))
    command = f"python benchmarks/fuzz.py --target {target} --seed {SEED} --case"
    assert not tally.broken, "\n".join(
        f"{command} {number}: {fault}" for number, fault in tally.broken.items()
    )
    assert tally.tried > 0


class FaultyTarget:
    """Reports a fault for every random number above one half."""

    async def try_case(self, draw: random.Random) -> str:
        value = draw.random()
        return f"drew {value}" if value > 0.5 else ""

    async def close(self) -> None:
        pass


class BlockingTarget(FaultyTarget):
    """Blocks the whole process, as reading from a pipe does."""

    async def try_case(self, draw: random.Random) -> str:
        time.sleep(3600)
        return ""


@pytest.mark.usefixtures("benchmarks_importable")
def test_a_fault_is_counted_and_reproduced_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    import fuzz

    monkeypatch.setattr(fuzz, "TARGETS", {"leaky": FaultyTarget})
    tally = asyncio.run(fuzz.fuzz("leaky", 1, 0.2))
    assert 0 < len(tally.broken) < tally.tried
    number, fault = next(iter(tally.broken.items()))
    repeated_tally = asyncio.run(fuzz.fuzz("leaky", 1, 60.0, number))
    assert (repeated_tally.tried, repeated_tally.broken) == (1, {number: fault})


@pytest.mark.usefixtures("benchmarks_importable")
def test_a_case_that_blocks_counts_as_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    import fuzz

    monkeypatch.setattr(fuzz, "TARGETS", {"stuck": BlockingTarget})
    monkeypatch.setattr(fuzz, "LONGEST_CASE_S", 0.2)
    tally = asyncio.run(fuzz.fuzz("stuck", 1, 0.1))
    assert list(tally.broken) == [0]
