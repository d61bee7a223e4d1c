"""One minute of the fuzzer of `benchmarks/`; the results of longer runs are in docs/results.md."""

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
SECONDS = 15.0
"""For each target."""
SEED = 1
"""Always the same cases: a change is refused for what it broke, new cases are looked for by hand."""


@pytest.fixture
def on_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] in ("fuzz", "fuzzing")]:
        del sys.modules[name]


@pytest.mark.usefixtures("on_path")
@pytest.mark.parametrize("target", ["verdicts", "trees", "settings", "replies"])
def test_nothing_that_is_drawn_gets_through(target: str, require: Callable[[str, bool, str], None]) -> None:
    import fuzz

    sandbox_requirement = find_bubblewrap()
    require(
        "bubblewrap", sandbox_requirement.ok, f"{sandbox_requirement.detail} ({sandbox_requirement.remedy})"
    )
    tally = asyncio.run(fuzz.fuzz(target, SEED, SECONDS))
    again = f"python benchmarks/fuzz.py --target {target} --seed {SEED} --case"
    assert not tally.broken, "\n".join(f"{again} {number}: {found}" for number, found in tally.broken.items())
    assert tally.tried > 0


class Leaky:
    """Breaks on every draw above a half, and hangs on none."""

    async def try_case(self, draw: random.Random) -> str:
        drawn = draw.random()
        return f"drew {drawn}" if drawn > 0.5 else ""

    async def close(self) -> None:
        pass


class Stuck(Leaky):
    """Blocks the whole process, as the read of a pipe does."""

    async def try_case(self, draw: random.Random) -> str:
        time.sleep(3600)
        return ""


@pytest.mark.usefixtures("on_path")
def test_what_breaks_is_counted_and_made_again_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    import fuzz

    monkeypatch.setattr(fuzz, "TARGETS", {"leaky": Leaky})
    tally = asyncio.run(fuzz.fuzz("leaky", 1, 0.2))
    assert 0 < len(tally.broken) < tally.tried
    number, found = next(iter(tally.broken.items()))
    again = asyncio.run(fuzz.fuzz("leaky", 1, 60.0, number))
    assert (again.tried, again.broken) == (1, {number: found})


@pytest.mark.usefixtures("on_path")
def test_what_blocks_is_broken_too(monkeypatch: pytest.MonkeyPatch) -> None:
    import fuzz

    monkeypatch.setattr(fuzz, "TARGETS", {"stuck": Stuck})
    monkeypatch.setattr(fuzz, "LONGEST_CASE_S", 0.2)
    tally = asyncio.run(fuzz.fuzz("stuck", 1, 0.1))
    assert list(tally.broken) == [0]
