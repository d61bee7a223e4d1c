"""Build the briefs of the coder and of the other roles from the state and the ledger of a run."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from suture.agents.calling.role_call import RoleCall
from suture.agents.context.briefs import (
    BriefBuilder,
    FailingCandidate,
    describe_attempt,
    with_advice,
    with_hints,
)
from suture.agents.context.failure_context import build_failure_context
from suture.agents.context.suspects import load_search_clues
from suture.agents.prompting.prompt_parts import EarlierAttempt
from suture.agents.roles.coder import Brief, RepairBrief
from suture.agents.tuning import DEFAULT_CONTEXT_TOKENS, MAX_OPENING_TOKENS
from suture.core.ledger import last_payload
from suture.core.ledger.kinds import MemoryRecalled
from suture.core.records import Move, Verdict
from suture.judge import Suite
from suture.loop.context import RunContext
from suture.loop.evaluation.flaky_repairs import describe_flaky_tests
from suture.loop.policy.attempts import Attempt
from suture.loop.state import LoopState, judged_attempts, proposed_attempts, role_contributions
from suture.models import Role
from suture.models.profiles import ModelProfile, find_profile
from suture.project.workspace import overlay_candidate
from suture.storage.memory import recall_for_run

MAX_EARLIER_ATTEMPTS = 3
"""Earlier attempts that a repair prompt lists."""


def make_role_call(helper: str, state: LoopState, context: RunContext) -> RoleCall:
    """Return the call of a helper in the current round."""
    return RoleCall(helper=helper, calls=context.calls, round=state["round"])


def find_role_profile(role: Role, context: RunContext) -> ModelProfile:
    """Return what the model of a role can do."""
    return find_profile(context.models.for_role(role).model.name, context.settings)


async def add_failure_context(
    brief: RepairBrief, attempt: Attempt, suite: Suite, role: Role, context: RunContext
) -> RepairBrief:
    """Return a brief with what a capable model is told about failing tests; for a small model, the brief as it is."""
    profile = find_role_profile(role, context)
    if not profile.is_capable or not attempt.failed:
        return brief
    room_tokens = (profile.context_tokens or DEFAULT_CONTEXT_TOKENS) // 2
    async with context.budget.time_limit():
        failure = await build_failure_context(
            context.task,
            overlay_candidate(context.task.files, context.candidates.load(attempt.blob).files),
            context.candidates.load_verdict(attempt.verdict),
            suite,
            load_search_clues(context.ledger.events),
            threshold=context.trust_threshold,
            max_tokens=min(room_tokens, MAX_OPENING_TOKENS),
        )
    return replace(
        brief,
        located_code=join_texts(failure.rules, failure.code, failure.history),
        failure_report=join_texts(failure.tests, failure.facts),
    )


def join_texts(*texts: str) -> str:
    """Return the strings that are not empty, as paragraphs."""
    return "\n\n".join(text.strip("\n") for text in texts if text.strip())


def _load_failing_candidate(attempt: Attempt, context: RunContext) -> FailingCandidate:
    return FailingCandidate(
        candidate=context.candidates.load(attempt.blob),
        verdict=context.candidates.load_verdict(attempt.verdict),
    )


def brief_for_move(
    move: Move, parent: Attempt | None, state: LoopState, context: RunContext, suite: Suite
) -> Brief:
    """Return the brief of a move, with the hints of a person and the advice of the roles."""
    contributions = role_contributions(state)
    remarks = contributions.remarks.get(parent.candidate, ()) if parent else ()
    builder = _make_builder(parent, state, context, suite)
    brief = builder.for_move(move, _load_failing_candidate(parent, context) if parent else None)
    if flaky_tests := "\n\n".join(describe_flaky_tests(context)):
        brief = replace(brief, statement=f"{brief.statement}\n\n{flaky_tests}".lstrip())
    advice = (*contributions.lessons, *recalled_lessons("coder", context))
    if isinstance(brief, RepairBrief) and brief.passing_checks is not None:
        brief = replace(brief, objections=remarks)
    else:
        advice = (*remarks, *advice)
    return with_hints(with_advice(brief, advice), state["hints"])


def brief_for_repair(attempt: Attempt, state: LoopState, context: RunContext, suite: Suite) -> RepairBrief:
    """Return everything that is known about a candidate in Python."""
    builder = _make_builder(attempt, state, context, suite)
    return builder.for_repair(_load_failing_candidate(attempt, context))


def _make_builder(
    parent: Attempt | None, state: LoopState, context: RunContext, suite: Suite
) -> BriefBuilder:
    last_round = [attempt for attempt in proposed_attempts(state) if attempt.round == state["round"] - 1]
    malformed = [attempt for attempt in last_round if attempt.fault in ("malformed", "unchanged")]
    return BriefBuilder(
        task=context.task,
        suite=suite,
        trust_threshold=context.trust_threshold,
        clues=load_search_clues(context.ledger.events),
        history=describe_attempts(parent, state, context),
        # Why replies of the last round could not be used; each reason once, without the quotes of `ascii()`.
        refused=list(dict.fromkeys(attempt.fault_message.strip("'\"") for attempt in malformed)),
    )


def describe_attempts(
    excluded: Attempt | None, state: LoopState, context: RunContext
) -> tuple[EarlierAttempt, ...]:
    """Return the last attempts, one line each; not the one that the prompt shows completely."""
    excluded_candidate = excluded.candidate if excluded else ""
    others = [
        attempt
        for attempt in judged_attempts(state)
        if attempt.origin != "user" and attempt.candidate != excluded_candidate
    ]
    return tuple(
        describe_attempt(
            attempt.label,
            attempt.passed,
            attempt.failed,
            context.candidates.load_verdict(attempt.verdict),
            context.trust_threshold,
        )
        for attempt in others[-MAX_EARLIER_ATTEMPTS:]
    )


async def recall_memories(verdict: Verdict | None, context: RunContext) -> None:
    """Look for memories, if the settings want them used, and record what was found.

    A run that replays, resumes or forks another one uses what was recalled there, so that its prompts are the
    same. A replay takes it from the recorded run; otherwise the ledger holds it already.

    Args:
        verdict: The verdict on the user's code; `None` if there is no code yet.
    """
    if last_payload(context.ledger.events, MemoryRecalled) is not None:
        return
    if context.spec.replays:
        recalled = last_payload(context.spec.recorded_events, MemoryRecalled)
    elif context.settings.memory.use == "off":
        return
    else:
        recalled = await asyncio.to_thread(recall_for_run, context.settings, context.task, verdict)
    if recalled is not None:
        context.ledger.append(recalled)


def recalled_lessons(role: str, context: RunContext) -> tuple[str, ...]:
    """Return the lessons of earlier runs for a role's prompts, if the recipe gives it a memory."""
    recalled = last_payload(context.ledger.events, MemoryRecalled)
    return recalled.prompt_texts if recalled is not None and role in context.recipe.helpers.memory else ()
