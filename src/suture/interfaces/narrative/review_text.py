"""The question that a run asks a person, as text and JSON, and how to answer it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from suture.interfaces.narrative.plain_text import format_count
from suture.interfaces.narrative.wording import REVIEW_QUESTION_TEXTS

if TYPE_CHECKING:
    from suture.api import Review
    from suture.core.ledger.kinds import ProposedExample, ReviewStage
    from suture.core.records import Reason

MAX_QUESTION_CHARS = 6000
"""Length of a question in a form, which has no space for a whole diff."""


def render_review_question(review: Review) -> str:
    """Return the question that a run asks."""
    if review.difference is not None:
        first, second = review.difference.answer_pair
        return f"Which is right for {review.difference.call}: first, {first}, or second, {second}?"
    packages = [fact.call for fact in review.facts if fact.check_id.endswith("dependency.unlisted")]
    if packages and review.stage == "safety" and len(packages) == len(review.facts):
        return f"Allow Suture to install packages that are not on the allow list ({', '.join(packages)})?"
    return render_stage_question(review.stage, len(review.moves))


def render_stage_question(stage: ReviewStage, move_count: int) -> str:
    """Return the question of a stage, with the number of moves that would follow."""
    return REVIEW_QUESTION_TEXTS[stage].format(
        candidates=format_count(move_count, "fresh candidate"), repairs=format_count(move_count, "repair")
    )


def example_lines(examples: Sequence[ProposedExample]) -> Iterator[str]:
    """Yield calls of new code with their results."""
    for example in examples:
        if len(example.answers) == 1:
            yield f"  {example.call} == {example.answers[0]}"
        else:
            yield f"  {example.call}: the versions give {' or '.join(example.answers)}"


def render_ending_reason(reason: Reason) -> str:
    """Return why a run ended; for a run that waits, the question that it asks."""
    from suture.core.records import render_reason  # the help page imports this module

    if reason.code != "waiting_for_answer":
        return render_reason(reason)
    return render_stage_question(cast("ReviewStage", reason.detail), reason.count)


def review_as_text(review: Review) -> str:
    """Return a question with the facts needed to answer it; a long file is cut and says where the rest is."""
    from suture.interfaces.narrative.rival_text import difference_lines  # the help page imports this module

    paragraphs = [f"Suture run {review.run_id} asks: {render_review_question(review)}"]
    if review.difference is not None:
        paragraphs.append("\n".join(difference_lines(review.difference, review.changes, ("first", "second"))))
    if review.diagnosis is not None:
        paragraphs.append(f"Diagnosis: {review.diagnosis.root_cause}")
    paragraphs += ["\n".join(example_lines(review.examples))] if review.examples else []
    if review.diff:
        paragraphs.append(review.diff)
    text = "\n\n".join(paragraphs)
    if len(text) <= MAX_QUESTION_CHARS:
        return text
    pointer = f"(cut here; the full text of {len(text):,} characters: `suture review {review.run_id}`)"
    return f"{text[:MAX_QUESTION_CHARS]}\n\n{pointer}"


def review_as_json(review: Review) -> dict[str, Any]:
    """Return a question with everything needed to answer it."""
    from suture.core.records import encode_record, render_reason  # the help page imports this module

    return {
        "run": review.run_id,
        "stage": review.stage,
        "question": render_review_question(review),
        "difference": encode_record(review.difference) if review.difference else None,
        "changes": [encode_record(change) for change in review.changes],
        "examples": [encode_record(example) for example in review.examples],
        "moves": [
            {**encode_record(move), "reason": render_reason(move.reason) if move.reason else ""}
            for move in review.moves
        ],
        "candidate": encode_record(review.candidate) if review.candidate else None,
        "diagnosis": encode_record(review.diagnosis) if review.diagnosis else None,
        "facts": [encode_record(fact) for fact in review.facts],
        "diff": review.diff,
        "editable": sorted(review.editable),
    }


def answer_instructions(run: str, stage: ReviewStage) -> Iterator[str]:
    """Yield the commands that answer a waiting run, for stderr."""
    yield f"Show the question: suture review {run}"
    if stage == "distinguish":
        yield f"Answer it: suture resume {run} --answer first   (or second, neither, or unsure)"
        return
    yield f"Answer it: suture resume {run} --answer approve   (or reject, or abort)"
    if stage == "examples":
        yield f"Or write your own asserts into a file: suture resume {run} --edit FILE"
        return
    yield f'Give the model a hint: suture resume {run} --hint "..."'
    if stage not in ("test", "safety"):
        yield f"Use your own code instead: suture resume {run} --edit FILE"
