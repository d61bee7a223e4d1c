"""The moves that the baseline recipes allow."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suture.core.records import Move
from suture.core.settings import LoopSettings
from suture.errors import UsageError
from suture.loop.policy.attempts import Attempt, Progress, find_best
from suture.loop.policy.next_moves import decide
from suture.loop.recipes.recipe_files import load_recipe


def recipe_settings(name: str) -> LoopSettings:
    return LoopSettings(recipe=name)


def make_attempt(name: str, round: int, passed: int = 0, signature: str = "") -> Attempt:
    return Attempt(
        candidate=name,
        origin="sample",
        round=round,
        start=round,
        passed=passed,
        failed=1,
        signature=signature or name,
    )


histories = st.lists(
    st.builds(make_attempt, st.text("abcdef", min_size=1, max_size=3), st.integers(0, 9), st.integers(0, 3)),
    max_size=8,
)


def decide_moves(
    recipe: str, history: list[Attempt], rounds: int, attempts_left: int | None = None
) -> tuple[Move, ...]:
    known = tuple(
        sorted((attempt for attempt in history if attempt.round < rounds), key=lambda attempt: attempt.round)
    )
    progress = Progress(kind="write", round=rounds, attempts=known, attempts_left=attempts_left)
    return decide(progress, load_recipe(recipe_settings(recipe), 0.8))


@given(history=histories, rounds=st.integers(0, 12))
def test_best_of_k_only_samples(history: list[Attempt], rounds: int) -> None:
    assert {move.kind for move in decide_moves("best_of_k", history, rounds)} == {"sample"}


@given(history=histories, rounds=st.integers(1, 12))
def test_always_repair_repairs_the_best_and_never_samples_again(history: list[Attempt], rounds: int) -> None:
    known = [
        attempt for attempt in sorted(history, key=lambda attempt: attempt.round) if attempt.round < rounds
    ]
    (move,) = decide_moves("always_repair", history, rounds)
    best = find_best(known)
    assert (move.kind, move.parent) == (("repair", best.candidate) if best else ("sample", None))


@given(history=histories, rounds=st.integers(1, 12))
def test_reflexion_continues_from_the_last_reply(history: list[Attempt], rounds: int) -> None:
    known = [
        attempt for attempt in sorted(history, key=lambda attempt: attempt.round) if attempt.round < rounds
    ]
    (move,) = decide_moves("reflexion", history, rounds)
    assert move.parent == (known[-1].candidate if known else None)


@pytest.mark.parametrize("name", ["best_of_k", "always_repair", "reflexion"])
@given(history=histories, rounds=st.integers(1, 40))
def test_only_the_budget_ends_a_baseline(name: str, history: list[Attempt], rounds: int) -> None:
    assert decide_moves(name, history, rounds)[0].kind != "stop"
    (stop,) = decide_moves(name, history, rounds, attempts_left=0)
    assert stop.outcome == "budget_exhausted"


def test_a_repair_is_sampled_after_a_greedy_one_without_new_code() -> None:
    history = [make_attempt("a", 0)]
    (greedy,) = decide_moves("always_repair", history, 1)
    (sampled,) = decide_moves("always_repair", history, 2)
    assert (greedy.temperature, sampled.temperature) == (0.0, 0.8)


def test_a_recipe_may_be_a_users_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('summary = "Wide."\nsamples = 9\n')
    recipe = load_recipe(recipe_settings(str(path)), 0.8)
    assert (recipe.name, recipe.samples, recipe.repair_rounds) == ("mine", 9, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sample = 9", "no key 'sample'; did you mean 'samples'"),
        ("samples = 0", "samples = 0"),
        ('repair_of = "worst"', "repair_of = 'worst'"),
        ("samples = ", "not valid TOML"),
    ],
)
def test_an_invalid_recipe_is_a_usage_error(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        load_recipe(recipe_settings(str(path)), 0.8)


def test_a_missing_recipe_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.toml"):
        load_recipe(recipe_settings(str(tmp_path / "nowhere.toml")), 0.8)
