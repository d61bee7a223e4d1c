"""Every memory pays rent: chance decides whether it is used, and what shows no benefit leaves.

A memory that was found is shown, held back, or replaced by a text of the same length that says nothing (a
placebo). So the share of runs that end well with it can be held against the share without it, and a
placebo's against both.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from suture.core.ledger.kinds.memory import Arm
    from suture.storage.memory.memory_items import Item


Z = 1.645
"""Of a normal distribution: 90 % lie within so many standard deviations."""
LEAST_SHOWN, LEAST_WITHHELD = 8, 4
"""Uses before a memory is judged at all."""
ENOUGH = 30
"""Uses in both arms together after which no benefit at all is enough to evict."""

PLACEBOS = (
    "Keep the code as simple as it can be and follow the style that is there, with names that tell.",
    "A change is easier to read where each line does one thing and functions stay short.",
    "Comments say why and not what, and tests are named after what they show, as is usual in most projects.",
    "Blank lines between parts of a function help the eye, and lines should not be too long.",
)
"""Texts about nothing in particular, repeated and cut to the length of what they stand for."""


@dataclass(frozen=True, kw_only=True)
class Uplift:
    """How much more often runs end well with a memory than without it.

    Attributes:
        mean: Difference of the two shares, each by Laplace's rule of succession.
        low: Lower end of its 90 % interval, by the normal approximation of Agresti and Caffo (2000).
        high: Upper end.
    """

    mean: float
    low: float
    high: float


def uplift(healed_with: int, with_it: int, healed_without: int, without_it: int) -> Uplift:
    """The estimate from counts of both arms; from none it is 0 with a wide interval."""
    share_with, spread_with = _share(healed_with, with_it)
    share_without, spread_without = _share(healed_without, without_it)
    mean = share_with - share_without
    width = Z * math.sqrt(spread_with + spread_without)
    return Uplift(mean=mean, low=max(-1.0, mean - width), high=min(1.0, mean + width))


def uplift_of(item: Item) -> Uplift:
    """The estimate of one memory."""
    return uplift(item.healed_recalled, item.recalled, item.healed_withheld, item.withheld)


def uses_by_arm(items: Iterable[Item]) -> dict[str, tuple[int, int]]:
    """Arm -> uses of all these memories in runs that ended well, and all uses."""
    sums = {"shown": (0, 0), "withheld": (0, 0), "placebo": (0, 0)}
    for item in items:
        with_it = "placebo" if item.source == "placebo" else "shown"
        healed, uses = sums[with_it]
        sums[with_it] = healed + item.healed_recalled, uses + item.recalled
        if with_it == "shown":
            healed, uses = sums["withheld"]
            sums["withheld"] = healed + item.healed_withheld, uses + item.withheld
    return sums


def shows_no_benefit(item: Item) -> bool:
    """Whether a memory was used often enough to say that it does not help."""
    if item.recalled < LEAST_SHOWN or item.withheld < LEAST_WITHHELD:
        return False
    estimate = uplift_of(item)
    return estimate.high < 0 or (item.recalled + item.withheld >= ENOUGH and estimate.mean <= 0)


def arm_of(key: str, uses: int, *, seed: int, withheld: float, placebo: float) -> Arm:
    """What is done with a memory this time; the same for the same arguments.

    Args:
        key: The memory's.
        uses: How often it was drawn for before, so that each use is a draw of its own.
        seed: `memory.seed`.
        withheld: The share of uses that are held back.
        placebo: The share of uses that are replaced.
    """
    drawn = hashlib.sha256(f"{seed} {key} {uses}".encode()).digest()
    share = int.from_bytes(drawn[:8], "big") / 2**64
    if share < withheld:
        return "withheld"
    return "placebo" if share < withheld + placebo else "shown"


def placebo_for(text: str, key: str) -> tuple[int, str]:
    """A text of the same length that says nothing, and its number among `PLACEBOS`."""
    number = int(hashlib.sha256(key.encode()).hexdigest(), 16) % len(PLACEBOS)
    filler = PLACEBOS[number]
    while len(filler) < len(text):
        filler += " " + PLACEBOS[number]
    return number, filler[: len(text)]


def _share(healed: int, uses: int) -> tuple[float, float]:
    """The share by the rule of succession, and its variance."""
    share = (healed + 1) / (uses + 2)
    return share, share * (1 - share) / (uses + 2)
