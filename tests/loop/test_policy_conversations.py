"""A capable model works in one conversation; the policy begins another one only where that has stalled."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suture.core.records import Move
from suture.core.settings import LoopSettings
from suture.loop.policy.attempts import Attempt, Progress
from suture.loop.policy.next_moves import decide
from suture.loop.recipes.recipe_files import load_recipe

ADAPTIVE = load_recipe(LoopSettings(recipe="adaptive"), 0.8)
USERS_CODE = Attempt(candidate="user", origin="user", round=-1, start=-1, passed=447, failed=2)
NEAR_MISS = Attempt(
    candidate="near", origin="repair", round=0, start=0, passed=448, failed=1, fingerprint="near"
)
BEGINNING = Progress(kind="heal", round=0, attempts=(USERS_CODE,), attempts_left=12, is_capable=True)
STALLED = replace(BEGINNING, round=1, attempts=(USERS_CODE, NEAR_MISS), agents_asked=1)


def decide_one(progress: Progress) -> Move:
    (move,) = decide(progress, ADAPTIVE)
    return move


def test_the_search_comes_first_and_then_one_conversation() -> None:
    assert decide_one(replace(BEGINNING, can_search=True)).kind == "mutate"
    move = decide_one(BEGINNING)
    assert (move.kind, move.parent, move.temperature) == ("agent", "user", 0.0)


def test_a_task_to_write_is_a_conversation_too() -> None:
    move = decide_one(Progress(kind="write", round=0, attempts_left=12, is_capable=True))
    assert (move.kind, move.parent) == ("agent", None)


def test_a_near_miss_never_leads_to_fresh_samples() -> None:
    move = decide_one(STALLED)
    assert (move.kind, move.parent) == ("agent", "near")
    assert move.temperature > 0, "the same greedy reply would begin the same conversation"


def test_two_conversations_are_the_end_without_a_stronger_model() -> None:
    move = decide_one(replace(STALLED, round=2, agents_asked=2))
    assert (move.kind, move.outcome) == ("stop", "not_healed")
    assert move.reason is not None
    assert move.reason.code == "turns_used"


@pytest.mark.parametrize("asked", [2, 3])
def test_a_stronger_model_gets_conversations_of_its_own(asked: int) -> None:
    progress = replace(STALLED, round=asked, agents_asked=asked, escalated=0 if asked == 2 else 2)
    move = decide_one(replace(progress, can_escalate=asked == 2, is_escalation_capable=True))
    assert (move.kind, move.parent) == ("agent", "near")


def test_a_stronger_model_takes_over_from_a_small_one_in_a_conversation() -> None:
    repaired = replace(NEAR_MISS, depth=ADAPTIVE.repair_rounds)
    small = replace(STALLED, is_capable=False, agents_asked=0, attempts=(USERS_CODE, repaired))
    move = decide_one(replace(small, can_escalate=True, is_escalation_capable=True))
    assert (move.kind, move.parent) == ("agent", "near")


def test_used_up_attempts_are_named_as_such() -> None:
    move = decide_one(replace(STALLED, round=2, agents_asked=2, attempts_left=0))
    assert move.outcome == "budget_exhausted"


def test_a_small_model_is_asked_for_repairs_as_before() -> None:
    moves = decide(replace(BEGINNING, is_capable=False), ADAPTIVE)
    assert [move.kind for move in moves] == ["repair"]
