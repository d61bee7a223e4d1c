"""What a search without a model did, where it came from and what it asked, as lines for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from suture.core.ledger import Payload
from suture.core.ledger.kinds import HistorySearched, SearchFinished, SearchStarted, Trials, UserAnswered
from suture.interfaces.narrative.lines import counted


def _search_began(began: SearchStarted) -> str:
    return (
        f"searching: at most {began.candidates:,} edits of {counted(len(began.files), 'file')}, "
        f"for {began.seconds:.0f} s"
    )


def _history_searched(searched: HistorySearched) -> str:
    if not searched.good:
        return "history: the tests fail on the oldest code too; no change broke them"
    return f"history: the tests pass on the code of {searched.good}, and not since {searched.broke}"


def _search_ended(ended: SearchFinished) -> str:
    found = (
        f"{ended.plausible} of them make all tests pass" if ended.plausible else "none makes all tests pass"
    )
    text = f"tried {counted(ended.tried, 'edit')} in {ended.seconds:.1f} s, {found} ({ended.ended})"
    text += trials_text(ended.trials)
    if apart := ended.difference:
        answers = "; ".join(f"{answer} with {label!r}" for label, answer in apart.answers.items())
        text += f"; {apart.call} tells the likeliest apart: {answers}"
    for broken in ended.broken[:1]:
        text += f"; {broken.operator!r} broke on {broken.path}:{broken.line} and was left out there"
        text += f" (a fault of suture's own: {broken.fault})"
    return text


def trials_text(trials: Trials) -> str:
    """Where the search could not see what the user's own run shows."""
    text = "".join(f"; {note}" for note in (trials.partly, *trials.notes) if note)
    if trials.disagreements:
        some = [f"{one.test} ({one.run} in your run, {one.trial} in a trial)" for one in trials.differing[:3]]
        more = ", ..." if trials.disagreements > len(some) else ""
        text += f"; {trials.disagreements} test(s) end otherwise in a trial and are left to the verdict: "
        text += ", ".join(some) + more
    return text


def _user_answered(answered: UserAnswered) -> str:
    return f"asked about {answered.call}: {' or '.join(answered.answers)}? your answer: {answered.choice}"


SEARCH_TELLERS: dict[type[Payload], Callable[[Any], str]] = {
    HistorySearched: _history_searched,
    SearchStarted: _search_began,
    SearchFinished: _search_ended,
    UserAnswered: _user_answered,
}
"""A line for each kind of event about the search."""
