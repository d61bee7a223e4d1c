"""Tasks whose visible checks are the hidden ones: what a claim says of them, it was told."""

from __future__ import annotations

from collections.abc import Iterable

from suture.evals.rows import Row


def shown_in_words(rows: Iterable[Row]) -> str:
    """Of how many tasks that is so, and what it means; empty where there is none.

    Args:
        rows: Of one set. Those of the regime `oracle` are passed over: it is named so.
    """
    shown = {row.problem: row.shown for row in rows if row.regime != "oracle"}
    count = sum(shown.values())
    if not count:
        return ""
    if count < len(shown):
        return (
            f"In {count} of {len(shown)} tasks the visible checks are the hidden ones, "
            "so that a claim cannot be wrong there."
        )
    return (
        f"In all {count} tasks the visible checks are the hidden ones: the loop was shown what grades it, "
        "claimed minus solved is 0 by construction, and this is no headline."
    )
