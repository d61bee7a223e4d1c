"""Clues that a search leaves for the model: suspicious lines, and changes that repaired a part of the
tests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from suture.agents.prompting.prompt_parts import Suspect
from suture.agents.tuning import MIN_SCORE_SHARE
from suture.core.ledger import Event, last_payload
from suture.core.ledger.kinds import PartialRepair, SearchFinished, SuspectLine
from suture.project.python_source.statements import split_lines


@dataclass(frozen=True, kw_only=True)
class SearchClues:
    """What a search found out.

    Attributes:
        faults: Suspicious lines of the user's code, the most suspicious first.
        hints: Changes that made some failing test pass and broke none, the best first.
        divergences: Id of a failing check -> a sentence that says where its call first goes wrong.
    """

    faults: tuple[SuspectLine, ...] = ()
    hints: tuple[PartialRepair, ...] = ()
    divergences: Mapping[str, str] = field(default_factory=dict)


def load_search_clues(events: Sequence[Event]) -> SearchClues:
    """Return the clues in a run's ledger; empty clues if there was no search."""
    found = last_payload(events, SearchFinished)
    if found is None:
        return SearchClues()
    best = max((fault.score for fault in found.faults), default=0.0)
    return SearchClues(
        faults=tuple(fault for fault in found.faults if fault.score >= MIN_SCORE_SHARE * best),
        hints=found.partial,
        divergences=found.divergences,
    )


def find_suspicious_functions(files: Mapping[str, str], clues: SearchClues) -> tuple[Suspect, ...]:
    """Return the suspicious functions, each with its most suspicious line if there is a single one.

    Args:
        files: Path -> text. Faults in other files are left out.
        clues: The clues; their line numbers refer to these texts.
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
    return "".join(split_lines(text)[fault.line - 1 : fault.line]).strip()
