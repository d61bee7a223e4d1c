"""Render what a run has used: attempts, tokens, seconds and money."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from suture.core.ledger import Event, kinds
from suture.core.records import Spend
from suture.errors import EditDoesNotApply, MalformedReply, MissingAnswer, UnchangedCode
from suture.interfaces.narrative.plain_text import format_count

SPEND_UNITS = (("attempts", "attempts"), ("tokens", "tokens"), ("money", "$"), ("seconds", "s"))
"""(field of `Spend`, unit) in the order in which they are shown."""

UNUSABLE_REPLIES = frozenset(
    error.__name__ for error in (MalformedReply, MissingAnswer, UnchangedCode, EditDoesNotApply)
)
"""Errors of a move whose reply arrived and brought no candidate."""


class ReplyTracker:
    """Counts the replies that brought no new code: no usable code, or that of an earlier candidate.

    Args:
        events: The run's events, or those so far.
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.without_code = 0
        self._candidates: set[str] = set()
        for event in events:
            self.add(event)

    def add(self, event: Event) -> None:
        """Count the next event of the run."""
        match event.payload:
            case kinds.MoveFailed(error_type=error_type):
                self.without_code += error_type in UNUSABLE_REPLIES
            case kinds.CandidateProposed(candidate=candidate, origin="sample" | "repair"):
                self.without_code += candidate in self._candidates
                self._candidates.add(candidate)
            case kinds.CandidateProposed(candidate=candidate):
                self._candidates.add(candidate)

    def render(self) -> str:
        """Return a note such as `3 replies brought no new code`; empty if every reply brought some."""
        count = self.without_code
        return f"{count} {'reply' if count == 1 else 'replies'} brought no new code" if count else ""


def describe_spend(spend: Spend, limits: Mapping[str, float | None]) -> str:
    """Return what was used and the limits.

    An example: `3 of 12 attempts, 2,310 of 60,000 tokens, 41 of 900 s`. What a run without a model cannot use, and so
    has no limit, is left out.
    """
    parts = []
    for name, unit in SPEND_UNITS:
        limit = limits.get(name)
        if name == "money":
            parts += _money(spend, limit)
            continue
        if not getattr(spend, name) and limit is None and name != "seconds":
            continue
        used = f"{getattr(spend, name):,.0f}"
        if limit is not None:
            used += f" of {limit:,.12g}"
        parts.append(f"{used} {unit.removesuffix('s') if used == '1' and unit != 's' else unit}")
    return ", ".join(parts)


def limits_without_model(limits: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return the limits of a run that uses no model: only those of time."""
    return {name: limit for name, limit in limits.items() if name == "seconds"}


def describe_share(spend: Spend) -> str:
    """Return what one role or one kind of move has used."""
    counts = (("attempt", spend.attempts), ("token", spend.tokens), ("call", spend.model_calls))
    return ", ".join([*(format_count(count, noun) for noun, count in counts), *_money(spend, None)])


def _money(spend: Spend, limit: float | None) -> list[str]:
    """Return the amount and the unpriced calls; empty without either."""
    unknown = (
        [f"{format_count(spend.unpriced_calls, 'call')} of unknown price"] if spend.unpriced_calls else []
    )
    if not spend.money and limit is None:
        return unknown
    return [f"${spend.money:,.4f}" + ("" if limit is None else f" of ${limit:,.12g}"), *unknown]
