"""The reasons why the policy makes a move, and why a run ends.

A reason is a code with data. `render_reason` is the only function that turns it into text.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

ReasonCode = Literal[
    # Why a move is made.
    "cheapest_first",
    "greedy_first",
    "fresh_samples",
    "second_opinions",
    "uncertain_diagnosis",
    "fresh_beside_repairs",
    "critic_objects",
    "failing_checks",
    "agent_turn",
    "judged_program",
    # Why a run is stuck, or a stronger model or an agent takes over.
    "no_new_code",
    "no_progress",
    "repairs_exhausted",
    # Why a run ends.
    "baseline_passes",
    "checks_pass",
    "change_accepted",
    "change_rejected",
    "not_comparable",
    "undetermined",
    "not_a_code_fault",
    "all_tests_skipped",
    "no_trusted_check",
    "no_shown_result",
    "results_rejected",
    "no_model",
    "no_search",
    "max_rounds",
    "turns_used",
    "agent_failed",
    "attempts_used",
    "next_call_over_budget",
    "budget_exceeded",
    "model_unavailable",
    "no_answer",
    "fault",
    "issue_not_reproduced",
    "test_not_accepted",
    "rejected_twice",
    "stopped_by_reviewer",
    "stopped_by_user",
    "waiting_for_answer",
]
"""Why the policy chose a move, or why a run ended. `render_reason` says what each code means."""
ReasonNote = Literal[
    "critic_objects",
    "feature_unshown",
    "low_confidence",
    "model_chose",
    "person_chose",
    "project_unshown",
    "repair_unverified",
]
"""What qualifies an ending: a critic's objection, a setting that turned a repair into `not_healed`, that a model or a
person chose between changes that the tests do not distinguish, that nothing in the task shows what the new project or
the new feature must do, or that there was no time to verify a repair that was found."""


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why a move is made, or why a run ended.

    Attributes:
        code: The reason.
        detail: What the code does not say: the message of a fault, the name of a recipe, a question.
        fault: For the code `fault`, the name of the exception's class; for `budget_exceeded` and
            `next_call_over_budget`, that of the limit.
        count: The number that the code is about, such as failing checks, rounds or turns.
        limit: The limit of that number; for the codes of the budget, that limit, rounded up. For `attempts_used`, that
            of the budget; 0 if the recipe allows no more attempts.
        cut_short_by: For the code `checks_pass`, why the run ended before its last step; `None` if it did
            not.
        notes: What qualifies the ending.
        confidence: For the note `low_confidence`, the confidence in [0, 1].
        remedy: For the code `budget_exceeded`, what to do, in the options of the command line. `render_reason` leaves
            it out, because a page has controls instead.
    """

    code: ReasonCode
    detail: str = ""
    fault: str = ""
    count: int = 0
    limit: int = 0
    cut_short_by: ReasonCode | None = None
    notes: tuple[ReasonNote, ...] = ()
    confidence: float = 0.0
    remedy: str = ""


NOTE_TEXTS: dict[ReasonNote, str] = {
    "critic_objects": "; the critic still objects, and decides nothing",
    "feature_unshown": "; nothing shows the new feature: only that what worked before still does",
    "project_unshown": "; nothing in the task shows what the project must do: only Suture's own checks pass",
    "repair_unverified": "; a repair was found, and is not verified yet",
    "model_chose": "; your tests do not decide between several changes, and the model chose this one",
    "person_chose": "; your tests do not decide between several changes, and a person chose this one",
}


def render_reason(reason: Reason) -> str:
    """Return a reason as one line of text."""
    text = _render_code(reason)
    if reason.cut_short_by is not None:
        text += f" ({_render_code(replace(reason, code=reason.cut_short_by))})"
    for note in reason.notes:
        if note == "low_confidence":
            text += f", but a confidence of {reason.confidence:.2f} is too low (loop.abstain_below)"
        else:
            text += NOTE_TEXTS[note]
    return text


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _render_code(reason: Reason) -> str:
    count, limit, detail = reason.count, reason.limit, reason.detail
    texts: dict[ReasonCode, str] = {
        "cheapest_first": "the cheapest one first",
        "greedy_first": "the likeliest reply first",
        "fresh_samples": "written from scratch",
        "second_opinions": "as a second opinion",
        "uncertain_diagnosis": "because the cause of the failure is uncertain",
        "fresh_beside_repairs": "in addition to the repairs",
        "critic_objects": "because the critic objects",
        "failing_checks": f"because {_count(count, 'check')} still fail{'s' if count == 1 else ''}",
        "agent_turn": f"turn {count} of {limit}",
        "judged_program": f"at most {_count(count, 'turn')}, each judged",
        "no_new_code": "the last rounds brought no new code",
        "no_progress": f"no better candidate in {_count(count, 'round')}",
        "repairs_exhausted": "the repairs of this candidate did not suffice",
        "baseline_passes": "every test passes on the code as it is",
        "checks_pass": "every trusted check passes",
        "change_accepted": f"the proposer's change is accepted after {_count(count, 'turn')}",
        "change_rejected": f"the proposer's change is rejected after {_count(count, 'turn')}: {detail}",
        "not_comparable": f"the proposer's change cannot be compared with your code: {detail}",
        "undetermined": (
            f"your tests do not decide: {count} changes pass all of them and may behave differently (loop.strict)"
            if count > 1
            else "your tests do not decide: they notice few deliberate mistakes in the changed lines (loop.strict)"
        ),
        "not_a_code_fault": detail,
        "all_tests_skipped": "no test decides: all of them are skipped",
        "no_trusted_check": "no test or example says what the code must return",
        "no_shown_result": (
            "no test or example says what the code must return, and no guessed call of it returned a value"
        ),
        "results_rejected": "you said that the results of the code are not right",
        "no_model": (
            "the repairs that were found without a model do not pass every check"
            if count
            else "the search found no repair"
        )
        + ", and there is no model to ask (model.name = none)",
        "no_search": "this code cannot be searched for a repair, and there is no model to ask (model.name = none)",
        "max_rounds": f"the recipe {detail} ends a run after {_count(count, 'round')}",
        "turns_used": f"the {detail} has used its {_count(count, 'turn')}",
        "agent_failed": detail,
        "attempts_used": (
            f"{limit} of {limit} attempts are used (budget.attempts)"
            if limit
            else "the recipe allows no more attempts"
        ),
        "next_call_over_budget": detail or "the next call of the model could exceed a limit",
        "budget_exceeded": detail,
        "model_unavailable": f"the model could not be asked: {detail}",
        "no_answer": f"the model gave no answer: {detail}",
        "fault": f"{reason.fault}: {detail}",
        "issue_not_reproduced": (
            f"every test passes, and none of {count} tests written for the issue shows it: {detail}"
        ),
        "test_not_accepted": "the test that was written for the issue was not accepted",
        "rejected_twice": "the next step was rejected twice in a row",
        "stopped_by_reviewer": "stopped by the reviewer",
        "stopped_by_user": "stopped by the user",
        "waiting_for_answer": f"waiting for an answer about {detail}",
    }
    return texts[reason.code]
