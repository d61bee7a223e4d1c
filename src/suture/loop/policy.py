"""What to do next: a pure function of the progress so far. No clock, no model, no chance.

The order follows what is known of small models: sample and select before repairing, repair from facts for at
most two rounds in one lineage, then start afresh (see docs/loop.md for the sources).
"""

from __future__ import annotations

from suture.loop.progress import Progress, Tried, best_of
from suture.loop.recipe import Recipe
from suture.loop.stuck import SAME_FAILURE_ROUNDS, barren_rounds, same_failure_rounds
from suture.records import Move, Outcome, Strategy

__all__ = ["decide"]

STRATEGIES: tuple[Strategy, ...] = ("minimal", "restructure", "guard")


def decide(progress: Progress, recipe: Recipe) -> tuple[Move, ...]:
    """The moves of the next round; a single `stop` ends the run."""
    best = progress.best
    if best is not None and best.solved:
        if best.origin == "user":
            return _stop("nothing_to_heal", "every test passes as it is")
        return _stop("healed", "every trusted check passes")
    if progress.kind == "heal" and progress.tried[0].failed == 0:
        return _stop("not_healed", "no test decides: all of them are skipped")
    if progress.not_code:
        return _stop("not_a_code_fault", progress.not_code)
    if progress.round == 0 and progress.may_search and recipe.mutate:
        return (Move(kind="mutate", reason="the cheapest repair first: a search without a model"),)
    if progress.round == 0:
        return _within_budget(_fresh(progress, recipe, recipe.opening, greedy=True), progress)
    if progress.faults and set(progress.faults) == {"budget"}:
        return _stop("budget_exhausted", "the next model call could exceed the budget")
    if progress.faults and set(progress.faults) <= {"budget", "model"}:
        return _stop("infra_error", f"the model could not be asked: {progress.last_fault}")
    if progress.checks == 0 and best is not None:
        return _stop("not_healed", "there is no check to trust: the code is returned unverified")
    if recipe.max_rounds is not None and progress.round >= recipe.max_rounds:
        return _stop("not_healed", f"recipe {recipe.name} gives up after {recipe.max_rounds} round(s)")
    barren = barren_rounds(progress.tried, progress.round)
    circling = barren >= 2 or same_failure_rounds(progress.tried, progress.round) > SAME_FAILURE_ROUNDS
    if circling and recipe.detect_stuck:
        return _stop("stuck", "the last rounds brought nothing new")
    return _within_budget(_next_round(progress, recipe, nudge=barren > 0 or progress.declined), progress)


def _next_round(progress: Progress, recipe: Recipe, *, nudge: bool) -> list[Move]:
    if not recipe.fresh and progress.tried:
        return _go_on_mending(progress, recipe, nudge=nudge)
    parent = None if nudge else _repairable(progress, recipe)
    if parent is not None:
        return _repairs(progress, recipe, parent, recipe.repair_width, greedy=True)
    return _fresh(progress, recipe, recipe.samples, greedy=False, nudge=nudge)


def _go_on_mending(progress: Progress, recipe: Recipe, *, nudge: bool) -> list[Move]:
    """One lineage for ever; a greedy reply that brought nothing new would only come again, so draw then."""
    parent = progress.tried[-1] if recipe.repair_of == "last" else progress.best
    assert parent is not None  # something was tried
    return _repairs(progress, recipe, parent, recipe.repair_width, greedy=not nudge)


def _repairable(progress: Progress, recipe: Recipe) -> Tried | None:
    """The best candidate of the newest lineage, unless that has had its repairs.

    The opening is never repaired: a second draw comes before the first repair.
    """
    newest = max((t.start for t in progress.tried), default=0)
    lineage = [t for t in progress.tried if t.start == newest]
    if newest <= 0 or max(t.depth for t in lineage) >= recipe.repair_rounds:
        return None
    return lineage[-1] if recipe.repair_of == "last" else best_of(lineage)


def _fresh(
    progress: Progress, recipe: Recipe, count: int, *, greedy: bool, nudge: bool = False
) -> list[Move]:
    if progress.kind == "heal" and progress.tried:
        return _repairs(progress, recipe, progress.tried[0], count, greedy=greedy)
    first = progress.samples_asked
    reason = "nothing new came: other samples" if nudge else "greedy first" if greedy else "fresh samples"
    return [
        Move(
            kind="sample",
            temperature=0.0 if greedy and number == 0 else recipe.temperature,
            index=first + number,
            reason=reason,
        )
        for number in range(count)
    ]


def _repairs(progress: Progress, recipe: Recipe, parent: Tried, count: int, *, greedy: bool) -> list[Move]:
    first = progress.repairs_asked
    return [
        Move(
            kind="repair",
            parent=parent.candidate,
            strategy=STRATEGIES[(number + (0 if greedy else 1)) % len(STRATEGIES)],
            temperature=0.0 if greedy and number == 0 else recipe.temperature,
            index=first + number,
            reason=f"repair from facts ({parent.failed} failing)",
        )
        for number in range(count)
    ]


def _within_budget(moves: list[Move], progress: Progress) -> tuple[Move, ...]:
    if progress.attempts_left is not None:
        moves = moves[: progress.attempts_left]
    return tuple(moves) if moves else _stop("budget_exhausted", "no attempts are left")


def _stop(outcome: Outcome, reason: str) -> tuple[Move, ...]:
    return (Move(kind="stop", outcome=outcome, reason=reason),)
