"""Controls of the policy: the critic's gate, limits, patience and routing."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from suture.core.settings import LoopSettings
from suture.loop.policy.attempts import (
    Attempt,
    Progress,
    code_fingerprint,
    count_rounds_without_gain,
    detect_stagnation,
    find_best,
)
from suture.loop.policy.next_moves import decide, next_parent
from suture.loop.recipes.recipe_files import list_recipes, load_recipe
from suture.loop.recipes.recipe_schema import Recipe

RECIPES = {name: load_recipe(LoopSettings(recipe=name), 0.8) for name in list_recipes()}
GATED = Recipe(name="gated", rejections=2)


def make_attempt(name: str, round: int, passed: int = 0, failed: int = 1) -> Attempt:
    return Attempt(
        candidate=name,
        origin="sample",
        round=round,
        start=round,
        passed=passed,
        failed=failed,
        signature=name,
        fingerprint=name,
    )


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
    fingerprint=st.text("pq", max_size=2),
    sent_back=st.booleans(),
    confidence=st.floats(0, 1),
    advised_strategy=st.sampled_from([None, "minimal", "guard"]),
    rank=st.integers(0, 3),
)
histories = st.lists(attempts, max_size=8)


def attempts_before(history: list[Attempt], rounds: int) -> tuple[Attempt, ...]:
    return tuple(attempt for attempt in history if attempt.round < rounds)


@given(
    recipe=st.sampled_from(sorted(RECIPES)),
    history=histories,
    rounds=st.integers(0, 9),
    attempts_left=st.integers(0, 5),
)
def test_every_recipe_decides_valid_moves_within_the_attempts(
    recipe: str, history: list[Attempt], rounds: int, attempts_left: int
) -> None:
    known = attempts_before(history, rounds)
    moves = decide(
        Progress(kind="write", round=rounds, attempts=known, attempts_left=attempts_left), RECIPES[recipe]
    )

    assert moves
    assert len([move for move in moves if move.kind == "stop"]) in (0, 1)
    if moves[0].kind != "stop":
        assert len(moves) <= attempts_left
    assert {move.parent for move in moves if move.parent} <= {attempt.candidate for attempt in known}
    indices = [(move.kind, move.index) for move in moves]
    assert len(set(indices)) == len(indices)


@given(recipe=st.sampled_from(sorted(RECIPES)), history=histories, rounds=st.integers(0, 9))
def test_the_policy_is_deterministic(recipe: str, history: list[Attempt], rounds: int) -> None:
    progress = Progress(kind="write", round=rounds, attempts=attempts_before(history, rounds))
    assert decide(progress, RECIPES[recipe]) == decide(progress, RECIPES[recipe])


@given(history=histories, rounds=st.integers(1, 9))
def test_only_code_that_passes_every_deciding_check_is_healed(history: list[Attempt], rounds: int) -> None:
    known = attempts_before(history, rounds)
    for recipe in (*RECIPES.values(), GATED):
        move = decide(Progress(kind="write", round=rounds, attempts=known), recipe)[0]
        if move.outcome == "healed":
            best = find_best(known)
            assert best is not None
            assert best.solved


@given(rejections=st.integers(0, 4))
def test_a_critic_cannot_send_code_back_without_end(rejections: int) -> None:
    recipe = GATED.model_copy(update={"rejections": rejections})
    attempts: list[Attempt] = []
    for number in range(20):
        attempts.append(replace(make_attempt(f"c{number}", number, passed=2, failed=0), sent_back=True))
        move = decide(Progress(kind="write", round=number + 1, attempts=tuple(attempts)), recipe)[0]
        if move.kind == "stop":
            assert (move.outcome, number) == ("healed", rejections)
            return
    raise AssertionError("the run did not end")


@given(history=histories, rounds=st.integers(1, 9))
def test_a_critic_does_not_change_whether_code_passes(history: list[Attempt], rounds: int) -> None:
    known = attempts_before(history, rounds)
    uncriticised = [replace(attempt, sent_back=False) for attempt in known]
    best, best_uncriticised = find_best(known), find_best(uncriticised)
    if best is not None and best_uncriticised is not None:
        assert best.solved == best_uncriticised.solved
        assert (best.regressed, best.passed, best.failed) == (
            best_uncriticised.regressed,
            best_uncriticised.passed,
            best_uncriticised.failed,
        )


def test_low_confidence_leads_to_samples_instead_of_repairs() -> None:
    recipe = GATED.model_copy(update={"repair_opening": True, "least_confidence": 0.5})
    sure = Progress(kind="write", round=1, attempts=(make_attempt("a", 0),))
    unsure = replace(sure, attempts=(replace(sure.attempts[0], confidence=0.1),))
    assert {move.kind for move in decide(sure, recipe)} == {"repair"}
    assert {move.kind for move in decide(unsure, recipe)} == {"sample"}
    assert next_parent(unsure, recipe) is not None


def test_the_debuggers_advised_strategy_comes_first() -> None:
    recipe = GATED.model_copy(update={"repair_opening": True, "repair_width": 3})
    progress = Progress(
        kind="write", round=1, attempts=(replace(make_attempt("a", 0), advised_strategy="guard"),)
    )
    assert [move.strategy for move in decide(progress, recipe)] == ["guard", "minimal", "restructure"]


def test_a_round_of_repairs_may_contain_a_sample() -> None:
    recipe = Recipe(
        name="wide",
        repair_opening=True,
        repair_width=4,
        strategies=("minimal", "restructure", "guard", "fresh"),
    )
    moves = decide(Progress(kind="write", round=1, attempts=(make_attempt("a", 0),)), recipe)
    assert [move.kind for move in moves] == ["repair", "repair", "repair", "sample"]


def test_patience_ends_a_run_without_improvement() -> None:
    recipe = GATED.model_copy(update={"patience": 2, "detect_stuck": False})
    attempts = tuple(make_attempt(f"c{n}", n, passed=1) for n in range(3))
    assert decide(Progress(kind="write", round=2, attempts=attempts[:2]), recipe)[0].kind != "stop"
    assert decide(Progress(kind="write", round=3, attempts=attempts), recipe)[0].outcome == "stuck"


def test_the_recipes_attempt_limit_applies_besides_the_budget() -> None:
    recipe = GATED.model_copy(update={"attempt_limit": 5})
    progress = Progress(kind="write", round=1, attempts=(make_attempt("a", 0),), attempts_left=9)
    assert len(decide(replace(progress, attempts_used=3), recipe)) == 2
    assert decide(replace(progress, attempts_used=5), recipe)[0].outcome == "budget_exhausted"


def test_more_samples_are_drawn_when_all_checks_are_generated() -> None:
    unchecked = Progress(kind="write", round=1, attempts=(make_attempt("a", 0, failed=0),), checks=0)
    assert decide(unchecked, GATED)[0].outcome == "not_healed"
    assert decide(replace(unchecked, has_untrusted_tests=True), GATED)[0].kind == "sample"


@given(history=histories, rounds=st.integers(1, 9))
def test_new_code_that_improves_is_not_stagnation(history: list[Attempt], rounds: int) -> None:
    known = list(attempts_before(history, rounds - 1))
    max_passed = max((attempt.passed for attempt in known), default=0)
    better = replace(make_attempt("new", rounds - 1, passed=max_passed + 1), fingerprint="never seen")
    assert detect_stagnation([*known, better], rounds) == "no"
    assert count_rounds_without_gain([*known, better], rounds) == 0


def test_comments_and_formatting_do_not_change_the_fingerprint() -> None:
    plain = "def f(x):\n    return x\n"
    commented = '"""A module."""\n# a remark\ndef f(x):\n    """It returns x."""\n    return (x)\n'

    assert code_fingerprint({"a.py": plain}) == code_fingerprint({"a.py": commented})
    assert code_fingerprint({"a.py": plain}) != code_fingerprint(
        {"a.py": plain.replace("return x", "return -x")}
    )
    assert code_fingerprint({"a.py": "def f("}) != code_fingerprint({"a.py": "def g("})


def test_repeated_code_leads_to_a_nudge_and_then_to_stuck() -> None:
    first, repeated = make_attempt("a", 0), replace(make_attempt("b", 1), fingerprint="a")
    assert detect_stagnation([first, repeated], 2) == "nudge"
    assert detect_stagnation([first, repeated, replace(repeated, candidate="c", round=2)], 3) == "stuck"


def test_a_critic_grants_failing_code_no_further_repairs() -> None:
    exhausted = replace(make_attempt("c", 3), start=0, depth=GATED.repair_rounds, sent_back=True)
    assert next_parent(Progress(kind="write", round=4, attempts=(exhausted,)), GATED) is None
    passing = replace(exhausted, passed=2, failed=0)
    assert next_parent(Progress(kind="write", round=4, attempts=(passing,)), GATED) == passing
