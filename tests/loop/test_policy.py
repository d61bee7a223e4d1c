"""The policy is a pure function, so these tests need no model, sandbox or graph."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suture.core.records import Origin, Reason, TaskKind, render_reason
from suture.core.settings import LoopSettings
from suture.errors import UsageError
from suture.loop.policy.attempts import (
    Attempt,
    Progress,
    ProposalFault,
    count_rounds_with_same_failure,
    count_rounds_without_new_code,
    find_best,
)
from suture.loop.policy.next_moves import decide
from suture.loop.recipes.recipe_files import list_recipes, load_recipe
from suture.loop.recipes.recipe_schema import Recipe

ADAPTIVE = load_recipe(LoopSettings(), 0.8)
GREEDY = load_recipe(LoopSettings(recipe="greedy"), 0.8)


def make_attempt(
    name: str,
    round: int,
    *,
    passed: int = 0,
    failed: int = 1,
    start: int | None = None,
    depth: int = 0,
    origin: Origin = "sample",
) -> Attempt:
    return Attempt(
        candidate=name,
        origin=origin,
        round=round,
        start=round if start is None else start,
        depth=depth,
        passed=passed,
        failed=failed,
        signature=name,
    )


BASE = make_attempt("base", -1, origin="user", failed=2)


@pytest.mark.parametrize(
    ("origin", "has_searched", "text"),
    [
        (None, False, "cannot be searched"),
        (None, True, "the search found no repair"),
        ("mutation", True, "were found without a model do not pass every check"),
        ("fix", True, "were found without a model do not pass every check"),
    ],
)
def test_a_run_without_a_model_says_whether_anything_was_searched_and_found(
    origin: Origin | None, has_searched: bool, text: str
) -> None:
    attempts = (BASE, make_attempt("found", -1, origin=origin)) if origin else (BASE,)
    progress = Progress(kind="heal", round=0, attempts=attempts, has_model=False, has_searched=has_searched)
    (move,) = decide(progress, ADAPTIVE)
    assert move.outcome == "not_healed"
    assert move.reason is not None
    assert text in render_reason(move.reason)


def test_flaky_tests_are_investigated_once_and_repaired_only_by_a_model() -> None:
    flaky = Progress(kind="heal", round=0, attempts=(BASE,), cause="flaky", can_search=True)
    (first,) = decide(flaky, ADAPTIVE)
    (without_repair,) = decide(replace(flaky, is_investigated=True), ADAPTIVE)
    (with_repair,) = decide(replace(flaky, is_investigated=True, may_repair_flaky=True), ADAPTIVE)
    assert (first.kind, with_repair.kind) == ("investigate", "repair")
    assert (without_repair.kind, without_repair.outcome) == ("stop", "not_a_code_fault")


def test_the_first_reply_of_a_write_task_is_greedy() -> None:
    (move,) = decide(Progress(kind="write", round=0), ADAPTIVE)
    assert (move.kind, move.temperature, move.index) == ("sample", 0.0, 0)


def test_failing_code_is_repaired_before_anything_else() -> None:
    (move,) = decide(Progress(kind="heal", round=0, attempts=(BASE,)), ADAPTIVE)
    assert (move.kind, move.parent, move.temperature) == ("repair", "base", 0.0)


def test_new_samples_come_before_the_first_repair() -> None:
    moves = decide(
        Progress(kind="write", round=1, attempts=(make_attempt("a", 0),), samples_asked=1), ADAPTIVE
    )
    assert [move.kind for move in moves] == ["sample"] * 4
    assert [move.index for move in moves] == [1, 2, 3, 4]


def test_the_best_sample_is_repaired_twice_before_new_samples() -> None:
    history = [make_attempt("a", 0), make_attempt("b", 1, passed=1), make_attempt("c", 1)]
    moves = decide(Progress(kind="write", round=2, attempts=tuple(history)), ADAPTIVE)

    assert {(move.kind, move.parent) for move in moves} == {("repair", "b")}
    history.append(make_attempt("d", 2, start=1, depth=1))
    moves = decide(Progress(kind="write", round=3, attempts=tuple(history)), ADAPTIVE)
    assert {(move.kind, move.parent) for move in moves} == {("repair", "b")}
    history.append(make_attempt("e", 3, start=1, depth=2))
    moves = decide(Progress(kind="write", round=4, attempts=tuple(history)), ADAPTIVE)
    assert {move.kind for move in moves} == {"sample"}


@pytest.mark.parametrize(("recipe", "outcome"), [(GREEDY, "not_healed"), (ADAPTIVE, None)])
def test_the_greedy_recipe_ends_after_one_round(recipe: Recipe, outcome: str | None) -> None:
    moves = decide(Progress(kind="write", round=1, attempts=(make_attempt("a", 0),)), recipe)
    assert moves[0].outcome == outcome


def test_passing_code_is_not_changed() -> None:
    (move,) = decide(Progress(kind="heal", round=0, attempts=(replace(BASE, passed=3, failed=0),)), ADAPTIVE)
    assert move.outcome == "nothing_to_heal"


def test_code_without_a_check_is_not_healed() -> None:
    progress = Progress(kind="write", round=1, attempts=(make_attempt("a", 0, failed=0),), checks=0)
    (move,) = decide(progress, ADAPTIVE)
    assert move.outcome == "not_healed"


def test_rounds_without_new_code_lead_to_a_nudge_and_then_to_stuck() -> None:
    progress = Progress(kind="write", round=4, attempts=(make_attempt("a", 0), make_attempt("b", 2, start=2)))
    assert {move.kind for move in decide(progress, ADAPTIVE)} == {"sample"}
    (move,) = decide(replace(progress, round=5), ADAPTIVE)
    assert move.outcome == "stuck"


@pytest.mark.parametrize(
    ("faults", "outcome"),
    [(("budget",), "budget_exhausted"), (("model", "model"), "infra_error"), (("malformed",), None)],
)
def test_a_round_with_only_faults_may_end_the_run(
    faults: tuple[ProposalFault, ...], outcome: str | None
) -> None:
    progress = Progress(kind="write", round=1, attempts=(make_attempt("a", 0),), faults=faults)
    assert decide(progress, ADAPTIVE)[0].outcome == outcome


def test_a_refused_call_ends_the_run_with_its_limit_as_the_reason() -> None:
    refusal = Reason(code="next_call_over_budget", detail="too many tokens", fault="tokens", limit=9)
    progress = Progress(
        kind="write", round=1, attempts=(make_attempt("a", 0),), faults=("budget",), last_refusal=refusal
    )
    assert decide(progress, ADAPTIVE)[0].reason == refusal


def test_a_regression_loses_to_the_code_it_started_from() -> None:
    base = replace(BASE, passed=2)
    worse = replace(make_attempt("a", 0, passed=9), regressed=1)
    assert find_best([base, worse]) is base


def test_of_candidates_that_pass_the_smallest_change_wins() -> None:
    base = replace(BASE, passed=2)
    long = replace(make_attempt("a", 0, passed=9), failed=0, changed_lines=12)
    short = replace(make_attempt("b", 1, passed=9), failed=0, changed_lines=2)
    assert find_best([base, long, short]) is short
    assert find_best([base, replace(long, rank=1), short]) == replace(long, rank=1)
    # Before a candidate passes, a small change is no merit.
    failing = [replace(attempt, failed=1) for attempt in (long, short)]
    assert find_best([base, *failing]) is failing[0]


attempts = st.builds(
    Attempt,
    candidate=st.text("abcdef", min_size=1, max_size=3),
    origin=st.just("sample"),
    round=st.integers(0, 6),
    start=st.integers(0, 6),
    depth=st.integers(0, 3),
    passed=st.integers(0, 4),
    failed=st.integers(0, 4),
    regressed=st.integers(0, 2),
    signature=st.text("xyz", max_size=1),
)


@given(
    kind=st.sampled_from(["write", "heal"]),
    round=st.integers(0, 9),
    history=st.lists(attempts, max_size=8),
    attempts_left=st.one_of(st.none(), st.integers(0, 5)),
)
def test_the_policy_always_decides_valid_moves_within_the_attempts(
    kind: TaskKind, round: int, history: list[Attempt], attempts_left: int | None
) -> None:
    known = ([BASE] if kind == "heal" else []) + [attempt for attempt in history if attempt.round < round]
    moves = decide(
        Progress(kind=kind, round=round, attempts=tuple(known), attempts_left=attempts_left), ADAPTIVE
    )
    stops = [move for move in moves if move.kind == "stop"]

    assert moves
    assert stops == ([] if len(stops) == 0 else list(moves[:1]))
    assert all(stop.outcome for stop in stops)
    if not stops and attempts_left is not None:
        assert len(moves) <= attempts_left
    parents = {move.parent for move in moves if move.parent}
    assert parents <= {attempt.candidate for attempt in known}


@given(history=st.lists(attempts, max_size=8), rounds=st.integers(0, 9))
def test_stuck_detection_counts_rounds(history: list[Attempt], rounds: int) -> None:
    known = [attempt for attempt in history if attempt.round < rounds]
    assert 0 <= count_rounds_without_new_code(known, rounds) <= rounds
    assert 0 <= count_rounds_with_same_failure(known, rounds) <= max(0, rounds - 1)


def test_every_recipe_loads_and_an_unknown_one_is_a_usage_error() -> None:
    for name in list_recipes():
        assert load_recipe(LoopSettings(recipe=name), 0.8).name == name
    with pytest.raises(UsageError, match="greedy"):
        load_recipe(LoopSettings(recipe="greedyy"), 0.8)


@pytest.mark.parametrize(
    ("recipe", "attempts", "round", "move"),
    [
        (ADAPTIVE, 1, 1, "sample"),  # one more version, because a person learns most where two differ
        (ADAPTIVE, 2, 2, "ask"),
        (ADAPTIVE, 1, 2, "ask"),  # the second reply was unusable, or the same code
        (GREEDY, 1, 1, "ask"),
    ],
)
def test_a_person_is_asked_about_results_if_nothing_else_says_what_is_right(
    recipe: Recipe, attempts: int, round: int, move: str
) -> None:
    written = tuple(make_attempt(f"c{number}", number, failed=0) for number in range(attempts))
    progress = Progress(kind="write", round=round, attempts=written, checks=0, samples_asked=attempts)
    decided = decide(replace(progress, asks_for_examples=True), recipe)
    assert [chosen.kind for chosen in decided] == [move]
    assert decide(progress, recipe)[0].reason == Reason(code="no_trusted_check")
