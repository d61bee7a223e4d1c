"""What a person and the helpers told, in the briefs that come after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from suture.pysource.parsing import parsed
from suture.roles import Brief, RepairBrief

SAYS = "A person who reviews this adds: "


def with_hints(brief: Brief, hints: Sequence[str]) -> Brief:
    """The brief with what a person told; the last they said comes first, and before all other advice.

    Args:
        brief: Of a move.
        hints: One text each, in the order in which they were given.
    """
    return with_advice(brief, [f"{SAYS}{hint}" for hint in reversed(hints)])


def with_advice(brief: Brief, advice: Sequence[str]) -> Brief:
    """The brief with advice, before all other that it holds.

    Args:
        brief: Of a move.
        advice: One sentence each, the weightiest first.
    """
    if not advice:
        return brief
    if isinstance(brief, RepairBrief):
        return replace(brief, advice=(*advice, *brief.advice))
    # A stub stays Python with the hints as comments, and so keeps its fence in the prompt.
    mark = "# " if parsed(brief.statement) is not None else ""
    lines = "\n".join(f"{mark}{' '.join(line.split())}" for line in advice)
    return replace(brief, statement=f"{brief.statement.rstrip()}\n\n{lines}".lstrip())
