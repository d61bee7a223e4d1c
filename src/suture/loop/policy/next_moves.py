"""What to do next: a pure function of the progress so far. No clock, no model, no chance.

The order follows what is known of small models: sample and select before repairing, repair from facts for at
most two rounds in one lineage, then start afresh (see docs/loop.md for the sources).
"""

from __future__ import annotations

from suture.core.records import Move, Outcome
from suture.loop.policy.progress import Attempt, Progress, best_of
from suture.loop.policy.stuck import circling, rounds_without_gain
from suture.loop.recipes.schema import Recipe, Way

ENOUGH_TO_COMPARE = 5
"""Candidates without which generated tests earn no trust, where there are no others."""

NOBODY_TO_ASK = "no repair was found without a model, and none is to be asked (model.name = none)"


def decide(progress: Progress, recipe: Recipe) -> tuple[Move, ...]:
    """The moves of the next round; a single `stop` ends the run."""
    stop = _end(progress, recipe)
    if stop is not None:
        return stop
    if progress.round == 0 and progress.may_search and recipe.mutate:
        return (Move(kind="mutate", reason="the cheapest repair first"),)
    if progress.proposer or recipe.agent == "alone" or _agent_is_next(progress, recipe):
        return _agents_turn(progress, recipe)
    if not progress.may_ask:
        return _given_up(progress, "not_healed", NOBODY_TO_ASK)
    stronger = escalation(progress, recipe)
    if _wants_opinions(progress, recipe):
        moves = _fresh(progress, recipe, recipe.second_opinions, greedy=False, why="second opinions")
    elif progress.round == 0 or (stronger and recipe.fresh):
        moves = _fresh(progress, recipe, recipe.opening, greedy=True, why=stronger)
    else:
        moves = _next_round(progress, recipe)
    return _within_budget(moves, progress, recipe)


def next_parent(progress: Progress, recipe: Recipe) -> Attempt | None:
    """The candidate that the next round would mend, whatever its diagnosis; `None` for a fresh start."""
    if progress.round == 0 or _end(progress, recipe) is not None:
        return None
    starts_afresh = _wants_opinions(progress, recipe) or (escalation(progress, recipe) and recipe.fresh)
    return None if starts_afresh else _parent(progress, recipe)


def escalation(progress: Progress, recipe: Recipe) -> str:
    """Why a stronger model takes over from the coder in the next round; empty where it does not.

    It does once, where the user named one: when the run is stuck, and in place of the fresh start after the
    first lineage that has had its repairs. From there on a run is judged as if it had begun then.
    """
    if not progress.may_escalate or progress.round == 0 or _end(progress, recipe) is not None:
        return ""
    if _wants_opinions(progress, recipe):
        return ""
    if stuck := _stuck(progress, recipe):
        return stuck
    return "the repairs of a lineage did not suffice" if _is_used_up(progress, recipe) else ""


def _is_used_up(progress: Progress, recipe: Recipe) -> bool:
    """Whether a lineage has had its repairs, and the next would be a fresh start."""
    repaired = max((t.depth for t in progress.tried), default=0) >= recipe.repair_rounds > 0
    starts_afresh = recipe.fresh and not _is_nudged(progress)
    return repaired and starts_afresh and _parent(progress, recipe) is None


def _agent_is_next(progress: Progress, recipe: Recipe) -> bool:
    """Whether a model that works with tools does so now: it sees more than a repair, and costs far more."""
    if recipe.agent != "last" or not (progress.may_work and progress.may_ask) or progress.kind != "heal":
        return False
    if progress.may_escalate or progress.agents_asked >= recipe.agent_turns or progress.round == 0:
        return False
    if progress.agents_asked:
        return not progress.faults
    return bool(_stuck(progress, recipe)) or _is_used_up(progress, recipe)


def _end(progress: Progress, recipe: Recipe) -> tuple[Move, ...] | None:
    """Why the run is at its end; `None` where it is not."""
    best = progress.best
    if _wants_opinions(progress, recipe):
        return None
    if best is not None and best.solved and not _is_sent_back(progress, recipe):
        if best.origin == "user":
            return _stop("nothing_to_heal", "every test passes as it is")
        return _stop("healed", "every trusted check passes" + _despite(best))
    if progress.not_code:
        return _stop("not_a_code_fault", progress.not_code)
    if progress.kind == "heal" and progress.tried[0].failed == 0:
        return _stop("not_healed", "no test decides: all of them are skipped")
    return _no_further(progress, recipe) if progress.round else None


def _no_further(progress: Progress, recipe: Recipe) -> tuple[Move, ...] | None:
    best, rounds = progress.best, progress.round
    if progress.faults and set(progress.faults) == {"budget"}:
        return _given_up(progress, "budget_exhausted", "the next model call could exceed the budget")
    if progress.faults and set(progress.faults) <= {"budget", "model"}:
        return _given_up(progress, "infra_error", f"the model could not be asked: {progress.last_fault}")
    if progress.checks == 0 and best is not None:
        may_earn = (
            progress.untrusted and len(progress.tried) < ENOUGH_TO_COMPARE and rounds < ENOUGH_TO_COMPARE
        )
        if not may_earn:
            return _stop("not_healed", "there is no check to trust: the code is returned unverified")
    if recipe.max_rounds is not None and rounds >= recipe.max_rounds:
        return _given_up(
            progress, "not_healed", f"recipe {recipe.name} gives up after {recipe.max_rounds} round(s)"
        )
    stuck = _stuck(progress, recipe)
    goes_on = progress.may_escalate and not (best is not None and best.solved)
    goes_on = goes_on or _agent_is_next(progress, recipe)
    return _given_up(progress, "stuck", stuck) if stuck and not goes_on else None


def _stuck(progress: Progress, recipe: Recipe) -> str:
    """Why the model that draws now will hardly get further; empty where it may."""
    tried, rounds, since = progress.tried, progress.round, progress.escalated
    if recipe.detect_stuck and circling(tried, rounds, since) == "stuck":
        return "the last rounds brought nothing new"
    if (
        recipe.patience is not None
        and min(rounds_without_gain(tried, rounds), rounds - since) >= recipe.patience
    ):
        return f"no better candidate in {recipe.patience} round(s)"
    return ""


def _is_sent_back(progress: Progress, recipe: Recipe) -> bool:
    """Whether a critic's doubt about code that passes is still worth a round: never more than a few."""
    best = progress.best
    if best is None or not best.sent_back:
        return False
    first = min(t.round for t in progress.tried if t.solved)
    return progress.round - 1 - first < recipe.rejections


def _wants_opinions(progress: Progress, recipe: Recipe) -> bool:
    """Whether a written program has just passed, and nobody has yet asked what else would be written."""
    best = progress.best
    if not recipe.second_opinions or progress.kind != "write" or best is None or not best.solved:
        return False
    first = min(t.round for t in progress.tried if t.solved)
    return progress.round == first + 1 and progress.attempts_left != 0


def _despite(best: Attempt) -> str:
    return "; the critic still does not like it, and decides nothing" if best.sent_back else ""


def _next_round(progress: Progress, recipe: Recipe) -> list[Move]:
    parent, nudged = _parent(progress, recipe), _is_nudged(progress)
    if parent is None:
        return _fresh(progress, recipe, recipe.samples, greedy=False, nudge=nudged)
    if parent.confidence < recipe.least_confidence and recipe.fresh:
        return _fresh(
            progress, recipe, recipe.samples, greedy=False, why="nobody is sure why it fails: other samples"
        )
    return _repairs(progress, recipe, parent, recipe.repair_width, greedy=not nudged)


def _is_nudged(progress: Progress) -> bool:
    return progress.declined or circling(progress.tried, progress.round, progress.escalated) != "no"


def _parent(progress: Progress, recipe: Recipe) -> Attempt | None:
    best = progress.best
    if best is None:
        return None
    if best.sent_back and best.solved:
        return best
    if not recipe.fresh:
        return progress.tried[-1] if recipe.repair_of == "last" else best
    return None if _is_nudged(progress) else _repairable(progress, recipe)


def _repairable(progress: Progress, recipe: Recipe) -> Attempt | None:
    """A candidate of the newest lineage, unless that has had its repairs."""
    newest = max(t.start for t in progress.tried)
    lineage = [t for t in progress.tried if t.start == newest]
    is_opening = newest < 0 or (newest == 0 and not recipe.repair_opening)
    if is_opening or max(t.depth for t in lineage) >= recipe.repair_rounds:
        return None
    return lineage[-1] if recipe.repair_of == "last" else best_of(lineage)


def _fresh(
    progress: Progress, recipe: Recipe, count: int, *, greedy: bool, nudge: bool = False, why: str = ""
) -> list[Move]:
    if progress.kind == "heal" and progress.tried:
        return _repairs(progress, recipe, progress.tried[0], count, greedy=greedy)
    reason = why or (
        "nothing new came: other samples" if nudge else "greedy first" if greedy else "fresh samples"
    )
    first = progress.samples_asked
    return [
        _sample(first + number, 0.0 if greedy and number == 0 else recipe.temperature, reason)
        for number in range(count)
    ]


def _sample(index: int, temperature: float, reason: str) -> Move:
    return Move(kind="sample", temperature=temperature, index=index, reason=reason)


def _repairs(progress: Progress, recipe: Recipe, parent: Attempt, count: int, *, greedy: bool) -> list[Move]:
    """Repairs of one candidate, each in another way; a diagnosis says which way comes first."""
    ways = _ways(recipe, parent, skip=0 if greedy else 1)
    samples, repairs = progress.samples_asked, progress.repairs_asked
    moves: list[Move] = []
    for number in range(count):
        way = ways[number % len(ways)]
        if way == "fresh" and progress.kind == "write":
            moves.append(_sample(samples, recipe.temperature, "a fresh one beside the repairs"))
            samples += 1
            continue
        moves.append(
            Move(
                kind="repair",
                parent=parent.candidate,
                strategy="restructure" if way == "fresh" else way,
                temperature=0.0 if greedy and number == 0 else recipe.temperature,
                index=repairs,
                reason=_why_repair(parent),
            )
        )
        repairs += 1
    return moves


def _why_repair(parent: Attempt) -> str:
    return "the critic sends it back" if parent.solved else f"repair from facts ({parent.failed} failing)"


def _ways(recipe: Recipe, parent: Attempt, *, skip: int) -> tuple[Way, ...]:
    first = skip % len(recipe.strategies)
    ways = (*recipe.strategies[first:], *recipe.strategies[:first])
    advised = parent.advised
    return ways if advised is None or skip else (advised, *(way for way in ways if way != advised))


def _agents_turn(progress: Progress, recipe: Recipe) -> tuple[Move, ...]:
    """One more turn of an agent on the best that there is; the end where the last changed nothing."""
    turns, who = (
        (progress.proposer, "the proposer") if progress.proposer else (recipe.agent_turns, "the agent")
    )
    if not (progress.proposer or progress.may_ask):
        return _given_up(progress, "not_healed", NOBODY_TO_ASK)
    if progress.agents_asked and progress.faults:
        return _given_up(progress, "not_healed", progress.last_fault.strip("'\""))
    if progress.agents_asked >= turns:
        return _given_up(progress, "not_healed", f"{who} has had its {turns} turn(s)")
    best = progress.best
    move = Move(
        kind="agent",
        parent=best.candidate if best else None,
        index=progress.agents_asked,
        reason=f"turn {progress.agents_asked + 1} of {turns}"
        + (f" ({best.failed} failing)" if best is not None else ""),
    )
    return _within_budget([move], progress, recipe)


def _within_budget(moves: list[Move], progress: Progress, recipe: Recipe) -> tuple[Move, ...]:
    left = progress.attempts_left
    if recipe.attempt_limit is not None:
        own = max(0, recipe.attempt_limit - progress.attempts_used)
        left = own if left is None else min(left, own)
    moves = moves if left is None else moves[:left]
    return tuple(moves) if moves else _given_up(progress, "budget_exhausted", "no attempts are left")


def _given_up(progress: Progress, outcome: Outcome, reason: str) -> tuple[Move, ...]:
    """The end without what was wanted; code that passes and only a critic dislikes is healed all the same."""
    best = progress.best
    if best is not None and best.solved and best.origin != "user":
        return _stop("healed", "every trusted check passes" + _despite(best))
    return _stop(outcome, reason)


def _stop(outcome: Outcome, reason: str) -> tuple[Move, ...]:
    return (Move(kind="stop", outcome=outcome, reason=reason),)
