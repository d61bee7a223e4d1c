"""Names that are like each other: of such, one is taken for the other, or misspelt."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher

MOST_ALIKE = 6
"""Names offered in place of one that is misspelt, the most alike first. By taste."""
LEAST_ALIKE = 0.5
"""Share of characters in order, as `difflib` counts; below it names have nothing in common but letters."""


def find_similar_names(name: str, others: Iterable[str]) -> list[tuple[str, float]]:
    """Names most like one, each with how like it is: 1 for nearly the same.

    Args:
        name: The one that is misspelt.
        others: Those that there are.
    """
    matcher = SequenceMatcher(b=name.lower())
    found = []
    for other in dict.fromkeys(sorted(others)):
        matcher.set_seq1(other.lower())
        if (
            other != name
            and matcher.real_quick_ratio() >= LEAST_ALIKE
            and matcher.quick_ratio() >= LEAST_ALIKE
        ):
            share = matcher.ratio()
            if share >= LEAST_ALIKE:
                found.append((share, other))
    found.sort(key=lambda pair: (-pair[0], pair[1]))
    return [(other, share) for share, other in found[:MOST_ALIKE]]
