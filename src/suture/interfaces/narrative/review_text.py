"""What a person is asked, as JSON values and in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from suture.core.records import encode_record

if TYPE_CHECKING:
    from suture.api import Review
    from suture.core.ledger.kinds import ReviewStage

MAX_QUESTION_CHARS = 6000
"""Of a question in words: a form is no place for a whole diff."""


def review_as_text(review: Review) -> str:
    """A question with what there is to know for an answer; where that is long, it says where the rest is."""
    lines = [f"Suture run {review.run_id} asks: {review.question}"]
    if review.diagnosis is not None:
        lines.append(f"Diagnosis: {review.diagnosis.root_cause}")
    if review.diff:
        lines.append(review.diff)
    text = "\n\n".join(lines)
    if len(text) <= MAX_QUESTION_CHARS:
        return text
    rest = f"(cut here: {len(text):,} characters in all; the whole of it: `suture review {review.run_id}`)"
    return f"{text[:MAX_QUESTION_CHARS]}\n\n{rest}"


def review_as_json(asked: Review) -> dict[str, Any]:
    """A question with all that there is to know for an answer."""
    return {
        "run": asked.run_id,
        "stage": asked.stage,
        "question": asked.asked,
        "difference": encode_record(asked.difference) if asked.difference else None,
        "moves": [encode_record(move) for move in asked.moves],
        "candidate": encode_record(asked.candidate) if asked.candidate else None,
        "diagnosis": encode_record(asked.diagnosis) if asked.diagnosis else None,
        "facts": [encode_record(fact) for fact in asked.facts],
        "diff": asked.diff,
        "editable": sorted(asked.editable),
    }


def answer_instructions(run: str, stage: ReviewStage) -> Iterator[str]:
    """What to type, for stderr."""
    yield f"See what it asks: suture review {run}"
    if stage == "distinguish":
        yield f"Answer it: suture resume {run} --answer first   (or second, neither, or unsure)"
        return
    yield f"Answer it: suture resume {run} --answer approve   (or reject, or abort)"
    yield f'Tell the model something: suture resume {run} --hint "..."'
    if stage not in ("test", "safety"):
        yield f"Put your own code in its place: suture resume {run} --edit FILE"
