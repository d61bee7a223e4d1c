"""The policy decides from the progress alone when a stronger model takes over from the coder."""

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


def make_attempt(name: str, round: int, start: int | None = None, depth: int = 0, passed: int = 0) -> Attempt:
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


REPAIRED_ATTEMPTS = (
    make_attempt("a", 0),
    make_attempt("b", 1),
    make_attempt("c", 2, 1, 1),
    make_attempt("d", 3, 1, 2),
)
"""A greedy reply, a sample and the two repairs of that sample, all of them wrong."""
REPAIRS_EXHAUSTED = Progress(
    kind="write", round=4, attempts=REPAIRED_ATTEMPTS, samples_asked=5, can_escalate=True
)
NO_NEW_CODE = Progress(
    kind="write", round=3, attempts=(make_attempt("a", 0),), samples_asked=9, can_escalate=True
)


@pytest.mark.parametrize(
    ("progress", "code"),
    [(REPAIRS_EXHAUSTED, "repairs_exhausted"), (NO_NEW_CODE, "no_new_code")],
)
def test_the_stronger_model_starts_with_a_greedy_reply(progress: Progress, code: str) -> None:
    escalation = find_escalation(progress, ADAPTIVE)

    assert escalation is not None
    assert escalation.code == code
    (move,) = decide(progress, ADAPTIVE)
    assert (move.kind, move.temperature, move.index) == ("sample", 0.0, progress.samples_asked)
    assert move.reason == escalation
    assert next_parent(progress, ADAPTIVE) is None


@pytest.mark.parametrize("progress", [REPAIRS_EXHAUSTED, NO_NEW_CODE])
def test_there_is_no_escalation_without_a_stronger_model(progress: Progress) -> None:
    assert find_escalation(replace(progress, can_escalate=False), ADAPTIVE) is None


def test_a_run_without_a_stronger_model_samples_or_ends_stuck() -> None:
    (end,) = decide(replace(NO_NEW_CODE, can_escalate=False), ADAPTIVE)
    assert end.outcome == "stuck"
    fresh = decide(replace(REPAIRS_EXHAUSTED, can_escalate=False), ADAPTIVE)
    assert [move.kind for move in fresh] == ["sample"] * 4


@pytest.mark.parametrize("round", range(4))
def test_there_is_no_escalation_before_the_usual_rounds_have_failed(round: int) -> None:
    before = tuple(attempt for attempt in REPAIRED_ATTEMPTS if attempt.round < round)
    assert find_escalation(replace(REPAIRS_EXHAUSTED, round=round, attempts=before), ADAPTIVE) is None


def test_passing_code_needs_no_stronger_model_despite_the_critic() -> None:
    passing = replace(make_attempt("a", 0, passed=3), failed=0, sent_back=True)
    for round in range(1, 8):
        progress = replace(NO_NEW_CODE, round=round, attempts=(passing,))
        assert find_escalation(progress, CRITIC) is None
    assert decide(progress, CRITIC)[0].outcome == "healed"


def test_the_stagnation_count_restarts_after_an_escalation() -> None:
    escalated = replace(NO_NEW_CODE, can_escalate=False, escalated=3)
    assert decide(replace(escalated, round=4), ADAPTIVE)[0].kind == "sample"
    assert decide(replace(escalated, round=5), ADAPTIVE)[0].outcome == "stuck"


def test_a_recipe_without_samples_continues_to_repair() -> None:
    lineage = tuple(make_attempt(str(number), number, 0, number) for number in range(5))
    progress = replace(NO_NEW_CODE, round=5, attempts=(replace(lineage[0], passed=1), *lineage[1:]))
    assert find_escalation(progress, CRITIC) == Reason(code="no_progress", count=3)
    (move,) = decide(progress, CRITIC)
    assert (move.kind, move.parent) == ("repair", "4")


@pytest.mark.parametrize("name", list_recipes())
def test_baseline_recipes_do_not_escalate(name: str) -> None:
    recipe = load_recipe(LoopSettings(recipe=name), 0.8)
    turns_used = replace(NO_NEW_CODE, agents_asked=recipe.agent_turns)  # a conversation counts its turns
    states = (REPAIRS_EXHAUSTED, turns_used if recipe.agent == "alone" else NO_NEW_CODE)
    escalates = any(find_escalation(progress, recipe) for progress in states)
    assert escalates == (name not in BASELINES)


def test_there_is_no_escalation_without_an_attempt_left() -> None:
    (end,) = decide(replace(REPAIRS_EXHAUSTED, attempts_left=0), ADAPTIVE)
    assert end.outcome == "budget_exhausted"
