"""What a search may use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, kw_only=True)
class SearchLimits:
    """What a search may use.

    Attributes:
        candidates: Candidates tried.
        seconds: Wall-clock seconds.
        beyond_s: Wall-clock seconds after those, for as long as nothing is found: they are kept for the proof
            of what is.
        patches: Plausible repairs, after which it ends.
        seed: Decides between candidates that are equally likely.
        factors: Operator -> how much likelier its changes are than usual, as memory has it.
    """

    max_candidates: int = 20_000
    max_seconds: float = 60.0
    reserve_s: float = 0.0
    max_repairs: int = 24
    seed: int = 0
    operator_factors: Mapping[str, float] = field(default_factory=dict)

    def minus(self, seconds: float, tried: int) -> SearchLimits:
        """What is left when a search has used this.

        Args:
            seconds: Wall-clock seconds.
            tried: Candidates.
        """
        left_s, left = max(0.0, self.max_seconds - seconds), max(0, self.max_candidates - tried)
        return replace(self, seconds=left_s, candidates=left)
