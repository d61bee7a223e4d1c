"""What a search without a model leaves for the model: suspicious lines, and changes that half worked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from suture.agents import Hint, Suspect
from suture.core.ledger import Event, last_of
from suture.core.ledger.kinds import SearchFinished, SuspectLine
from suture.project.python_source.statements import lines_of

TELLING = 0.5
"""Of the highest score: a line with less is as likely as any other."""


@dataclass(frozen=True, kw_only=True)
class Clues:
    """What a search knew when it ended.

    Attributes:
        faults: Suspicious lines of the code as it was, the most suspicious first.
        hints: Changes that made some failing test pass and broke none, the best first.
        divergences: Id of a failing check -> where its call first goes wrong, in words.
    """

    faults: tuple[SuspectLine, ...] = ()
    hints: tuple[Hint, ...] = ()
    divergences: Mapping[str, str] = field(default_factory=dict)


def clues_of(events: Sequence[Event]) -> Clues:
    """The clues in a run's ledger; none where nothing was searched."""
    found = last_of(events, SearchFinished)
    if found is None:
        return Clues()
    best = max((fault.score for fault in found.faults), default=0.0)
    return Clues(
        faults=tuple(fault for fault in found.faults if fault.score >= TELLING * best),
        hints=tuple(Hint(**vars(change)) for change in found.partial),
        divergences=found.divergences,
    )


def suspects_in(files: Mapping[str, str], clues: Clues) -> tuple[Suspect, ...]:
    """The suspicious functions as the coder is told them, each with its likeliest line if there is one.

    Args:
        files: Path -> text; faults of other files are left out.
        clues: The clues; their lines are those of these texts.
    """
    worst: dict[tuple[str, str], list[SuspectLine]] = {}
    for fault in clues.faults:
        if fault.path in files:
            group = worst.setdefault((fault.path, fault.function), [fault])
            if fault.score == group[0].score and fault is not group[0]:
                group.append(fault)
    return tuple(
        Suspect(path=path, function=function, line=_line(files[path], group[0]) if len(group) == 1 else "")
        for (path, function), group in worst.items()
    )


def _line(text: str, fault: SuspectLine) -> str:
    return "".join(lines_of(text)[fault.line - 1 : fault.line]).strip()
