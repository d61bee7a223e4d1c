"""Reflect: let the roles contribute to the candidates of a round before the policy decides on the next."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from langgraph.runtime import Runtime

from suture.core.records import encode_record
from suture.loop.briefing import brief_for_repair
from suture.loop.context import RunContext, load_deciding_suite
from suture.loop.policy.attempts import Attempt, find_best
from suture.loop.policy.next_moves import decide, next_parent
from suture.loop.progress_summary import summarise_progress
from suture.loop.recipes.recipe_schema import RecipeHelpers
from suture.loop.roles.critique import criticise, diagnose, draw_lessons
from suture.loop.roles.extension_calls import collect_advice, try_fixers
from suture.loop.roles.generated_tests import (
    accepts_generated_tests,
    adopt_generated_tests,
    write_adversarial_tests,
)
from suture.loop.roles.polishing import review_quality, simplify
from suture.loop.roles.project_tests import complete_project
from suture.loop.roles.tournament import rank_equal_candidates
from suture.loop.state import (
    LoopState,
    RoleContributions,
    judged_attempts,
    role_contributions,
    with_judged_attempts,
)
from suture.project.languages import LANGUAGES

StateAndContributions = tuple[LoopState, RoleContributions]
"""The state, and the contributions that are stored in it at the end of the node."""


async def reflect(state: LoopState, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """Ask the roles that the recipe wants about the candidates of the round.

    Each role is asked about a candidate once. No role decides. But generated tests decide once they are
    trusted, and a critic may send passing code back a few times.
    """
    context = runtime.context
    helpers, has_tournament = context.recipe.helpers, context.recipe.tournament
    if context.task.project is not None:
        return await complete_project(state, context)
    uses_roles = helpers != RecipeHelpers() or has_tournament
    if not uses_roles or not LANGUAGES[context.task.language].parsed:
        return {}
    before, contributions = state, role_contributions(state)
    if helpers.writes_tests and accepts_generated_tests(context):
        state, contributions = await _write_tests(state, contributions, context)
    if has_tournament:
        suite = await load_deciding_suite(contributions, context)
        state = await rank_equal_candidates(suite, state, context)
    state, contributions = await _use_extensions(state, contributions, context)
    state, contributions = await _criticise(state, contributions, context)
    state, contributions = await _diagnose(state, contributions, context)
    state, contributions = await _polish(state, contributions, context)
    if helpers.lessons and state["judged"] and _continues(state, context):
        lessons = await draw_lessons(contributions, state, context)
        contributions = replace(contributions, lessons=lessons)
    update: dict[str, Any] = {"contributions": encode_record(contributions)}
    if state["judged"] != before["judged"]:
        update["judged"] = state["judged"]
    if state["checks"] != before["checks"]:
        update["checks"] = state["checks"]
    return update


async def _write_tests(
    state: LoopState, contributions: RoleContributions, context: RunContext
) -> StateAndContributions:
    """Assess the generated tests; a candidate that fails none of them gets adversarial tests."""
    state, contributions = await adopt_generated_tests(state, contributions, context)
    best = find_best(judged_attempts(state))
    attacks = sum(name.startswith("attack:") for name in contributions.done)
    is_wanted = context.recipe.helpers.adversarial_tests and attacks < context.recipe.attacks
    if not is_wanted or best is None or best.failed or _is_done("attack", best, contributions):
        return state, contributions
    contributions = await write_adversarial_tests(best, contributions, state, context)
    contributions = _mark_done("attack", best, contributions)
    return await adopt_generated_tests(state, contributions, context)


async def _use_extensions(
    state: LoopState, contributions: RoleContributions, context: RunContext
) -> StateAndContributions:
    """Let the extensions of packages repair the next candidate without a model, and comment on it."""
    extensions = context.extensions
    attempt = _next_failing(state, context)
    has_extensions = bool(extensions.fixers or extensions.advisers)
    if not has_extensions or attempt is None or _is_done("brought", attempt, contributions):
        return state, contributions
    suite = await load_deciding_suite(contributions, context)
    brief = brief_for_repair(attempt, state, context, suite)
    contributions = _mark_done("brought", attempt, contributions)
    state = await try_fixers(brief, attempt, suite, state, context)
    if _continues(state, context):
        advice = await collect_advice(brief, state, context)
        contributions = _add_remarks(attempt, advice, contributions)
    return state, contributions


async def _criticise(
    state: LoopState, contributions: RoleContributions, context: RunContext
) -> StateAndContributions:
    """Ask the critic about code that passes, or about the next candidate to repair."""
    mode, attempt = context.recipe.helpers.critic, _criticised_attempt(state, context)
    if mode == "off" or attempt is None or _is_done("critic", attempt, contributions):
        return state, contributions
    if mode == "gate" and not attempt.solved:
        return state, contributions
    suite = await load_deciding_suite(contributions, context)
    brief = brief_for_repair(attempt, state, context, suite)
    critique = await criticise(brief, attempt, state, context)
    contributions = _mark_done("critic", attempt, contributions)
    if critique is None or critique.approved:
        return state, contributions
    contributions = _add_remarks(attempt, critique.issues, contributions)
    if attempt.solved:
        state = _with_changed_attempt(state, replace(attempt, sent_back=True))
    return state, contributions


async def _diagnose(
    state: LoopState, contributions: RoleContributions, context: RunContext
) -> StateAndContributions:
    """Ask the debugger why the next candidate to repair fails."""
    attempt = _next_failing(state, context)
    is_off = context.recipe.helpers.diagnose == "off"
    if is_off or attempt is None or _is_done("debugger", attempt, contributions):
        return state, contributions
    suite = await load_deciding_suite(contributions, context)
    brief = brief_for_repair(attempt, state, context, suite)
    diagnosis = await diagnose(brief, attempt, suite, state, context)
    contributions = _mark_done("debugger", attempt, contributions)
    if diagnosis is None:
        return state, contributions
    diagnosed = replace(attempt, confidence=diagnosis.confidence, advised_strategy=diagnosis.strategy)
    state = _with_changed_attempt(state, diagnosed)
    return state, _add_remarks(attempt, (diagnosis.root_cause,), contributions)


async def _polish(
    state: LoopState, contributions: RoleContributions, context: RunContext
) -> StateAndContributions:
    """Simplify and review code that is about to be delivered, each once."""
    helpers, best = context.recipe.helpers, find_best(judged_attempts(state))
    is_wanted = (helpers.optimise or helpers.review) and not _continues(state, context)
    if best is None or not is_wanted or not best.solved or best.origin == "user":
        return state, contributions
    suite = await load_deciding_suite(contributions, context)
    brief = brief_for_repair(best, state, context, suite)
    if helpers.optimise and not _is_done("optimiser", best, contributions):
        state = await simplify(brief, best, suite, state, context)
        contributions = _mark_done("optimiser", best, contributions)
    if helpers.review and not _is_done("reviewer", best, contributions):
        await review_quality(brief, best, state, context)
        contributions = _mark_done("reviewer", best, contributions)
    return state, contributions


def _criticised_attempt(state: LoopState, context: RunContext) -> Attempt | None:
    """Return the candidate that passes every trusted check, else the next one to repair."""
    best = find_best(judged_attempts(state))
    if best is not None and best.solved:
        return None if best.origin == "user" else best
    return _next_parent(state, context)


def _next_failing(state: LoopState, context: RunContext) -> Attempt | None:
    """Return the next candidate to repair, if it fails a check."""
    parent = _next_parent(state, context)
    return parent if parent is not None and not parent.solved else None


def _next_parent(state: LoopState, context: RunContext) -> Attempt | None:
    return next_parent(summarise_progress(state, context), context.recipe)


def _continues(state: LoopState, context: RunContext) -> bool:
    return decide(summarise_progress(state, context), context.recipe)[0].kind != "stop"


def _with_changed_attempt(state: LoopState, changed: Attempt) -> LoopState:
    return with_judged_attempts(
        state,
        (
            changed if attempt.candidate == changed.candidate else attempt
            for attempt in judged_attempts(state)
        ),
    )


def _is_done(work: str, attempt: Attempt, contributions: RoleContributions) -> bool:
    return f"{work}:{attempt.candidate}" in contributions.done


def _mark_done(work: str, attempt: Attempt, contributions: RoleContributions) -> RoleContributions:
    return replace(contributions, done=(*contributions.done, f"{work}:{attempt.candidate}"))


def _add_remarks(
    attempt: Attempt, remarks: tuple[str, ...], contributions: RoleContributions
) -> RoleContributions:
    earlier = contributions.remarks.get(attempt.candidate, ())
    all_remarks = {**contributions.remarks, attempt.candidate: (*earlier, *remarks)}
    return replace(contributions, remarks=all_remarks)
