"""When a stronger model takes over from the coder: a pure function of the progress."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suture.core.records import Reason
from suture.core.settings import LoopSettings
from suture.loop.policy.attempts import Attempt, Progress
from suture.loop.policy.next_moves import decide, find_escalation, next_parent
from suture.loop.recipes.recipe_files import list_recipes, load_recipe

ADAPTIVE = load_recipe(LoopSettings(), 0.8)
CRITIC = load_recipe(LoopSettings(recipe="critic"), 0.8)
BASELINES = ("greedy", "best_of_k", "lean_best_of_k", "always_repair", "reflexion")


def tried(name: str, round: int, start: int | None = None, depth: int = 0, passed: int = 0) -> Attempt:
    return Attempt(
        candidate=name,
        origin="sample",
        round=round,
        start=round if start is None else start,
        depth=depth,
        passed=passed,
        failed=1,
        signature=name,
    )


REPAIRED = (tried("a", 0), tried("b", 1), tried("c", 2, 1, 1), tried("d", 3, 1, 2))
"""A greedy reply, samples, and the two repairs of their lineage, all of them wrong."""
USED_UP = Progress(kind="write", round=4, attempts=REPAIRED, samples_asked=5, can_escalate=True)
CIRCLES = Progress(kind="write", round=3, attempts=(tried("a", 0),), samples_asked=9, can_escalate=True)


@pytest.mark.parametrize(
    ("progress", "why"),
    [(USED_UP, "repairs_exhausted"), (CIRCLES, "no_new_code")],
)
def test_it_opens_with_a_greedy_reply_of_its_own(progress: Progress, why: str) -> None:
    escalation = find_escalation(progress, ADAPTIVE)
    assert escalation is not None
    assert escalation.code == why
    (move,) = decide(progress, ADAPTIVE)
    assert (move.kind, move.temperature, move.index) == ("sample", 0.0, progress.samples_asked)
    assert move.reason == escalation
    assert next_parent(progress, ADAPTIVE) is None


@pytest.mark.parametrize("progress", [USED_UP, CIRCLES])
def test_nobody_takes_over_where_nobody_was_named_or_somebody_has(progress: Progress) -> None:
    assert find_escalation(replace(progress, can_escalate=False), ADAPTIVE) is None


def test_what_a_run_does_without_a_stronger_model_is_as_it_was() -> None:
    (end,) = decide(replace(CIRCLES, can_escalate=False), ADAPTIVE)
    assert end.outcome == "stuck"
    fresh = decide(replace(USED_UP, can_escalate=False), ADAPTIVE)
    assert [move.kind for move in fresh] == ["sample"] * 4


@pytest.mark.parametrize("round", range(4))
def test_not_before_the_usual_rounds_have_failed(round: int) -> None:
    before = tuple(one for one in REPAIRED if one.round < round)
    assert find_escalation(replace(USED_UP, round=round, attempts=before), ADAPTIVE) is None


def test_code_that_passes_needs_no_stronger_model_whatever_a_critic_says() -> None:
    liked = replace(tried("a", 0, passed=3), failed=0, sent_back=True)
    for round in range(1, 8):
        progress = replace(CIRCLES, round=round, attempts=(liked,))
        assert find_escalation(progress, CRITIC) is None
    assert decide(progress, CRITIC)[0].outcome == "healed"


def test_after_it_took_over_rounds_are_counted_again_and_the_run_still_ends() -> None:
    taken = replace(CIRCLES, can_escalate=False, escalated=3)
    assert decide(replace(taken, round=4), ADAPTIVE)[0].kind == "sample"
    assert decide(replace(taken, round=5), ADAPTIVE)[0].outcome == "stuck"


def test_a_recipe_without_fresh_starts_continues_to_repair_with_it() -> None:
    lineage = tuple(tried(str(number), number, 0, number) for number in range(5))
    progress = replace(CIRCLES, round=5, attempts=(replace(lineage[0], passed=1), *lineage[1:]))
    assert find_escalation(progress, CRITIC) == Reason(code="no_progress", count=3)
    (move,) = decide(progress, CRITIC)
    assert (move.kind, move.parent) == ("repair", "4")


@pytest.mark.parametrize("name", list_recipes())
def test_a_baseline_stays_what_it_is(name: str) -> None:
    recipe = load_recipe(LoopSettings(recipe=name), 0.8)
    escalates = any(find_escalation(progress, recipe) for progress in (USED_UP, CIRCLES))
    assert escalates == (name not in BASELINES)


def test_nothing_is_asked_without_an_attempt() -> None:
    (end,) = decide(replace(USED_UP, attempts_left=0), ADAPTIVE)
    assert end.outcome == "budget_exhausted"
