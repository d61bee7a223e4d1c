"""Finds names that are similar to a name, for names that may be misspelt or mistaken."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher

from suture.mutation.tuning import MAX_SIMILAR_NAMES, MIN_NAME_SIMILARITY


def find_similar_names(name: str, others: Iterable[str]) -> list[tuple[str, float]]:
    """Return the names most similar to one, each with its similarity: 1 for nearly the same."""
    matcher = SequenceMatcher(b=name.lower())
    similar = []
    for other in dict.fromkeys(sorted(others)):
        matcher.set_seq1(other.lower())
        # The two quick bounds are much cheaper than the ratio itself.
        if (
            other != name
            and matcher.real_quick_ratio() >= MIN_NAME_SIMILARITY
            and matcher.quick_ratio() >= MIN_NAME_SIMILARITY
        ):
            similarity = matcher.ratio()
            if similarity >= MIN_NAME_SIMILARITY:
                similar.append((similarity, other))
    similar.sort(key=lambda pair: (-pair[0], pair[1]))
    return [(other, similarity) for similarity, other in similar[:MAX_SIMILAR_NAMES]]
