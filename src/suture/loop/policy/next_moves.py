"""Decide the next moves: a pure function of the progress so far and the recipe.

A capable model holds one conversation, and another one only where that stalls. For other models the order follows
what is known of small ones: sample and select before repairing, repair from facts for at most two rounds in one
lineage, then start again (see docs/loop.md for the sources).
"""

from __future__ import annotations

from suture.core.records import FLAKY_CAUSES, Move, Outcome, Reason, ReasonNote
from suture.loop.policy.attempts import (
    Attempt,
    Progress,
    count_rounds_without_gain,
    detect_stagnation,
    find_best,
)
from suture.loop.recipes.recipe_schema import Recipe, RepairApproach
from suture.loop.tuning import MIN_CANDIDATES_TO_COMPARE


def decide(progress: Progress, recipe: Recipe) -> tuple[Move, ...]:
    """Return the moves of the next round; a single `stop` ends the run."""
    if _needs_examples(progress, recipe):
        return (Move(kind="ask"),)
    if progress.cause in FLAKY_CAUSES and not progress.is_investigated:
        return (Move(kind="investigate"),)
    stop = _find_end(progress, recipe)
    if stop is not None:
        return stop
    if progress.program_turns:
        return (Move(kind="gate", reason=Reason(code="judged_program", count=progress.program_turns)),)
    # A trial of the search says little about a test that passes by chance.
    if progress.round == 0 and progress.can_search and recipe.mutate and progress.cause is None:
        return (Move(kind="mutate", reason=Reason(code="cheapest_first")),)
    escalation = find_escalation(progress, recipe)
    hands_over = escalation is not None and recipe.agent == "auto" and progress.is_escalation_capable
    if hands_over or _is_agents_turn(progress, recipe):
        return _agent_turn(progress, recipe)
    if not progress.has_model:
        return _stop_without_success(progress, "not_healed", _find_missing_model_reason(progress))
    if _wants_second_version(progress, recipe):
        moves = _fresh_start(progress, recipe, 1, greedy=False, reason=Reason(code="second_opinions"))
    elif progress.round == 0 or (escalation and recipe.fresh):
        moves = _fresh_start(progress, recipe, recipe.opening, greedy=True, reason=escalation)
    else:
        moves = _next_round(progress, recipe)
    return _within_budget(moves, progress, recipe)


def next_parent(progress: Progress, recipe: Recipe) -> Attempt | None:
    """Return the candidate that the next round would repair, whatever its diagnosis says; `None` if it would
    start afresh.
    """
    if progress.round == 0 or _find_end(progress, recipe) is not None:
        return None
    starts_fresh = find_escalation(progress, recipe) and recipe.fresh
    return None if starts_fresh else _find_parent(progress, recipe)


def _needs_examples(progress: Progress, recipe: Recipe) -> bool:
    """Return whether a person is asked now which results of the code are right, because nothing else says so."""
    best = progress.best
    has_code = best is not None and not best.blocked
    return progress.asks_for_examples and has_code and not _wants_second_version(progress, recipe)


def _wants_second_version(progress: Progress, recipe: Recipe) -> bool:
    """Return whether one more version is requested before a person is asked which results are right.

    Where two versions differ, the person's answer says most. A conversation is not repeated for this.
    """
    may_go_on = progress.attempts_left != 0 and (
        recipe.max_rounds is None or progress.round < recipe.max_rounds
    )
    is_first = progress.round == 1 and len(progress.attempts) == 1 and not progress.faults
    is_wanted = progress.asks_for_examples and not progress.asks_at_once
    return is_wanted and is_first and may_go_on and not _converses(progress, recipe)


def find_escalation(progress: Progress, recipe: Recipe) -> Reason | None:
    """Return why a stronger model takes over from the coder in the next round; `None` if it does not.

    It takes over once, if the user named one: when the run is stuck, or in place of the fresh start after the
    first lineage that has had its repairs. From then on, only the rounds of the stronger model count when
    stagnation is detected.
    """
    if not progress.can_escalate or progress.round == 0 or _find_end(progress, recipe) is not None:
        return None
    if (missing := _missing_answer(progress)) is not None:
        return missing
    if _converses(progress, recipe):
        return _find_end_of_turns(progress, recipe.agent_turns)
    if stuck := _find_stuck_reason(progress, recipe):
        return stuck
    return Reason(code="repairs_exhausted") if _has_exhausted_lineage(progress, recipe) else None


def _has_exhausted_lineage(progress: Progress, recipe: Recipe) -> bool:
    """Return whether a lineage has had its repairs, so that a fresh start would come next."""
    deepest = max((attempt.depth for attempt in progress.attempts), default=0)
    starts_fresh = recipe.fresh and not _is_nudged(progress)
    return deepest >= recipe.repair_rounds > 0 and starts_fresh and _find_parent(progress, recipe) is None


def _converses(progress: Progress, recipe: Recipe) -> bool:
    """Return whether the model works in conversations from the start, because it is capable or the recipe says so."""
    return progress.has_model and (
        recipe.agent == "alone" or (recipe.agent == "auto" and progress.is_capable)
    )


def _is_agents_turn(progress: Progress, recipe: Recipe) -> bool:
    """Return whether the model works in a conversation now: from the start, or because repairs have not helped.

    It sees more there than in a repair. A small model needs many more tokens for it.
    """
    if _converses(progress, recipe):
        return True
    if recipe.agent != "auto" or not (progress.can_use_tools and progress.has_model):
        return False
    if progress.kind != "heal" or progress.can_escalate or progress.round == 0:
        return False
    if progress.agents_asked:
        return progress.agents_asked < recipe.agent_turns and not progress.faults
    return _find_stuck_reason(progress, recipe) is not None or _has_exhausted_lineage(progress, recipe)


def _find_end(progress: Progress, recipe: Recipe) -> tuple[Move, ...] | None:
    """Return the move that ends the run; `None` if the run continues."""
    best = progress.best
    if best is not None and best.solved and not _is_worth_another_round(progress, recipe):
        if best.origin == "user":
            is_feature = progress.program_turns and progress.has_statement
            return None if is_feature else _stop("nothing_to_heal", Reason(code="baseline_passes"))
        return _stop_healed(best)
    if progress.cause is not None and not progress.may_repair_flaky:
        return _stop("not_a_code_fault", Reason(code="not_a_code_fault", detail=progress.cause_detail))
    # The first attempt of a `heal` run is the user's own code. If nothing fails, it is not solved only because no
    # check passed either: every test was skipped.
    if progress.kind == "heal" and progress.attempts[0].failed == 0:
        return _stop("not_healed", Reason(code="all_tests_skipped"))
    return _find_dead_end(progress, recipe) if progress.round else None


def _find_dead_end(progress: Progress, recipe: Recipe) -> tuple[Move, ...] | None:
    """Return the move that ends a run without success; `None` if the run continues."""
    best, rounds = progress.best, progress.round
    faults = set(progress.faults)
    if faults == {"budget"}:
        refusal = progress.last_refusal or Reason(code="next_call_over_budget")
        return _stop_without_success(progress, "budget_exhausted", refusal)
    if (missing := _missing_answer(progress)) is not None:
        return None if progress.can_escalate else _stop_without_success(progress, "stuck", missing)
    if faults and faults <= {"budget", "model", "no_answer"}:
        reason = Reason(code="model_unavailable", detail=progress.last_fault_message)
        return _stop_without_success(progress, "infra_error", reason)
    if progress.checks == 0 and best is not None:
        # Without deciding checks the run continues while generated tests may still earn trust from candidates.
        tests_may_earn_trust = (
            progress.has_untrusted_tests
            and len(progress.attempts) < MIN_CANDIDATES_TO_COMPARE
            and rounds < MIN_CANDIDATES_TO_COMPARE
        )
        if not tests_may_earn_trust and not _wants_second_version(progress, recipe):
            return _stop("not_healed", Reason(code="no_trusted_check"))
    if recipe.max_rounds is not None and rounds >= recipe.max_rounds:
        reason = Reason(code="max_rounds", detail=recipe.name, count=recipe.max_rounds)
        return _stop_without_success(progress, "not_healed", reason)
    stuck = _find_stuck_reason(progress, recipe)
    if stuck is None:
        return None
    escalates = progress.can_escalate and not (best is not None and best.solved)
    if escalates or _is_agents_turn(progress, recipe):
        return None
    return _stop_without_success(progress, "stuck", stuck)


def _find_missing_model_reason(progress: Progress) -> Reason:
    """Return why a run without a model ends: nothing was searched, or what was found is not enough."""
    if not progress.has_searched:
        return Reason(code="no_search")
    found = sum(attempt.origin in ("mutation", "fix") for attempt in progress.attempts)
    return Reason(code="no_model", count=found)


def _missing_answer(progress: Progress) -> Reason | None:
    """Return why the model should not be asked again: it refuses, or thinks until its limit; `None` if it answers."""
    faults = set(progress.faults)
    if "no_answer" not in faults or not faults <= {"budget", "no_answer"}:
        return None
    # `Attempt.fault_message` comes from `ascii()`, which puts it in quotes.
    return Reason(code="no_answer", detail=progress.last_fault_message.strip("'\""))


def _find_stuck_reason(progress: Progress, recipe: Recipe) -> Reason | None:
    """Return why the current model is unlikely to get further; `None` if it may."""
    attempts, rounds, since = progress.attempts, progress.round, progress.escalated
    if recipe.detect_stuck and detect_stagnation(attempts, rounds, since) == "stuck":
        return Reason(code="no_new_code")
    if recipe.patience is not None:
        without_gain = min(count_rounds_without_gain(attempts, rounds), rounds - since)
        if without_gain >= recipe.patience:
            return Reason(code="no_progress", count=recipe.patience)
    return None


def _is_worth_another_round(progress: Progress, recipe: Recipe) -> bool:
    """Return whether a critic's objection to code that passes gets another round; only a few do.

    It does not if the coder has considered the objection and left the code as it is.
    """
    best = progress.best
    if best is None or not best.sent_back or set(progress.faults) == {"unchanged"}:
        return False
    rounds_since_solved = progress.round - 1 - _first_solved_round(progress)
    return rounds_since_solved < recipe.rejections


def _first_solved_round(progress: Progress) -> int:
    return min(attempt.round for attempt in progress.attempts if attempt.solved)


def _stop_healed(best: Attempt) -> tuple[Move, ...]:
    notes: tuple[ReasonNote, ...] = ("critic_objects",) if best.sent_back else ()
    return _stop("healed", Reason(code="checks_pass", notes=notes))


def _next_round(progress: Progress, recipe: Recipe) -> list[Move]:
    """Return repairs of the next candidate to repair, or a fresh start."""
    parent, nudged = _find_parent(progress, recipe), _is_nudged(progress)
    if parent is None:
        reason = Reason(code="no_new_code") if nudged else None
        return _fresh_start(progress, recipe, recipe.samples, greedy=False, reason=reason)
    if parent.confidence < recipe.least_confidence and recipe.fresh:
        reason = Reason(code="uncertain_diagnosis")
        return _fresh_start(progress, recipe, recipe.samples, greedy=False, reason=reason)
    return _repairs(progress, recipe, parent, recipe.repair_width, greedy=not nudged)


def _is_nudged(progress: Progress) -> bool:
    """Return whether the run has to change its approach: a person rejected it, or it goes in circles."""
    stagnation = detect_stagnation(progress.attempts, progress.round, progress.escalated)
    return progress.rejected_last or stagnation != "no"


def _find_parent(progress: Progress, recipe: Recipe) -> Attempt | None:
    """Return the candidate to repair next; `None` for a fresh start."""
    best = progress.best
    if best is None:
        return None
    if best.sent_back and best.solved:
        return best
    if not recipe.fresh:
        return progress.attempts[-1] if recipe.repair_of == "last" else best
    if _is_nudged(progress):
        return None
    # A candidate of the newest lineage, unless that lineage has had its repairs.
    newest_start = max(attempt.start for attempt in progress.attempts)
    lineage = [attempt for attempt in progress.attempts if attempt.start == newest_start]
    # Before round 0 there is only the user's own code and what the search found: no lineage of a model.
    has_no_lineage = newest_start < 0
    is_unrepaired_opening = newest_start == 0 and not recipe.repair_opening
    if (
        has_no_lineage
        or is_unrepaired_opening
        or max(attempt.depth for attempt in lineage) >= recipe.repair_rounds
    ):
        return None
    return lineage[-1] if recipe.repair_of == "last" else find_best(lineage)


def _fresh_start(
    progress: Progress, recipe: Recipe, count: int, *, greedy: bool, reason: Reason | None
) -> list[Move]:
    """Return the moves of a fresh start: samples, or repairs of the user's own code."""
    if progress.kind == "heal" and progress.attempts:
        # The user's own code, or what the fixes of linters have made of it.
        starts = [attempt for attempt in progress.attempts if attempt.origin in ("user", "fix")]
        return _repairs(progress, recipe, find_best(starts) or progress.attempts[0], count, greedy=greedy)
    reason = reason or Reason(code="greedy_first" if greedy else "fresh_samples")
    return [
        _sample(
            progress.samples_asked + number,
            0.0 if greedy and number == 0 else recipe.temperature,
            reason,
        )
        for number in range(count)
    ]


def _sample(index: int, temperature: float, reason: Reason) -> Move:
    return Move(kind="sample", temperature=temperature, index=index, reason=reason)


def _repairs(progress: Progress, recipe: Recipe, parent: Attempt, count: int, *, greedy: bool) -> list[Move]:
    """Return repairs of one candidate, each with another approach."""
    approaches = _order_approaches(recipe, parent, greedy=greedy)
    reason = Reason(code="failing_checks", count=parent.failed)
    if parent.solved:
        reason = Reason(code="critic_objects")
    sample_index, repair_index = progress.samples_asked, progress.repairs_asked
    moves: list[Move] = []
    for number in range(count):
        approach = approaches[number % len(approaches)]
        if approach == "fresh" and progress.kind == "write":
            moves.append(_sample(sample_index, recipe.temperature, Reason(code="fresh_beside_repairs")))
            sample_index += 1
            continue
        moves.append(
            Move(
                kind="repair",
                parent=parent.candidate,
                strategy="restructure" if approach == "fresh" else approach,
                temperature=0.0 if greedy and number == 0 else recipe.temperature,
                index=repair_index,
                reason=reason,
            )
        )
        repair_index += 1
    return moves


def _order_approaches(recipe: Recipe, parent: Attempt, *, greedy: bool) -> tuple[RepairApproach, ...]:
    """Return the approaches in the order in which repairs take them.

    Greedy repairs begin with what a diagnosis advises. Others begin with the second approach of the recipe, so
    that a run that goes in circles changes its approach.
    """
    if not greedy:
        return (*recipe.strategies[1:], recipe.strategies[0])
    advised = parent.advised_strategy
    if advised is None:
        return recipe.strategies
    return (advised, *(approach for approach in recipe.strategies if approach != advised))


def _agent_turn(progress: Progress, recipe: Recipe) -> tuple[Move, ...]:
    """Return one more turn of an agent on the best candidate; the end if no other turn is worth it."""
    if not progress.has_model:
        return _stop_without_success(progress, "not_healed", _find_missing_model_reason(progress))
    escalation = find_escalation(progress, recipe)
    end = _find_end_of_turns(progress, recipe.agent_turns)
    if end is not None and escalation is None and progress.attempts_left != 0:
        return _stop_without_success(progress, "not_healed", end)
    best = progress.best
    number = progress.agents_asked + 1
    move = Move(
        kind="agent",
        parent=best.candidate if best else None,
        # The same greedy reply would only begin the same conversation again.
        temperature=recipe.temperature if progress.agents_asked and not escalation else 0.0,
        index=progress.agents_asked,
        reason=escalation or Reason(code="agent_turn", count=number, limit=max(recipe.agent_turns, number)),
    )
    return _within_budget([move], progress, recipe)


def _find_end_of_turns(progress: Progress, turns: int) -> Reason | None:
    """Return why an agent gets no other turn; `None` if it may have one. A stronger model has its own turns."""
    if not progress.agents_asked:
        return None
    if progress.faults:
        # `Attempt.fault_message` comes from `ascii()`, which puts it in quotes.
        return Reason(code="agent_failed", detail=progress.last_fault_message.strip("'\""))
    if progress.agents_asked >= turns * (2 if progress.escalated else 1):
        return Reason(code="turns_used", detail="agent", count=progress.agents_asked)
    return None


def _within_budget(moves: list[Move], progress: Progress, recipe: Recipe) -> tuple[Move, ...]:
    """Return as many of the moves as there are attempts left; the end of the run if there are none."""
    left = progress.attempts_left
    if recipe.attempt_limit is not None:
        recipe_left = max(0, recipe.attempt_limit - progress.attempts_used)
        left = recipe_left if left is None else min(left, recipe_left)
    moves = moves if left is None else moves[:left]
    if moves:
        return tuple(moves)
    limit = progress.attempts_used if progress.attempts_left == 0 else 0  # otherwise the recipe's
    return _stop_without_success(progress, "budget_exhausted", Reason(code="attempts_used", limit=limit))


def _stop_without_success(progress: Progress, outcome: Outcome, reason: Reason) -> tuple[Move, ...]:
    """End the run without a repair, unless there is code that passes and to which only a critic objects."""
    best = progress.best
    if best is not None and best.solved and best.origin != "user":
        return _stop_healed(best)
    return _stop(outcome, reason)


def _stop(outcome: Outcome, reason: Reason) -> tuple[Move, ...]:
    return (Move(kind="stop", outcome=outcome, reason=reason),)
