"""Where two plausible repairs differ, the user may be asked which of them is right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from suture.ledger import Event, those_of
from suture.ledger.kinds import Choice, UserAnswered
from suture.repair import Difference, Repair

if TYPE_CHECKING:
    from suture.loop.context import RunContext

__all__ = ["Asker", "Choice", "chosen_repairs", "recorded_asker"]

Asker = Callable[[Difference], Choice | None]
"""Asks the user, and waits; `None` where there is nobody who could say."""


def chosen_repairs(
    repairs: tuple[Repair, ...], difference: Difference | None, context: RunContext
) -> tuple[Repair, ...]:
    """The repairs without those that answer what the user says is wrong, those that answer right before all.

    Args:
        repairs: The likeliest first.
        difference: What tells the first from the next.
        context: The run; what the user says goes into its ledger.
    """
    if difference is None or context.spec.ask_user is None:
        return repairs
    choice = context.spec.ask_user(difference)
    if choice is None:
        return repairs
    context.ledger.append(UserAnswered(call=difference.call, answers=difference.apart, choice=choice))
    first, second = difference.apart
    right = {"first": first, "second": second}.get(choice)
    wrong = {first, second} - {right}
    told = list(zip(repairs, difference.by_repair, strict=True))
    agreeing = [repair for repair, answer in told if answer == right]
    return (*agreeing, *(repair for repair, answer in told if answer != right and answer not in wrong))


def recorded_asker(events: Sequence[Event]) -> Asker | None:
    """Answers as the user did in a recorded run; `None` where nobody was asked there."""
    told = [answered for _, answered in those_of(events, UserAnswered)]
    if not told:
        return None

    def ask(difference: Difference) -> Choice | None:
        same = [one for one in told if (one.call, one.answers) == (difference.call, difference.apart)]
        return same[0].choice if same else None

    return ask
