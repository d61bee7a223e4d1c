"""What a person is asked, as JSON values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suture.records import to_plain

if TYPE_CHECKING:
    from suture.api import Review


def review_as_json(asked: Review) -> dict[str, Any]:
    """A question with all that there is to know for an answer."""
    return {
        "run": asked.run_id,
        "stage": asked.stage,
        "question": asked.asked,
        "difference": to_plain(asked.difference) if asked.difference else None,
        "moves": [to_plain(move) for move in asked.moves],
        "candidate": to_plain(asked.candidate) if asked.candidate else None,
        "diagnosis": to_plain(asked.diagnosis) if asked.diagnosis else None,
        "facts": [to_plain(fact) for fact in asked.facts],
        "diff": asked.diff,
        "editable": sorted(asked.editable),
    }
