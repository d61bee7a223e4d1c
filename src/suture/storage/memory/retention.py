"""Retention of memory items: each use is randomised, and items that show no benefit are evicted.

A recalled item is shown, withheld, or replaced by a placebo: a meaningless text of the same length. So the
share of healed runs with the item can be compared with the share without it, and the placebo's share with
both.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suture.storage.tuning import EVICTION_USES, MIN_SHOWN_USES, MIN_WITHHELD_USES

if TYPE_CHECKING:
    from suture.core.ledger.kinds.memory import Arm
    from suture.storage.memory.memory_items import MemoryItem


Z = 1.645
"""Quantile of the normal distribution: 90 % lie within so many standard deviations."""

PLACEBOS = (
    "Keep the code as simple as it can be and follow the style that is there, with names that tell.",
    "A change is easier to read where each line does one thing and functions stay short.",
    "Comments say why and not what, and tests are named after what they show, as is usual in most projects.",
    "Blank lines between parts of a function help the eye, and lines should not be too long.",
)
"""Meaningless texts, repeated and cut to the length of the item that they replace."""


@dataclass(frozen=True, kw_only=True)
class Uplift:
    """How much more often runs are healed with an item than without it.

    Attributes:
        mean: Difference of the two shares, each by Laplace's rule of succession.
        low: Lower end of its 90 % interval, by the normal approximation of Agresti and Caffo (2000).
        high: Upper end of the interval.
    """

    mean: float
    low: float
    high: float


def estimate_uplift(healed_with: int, with_it: int, healed_without: int, without_it: int) -> Uplift:
    """Estimate the uplift from the counts of both arms; without uses it is 0 with a wide interval."""
    share_with, spread_with = _share(healed_with, with_it)
    share_without, spread_without = _share(healed_without, without_it)
    mean = share_with - share_without
    width = Z * math.sqrt(spread_with + spread_without)
    return Uplift(mean=mean, low=max(-1.0, mean - width), high=min(1.0, mean + width))


def item_uplift(item: MemoryItem) -> Uplift:
    """Return the estimated uplift of one item."""
    return estimate_uplift(item.healed_recalled, item.recalled, item.healed_withheld, item.withheld)


def count_uses_by_arm(items: Iterable[MemoryItem]) -> dict[str, tuple[int, int]]:
    """Return arm -> uses of all these items in healed runs, and all uses."""
    sums = {"shown": (0, 0), "withheld": (0, 0), "placebo": (0, 0)}
    for item in items:
        with_it = "placebo" if item.source == "placebo" else "shown"
        healed, uses = sums[with_it]
        sums[with_it] = healed + item.healed_recalled, uses + item.recalled
        if with_it == "shown":
            healed, uses = sums["withheld"]
            sums["withheld"] = healed + item.healed_withheld, uses + item.withheld
    return sums


def shows_no_benefit(item: MemoryItem) -> bool:
    """Return whether an item was used often enough to conclude that it does not help."""
    if item.recalled < MIN_SHOWN_USES or item.withheld < MIN_WITHHELD_USES:
        return False
    estimate = item_uplift(item)
    return estimate.high < 0 or (item.recalled + item.withheld >= EVICTION_USES and estimate.mean <= 0)


def draw_arm(key: str, uses: int, *, seed: int, withheld: float, placebo: float) -> Arm:
    """Draw what happens with an item this time; the result is determined by the arguments.

    Args:
        key: The item's key.
        uses: How often it was drawn for before, so that each use is drawn independently.
        seed: The setting `memory.seed`.
        withheld: Share of uses that are withheld.
        placebo: Share of uses that are replaced by a placebo.
    """
    drawn = hashlib.sha256(f"{seed} {key} {uses}".encode()).digest()
    share = int.from_bytes(drawn[:8], "big") / 2**64
    if share < withheld:
        return "withheld"
    return "placebo" if share < withheld + placebo else "shown"


def placebo_text(text: str, key: str) -> tuple[int, str]:
    """Return a placebo of the same length, and its number among `PLACEBOS`."""
    number = int(hashlib.sha256(key.encode()).hexdigest(), 16) % len(PLACEBOS)
    filler = PLACEBOS[number]
    while len(filler) < len(text):
        filler += " " + PLACEBOS[number]
    return number, filler[: len(text)]


def _share(healed: int, uses: int) -> tuple[float, float]:
    """Return the share by the rule of succession, and its variance."""
    share = (healed + 1) / (uses + 2)
    return share, share * (1 - share) / (uses + 2)
