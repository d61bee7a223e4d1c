"""The question that a run asks a person, as text and JSON, and how to answer it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from suture.interfaces.narrative.plain_text import format_count
from suture.interfaces.narrative.wording import REVIEW_QUESTION_TEXTS

if TYPE_CHECKING:
    from suture.api import Review
    from suture.core.ledger.kinds import ReviewStage
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
    question = render_stage_question(review.stage, len(review.moves or review.examples))
    if review.stage != "examples":
        return question
    if not review.examples:
        return f"{question} Such as: {review.example_call} == ..." if review.example_call else question
    agreed = sum(len(example.answers) == 1 for example in review.examples)
    if agreed == len(review.examples):
        return (
            f"Are these {agreed} results of the code right?"
            if agreed > 1
            else "Is this result of the code right?"
        )
    if not agreed:
        return (
            "The versions of the code differ in each of these results. Do you want to choose the right ones?"
        )
    # To approve confirms only what all versions give; the other results are chosen one by one.
    return f"Are the results right that all versions give ({agreed} of {len(review.examples)})?"


def render_stage_question(stage: ReviewStage, count: int) -> str:
    """Return the question of a stage.

    Args:
        count: Number of the moves that would follow, or of the results that are shown.
    """
    if stage == "examples" and not count:
        return "Which call of this code has a result that you know?"
    return REVIEW_QUESTION_TEXTS[stage].format(
        candidates=format_count(count, "fresh candidate"), repairs=format_count(count, "repair")
    )


def example_lines(review: Review) -> Iterator[str]:
    """Yield calls of new code with their results, and calls that raise an exception, or that it has another name."""
    if review.misnamed_function:
        yield f"The code defines {review.misnamed_function}; the task asks for {review.task.entry_point}."
    for raising in review.raising_calls:
        if raising.is_shown:
            yield f"  {raising.call} raises {raising.exception}, although the task names this input"
    for example in review.examples:
        if len(example.answers) == 1:
            yield f"  {example.call} == {example.answers[0]}"
        else:
            yield f"  {example.call}: the versions give {' or '.join(example.answers)}"
    for raising in review.raising_calls:
        if not raising.is_shown:
            yield f"  {raising.call} raises {raising.exception} (not checked)"


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
    paragraphs += ["\n".join(lines)] if (lines := list(example_lines(review))) else []
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
        "raising_calls": [encode_record(call) for call in review.raising_calls],
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


def answer_instructions(run: str, stage: ReviewStage, *, has_examples: bool = True) -> Iterator[str]:
    """Yield the commands that answer a waiting run, for stderr.

    Args:
        has_examples: For the stage `examples`, whether the question shows results to confirm.
    """
    yield f"Show the question: suture review {run}"
    if stage == "examples" and not has_examples:
        yield f"Answer it on a terminal: suture resume {run}"
        yield f"Or write a call with its result into a file (`assert f(2) == 4`): suture resume {run} --edit FILE"
        yield f"Or end the run: suture resume {run} --answer reject"
        return
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
