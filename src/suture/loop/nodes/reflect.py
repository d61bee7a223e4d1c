"""Reflect: what helpers say of the candidates of a round, before the policy decides on the next."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from langgraph.runtime import Runtime

from suture.core.records import to_plain
from suture.loop.context import RunContext
from suture.loop.evaluation.deciding import deciding_suite
from suture.loop.helpers.critique import criticise, diagnose, draw_lessons
from suture.loop.helpers.generated_tests import adopt_generated, attack, may_be_tested
from suture.loop.helpers.plugin_calls import advice_of, mended
from suture.loop.helpers.post_processing import optimised, reviewed
from suture.loop.helpers.project_tests import completed_project
from suture.loop.helpers.tournament import ranked
from suture.loop.policy.next_moves import decide, next_parent
from suture.loop.policy.progress import Attempt, best_of
from suture.loop.prompting.briefs import repair_brief
from suture.loop.recipes.schema import Helpers
from suture.loop.state import Aids, LoopState, aids_of, tried_in, with_tried
from suture.project.languages import LANGUAGES


async def reflect(state: LoopState, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """Have tests written and weighed, ties broken, code criticised, failures diagnosed, and lessons drawn.

    Each is asked about a candidate once, and none of them decides: tests do once they are trusted, and a
    critic may only send passing code back a few times.
    """
    context = runtime.context
    helpers, wants_ties = context.recipe.helpers, context.recipe.tournament
    if context.task.project is not None:
        return await completed_project(state, context)
    if (helpers == Helpers() and not wants_ties) or not LANGUAGES[context.task.language].parsed:
        return {}
    before, aids = state, aids_of(state)
    if helpers.tests and may_be_tested(context):
        state, aids = await _tested(state, aids, context)
    if wants_ties:
        state = await ranked(await deciding_suite(aids, context), state, context)
    state, aids = await _extended(state, aids, context)
    state, aids = await _criticised(state, aids, context)
    state, aids = await _diagnosed(state, aids, context)
    state, aids = await _polished(state, aids, context)
    if helpers.lessons and state["tried"] and _goes_on(state, context):
        aids = replace(aids, lessons=await draw_lessons(aids, state, context))
    update: dict[str, Any] = {"aids": to_plain(aids)}
    return update | {key: state[key] for key in ("tried", "checks") if state[key] != before[key]}


async def _tested(state: LoopState, aids: Aids, context: RunContext) -> tuple[LoopState, Aids]:
    """Weigh the tests that are there; code that fails none of them is attacked with others."""
    state, aids = await adopt_generated(state, aids, context)
    best = _best(state, context)
    attacks = sum(name.startswith("attack:") for name in aids.read)
    wanted = context.recipe.helpers.adversarial_tests and attacks < context.recipe.attacks
    if not wanted or best is None or best.failed or _is_done("attack", best, aids):
        return state, aids
    aids = _done("attack", best, await attack(best, aids, state["round"], context))
    return await adopt_generated(state, aids, context)


async def _extended(state: LoopState, aids: Aids, context: RunContext) -> tuple[LoopState, Aids]:
    """What packages brought, on what is mended next: repairs without a model, and advice."""
    brought = context.extensions
    parent = next_parent(context.progress(state), context.recipe)
    entry = _entry(state, parent.candidate) if parent is not None and not parent.solved else None
    if not (brought.menders or brought.advisers) or entry is None or _is_done("brought", entry, aids):
        return state, aids
    suite = await deciding_suite(aids, context)
    brief = repair_brief(entry, state, context, suite)
    aids = _done("brought", entry, aids)
    state = await mended(brief, entry, suite, state, context)
    if _goes_on(state, context):
        aids = _remarked(entry, await advice_of(brief, state["round"], context), aids)
    return state, aids


async def _criticised(state: LoopState, aids: Aids, context: RunContext) -> tuple[LoopState, Aids]:
    """The critic's view of code that passes, or of what is mended next; a doubt about the former is kept."""
    wanted, entry = context.recipe.helpers.critic, _subject(state, context)
    if wanted == "off" or entry is None or _is_done("critic", entry, aids):
        return state, aids
    passes = entry.solved
    if wanted == "gate" and not passes:
        return state, aids
    brief = repair_brief(entry, state, context, await deciding_suite(aids, context))
    said = await criticise(brief, entry, state["round"], context)
    aids = _done("critic", entry, aids)
    if said is None or said.approved:
        return state, aids
    aids = _remarked(entry, said.issues, aids)
    return (_changed(state, replace(entry, sent_back=True)) if passes else state), aids


async def _diagnosed(state: LoopState, aids: Aids, context: RunContext) -> tuple[LoopState, Aids]:
    """The debugger's word on what is mended next, where it fails a test."""
    parent = next_parent(context.progress(state), context.recipe)
    entry = _entry(state, parent.candidate) if parent is not None and not parent.solved else None
    if context.recipe.helpers.diagnose == "off" or entry is None or _is_done("debugger", entry, aids):
        return state, aids
    suite = await deciding_suite(aids, context)
    found = await diagnose(repair_brief(entry, state, context, suite), entry, suite, state, context)
    aids = _done("debugger", entry, aids)
    if found is None:
        return state, aids
    state = _changed(state, replace(entry, confidence=found.confidence, advised=found.strategy))
    return state, _remarked(entry, (found.root_cause,), aids)


async def _polished(state: LoopState, aids: Aids, context: RunContext) -> tuple[LoopState, Aids]:
    """Code that is about to be handed over, made simpler once and reviewed once."""
    helpers, best = context.recipe.helpers, _best(state, context)
    ends = (helpers.optimise or helpers.review) and not _goes_on(state, context)
    if best is None or not ends or not best.solved or best.origin == "user":
        return state, aids
    suite = await deciding_suite(aids, context)
    brief = repair_brief(best, state, context, suite)
    if helpers.optimise and not _is_done("optimiser", best, aids):
        state = await optimised(brief, best, suite, state, context)
        aids = _done("optimiser", best, aids)
    if helpers.review and not _is_done("reviewer", best, aids):
        await reviewed(brief, best, state, context)
        aids = _done("reviewer", best, aids)
    return state, aids


def _subject(state: LoopState, context: RunContext) -> Attempt | None:
    """What passes every trusted check, else what would be mended next."""
    best = _best(state, context)
    if best is not None and best.solved:
        return None if best.origin == "user" else best
    parent = next_parent(context.progress(state), context.recipe)
    return _entry(state, parent.candidate) if parent is not None else None


def _best(state: LoopState, context: RunContext) -> Attempt | None:
    return best_of(tried_in(state))


def _entry(state: LoopState, candidate: str) -> Attempt:
    return next(entry for entry in tried_in(state) if entry.candidate == candidate)


def _goes_on(state: LoopState, context: RunContext) -> bool:
    return decide(context.progress(state), context.recipe)[0].kind != "stop"


def _changed(state: LoopState, changed: Attempt) -> LoopState:
    return with_tried(
        state, [changed if one.candidate == changed.candidate else one for one in tried_in(state)]
    )


def _is_done(what: str, entry: Attempt, aids: Aids) -> bool:
    return f"{what}:{entry.candidate}" in aids.read


def _done(what: str, entry: Attempt, aids: Aids) -> Aids:
    return replace(aids, read=(*aids.read, f"{what}:{entry.candidate}"))


def _remarked(entry: Attempt, said: tuple[str, ...], aids: Aids) -> Aids:
    known = aids.remarks.get(entry.candidate, ())
    return replace(aids, remarks={**aids.remarks, entry.candidate: (*known, *said)})
