"""Clues that a search leaves for the model: suspicious lines, and changes that repaired a part of the tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from suture.agents.prompting.prompt_parts import Suspect
from suture.agents.tuning import MIN_SCORE_SHARE
from suture.core.ledger import Event, last_payload
from suture.core.ledger.kinds import SearchFinished, SuspectLine
from suture.project.python_source.statements import split_lines


def load_search_clues(events: Sequence[Event]) -> SearchFinished:
    """Return the result of a run's search without lines of low score; an empty one if there was no search."""
    search = last_payload(events, SearchFinished) or SearchFinished()
    best = max((fault.score for fault in search.faults), default=0.0)
    return replace(
        search, faults=tuple(fault for fault in search.faults if fault.score >= MIN_SCORE_SHARE * best)
    )


def find_suspicious_functions(files: Mapping[str, str], clues: SearchFinished) -> tuple[Suspect, ...]:
    """Return the suspicious functions, each with its most suspicious line if there is a single one.

    Args:
        files: Path -> text. Faults in other files are left out.
        clues: The clues; their line numbers refer to these texts.
    """
    worst_lines: dict[tuple[str, str], list[SuspectLine]] = {}
    for fault in clues.faults:
        if fault.path in files:
            group = worst_lines.setdefault((fault.path, fault.function), [fault])
            if fault.score == group[0].score and fault is not group[0]:
                group.append(fault)
    return tuple(
        Suspect(path=path, function=function, line=_line(files[path], group[0]) if len(group) == 1 else "")
        for (path, function), group in worst_lines.items()
    )


def _line(text: str, fault: SuspectLine) -> str:
    return "".join(split_lines(text)[fault.line - 1 : fault.line]).strip()
