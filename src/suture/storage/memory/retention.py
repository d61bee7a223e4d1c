"""Retention of memory items: each use is randomised, and items that show no benefit are evicted.

A recalled item is shown, withheld, or replaced by a placebo: a meaningless text of the same length. So the
share of healed runs with the item can be compared with the share without it, and both with the placebo's.
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


NORMAL_QUANTILE = 1.645
"""90 % of a normal distribution lie within so many standard deviations."""

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
    """

    mean: float
    low: float
    high: float


def estimate_uplift(healed_with: int, with_it: int, healed_without: int, without_it: int) -> Uplift:
    """Estimate the uplift from the counts of both arms; without uses it is 0 with a wide interval."""
    share_with, variance_with = _estimate_share(healed_with, with_it)
    share_without, variance_without = _estimate_share(healed_without, without_it)
    mean = share_with - share_without
    half_width = NORMAL_QUANTILE * math.sqrt(variance_with + variance_without)
    return Uplift(mean=mean, low=max(-1.0, mean - half_width), high=min(1.0, mean + half_width))


def item_uplift(item: MemoryItem) -> Uplift:
    """Return the estimated uplift of one item."""
    return estimate_uplift(item.healed_recalled, item.recalled, item.healed_withheld, item.withheld)


def count_uses_by_arm(items: Iterable[MemoryItem]) -> dict[str, tuple[int, int]]:
    """Return arm -> `(uses in healed runs, all uses)` of all these items together."""
    placebos: list[MemoryItem] = []
    others: list[MemoryItem] = []
    for item in items:
        (placebos if item.source == "placebo" else others).append(item)
    return {
        "shown": (sum(item.healed_recalled for item in others), sum(item.recalled for item in others)),
        "withheld": (sum(item.healed_withheld for item in others), sum(item.withheld for item in others)),
        "placebo": (sum(item.healed_recalled for item in placebos), sum(item.recalled for item in placebos)),
    }


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
    digest = hashlib.sha256(f"{seed} {key} {uses}".encode()).digest()
    drawn_number = int.from_bytes(digest[:8], "big") / 2**64  # uniform in [0, 1)
    if drawn_number < withheld:
        return "withheld"
    return "placebo" if drawn_number < withheld + placebo else "shown"


def placebo_text(text: str, key: str) -> tuple[int, str]:
    """Return `(number among PLACEBOS, text)` of a placebo that is as long as `text`."""
    number = int(hashlib.sha256(key.encode()).hexdigest(), 16) % len(PLACEBOS)
    filler = PLACEBOS[number]
    while len(filler) < len(text):
        filler += " " + PLACEBOS[number]
    return number, filler[: len(text)]


def _estimate_share(healed: int, uses: int) -> tuple[float, float]:
    """Return `(share, variance)` by the rule of succession."""
    share = (healed + 1) / (uses + 2)
    return share, share * (1 - share) / (uses + 2)
