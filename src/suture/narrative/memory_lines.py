"""What was recalled of earlier runs and kept of this one, as lines for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from suture.ledger import Payload
from suture.ledger.kinds import MemoryKept, MemoryRecalled
from suture.narrative.lines import counted

MOST_FACTORS = 5


def _recalled(recalled: MemoryRecalled) -> str:
    if recalled.fault:
        return f"memory could not be asked, and the run goes on without: {recalled.fault}"
    if not recalled.found:
        return "memory: nothing like this was met before"
    arms = Counter(one.arm for one in recalled.found)
    how = ", ".join(f"{count} {arm}" for arm, count in arms.items())
    text = f"memory: {len(recalled.found)} from earlier runs are like {recalled.query!r} ({how})"
    raised = sorted(recalled.factors.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_FACTORS]
    if raised:
        text += "; the search takes for likelier: " + ", ".join(f"{name} x{by:g}" for name, by in raised)
    if recalled.told:
        text += "; prompts tell: " + " / ".join(recalled.told)
    return text


def _kept(kept: MemoryKept) -> str:
    if kept.fault:
        return f"memory could not keep what this run taught: {kept.fault}"
    counts = (counted(kept.failures, "failure"), counted(kept.patterns, "pattern"))
    rest = counted(kept.lessons, "lesson")
    return f"memory keeps {', '.join(counts)} and {rest} of this run"


MEMORY_TELLERS: dict[type[Payload], Callable[[Any], str]] = {MemoryKept: _kept, MemoryRecalled: _recalled}
"""A line for each kind of event about memory."""
