"""What was recalled from other runs, what it changed, and what is remembered of this one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from suture.core.ledger.event import Payload

Arm = Literal["shown", "withheld", "placebo"]
"""What chance did with a memory: used, held back, or another text of its length in its place."""


@dataclass(frozen=True, kw_only=True)
class RecalledMemory:
    """One memory that was found.

    Attributes:
        key: Names it in the store.
        table: What it is: a failure, a pattern or a lesson.
        arm: What was done with it.
        told: What prompts say of it, or in its place; empty where it is withheld.
        score: By how the searches ranked it; the higher the better.
        operators: Those that mended it, where no model did.
        placebo: Names the text in its place.
    """

    key: str
    table: Literal["failures", "patterns", "lessons"]
    arm: Arm
    text: str = ""
    score: float = 0.0
    operators: tuple[str, ...] = ()
    placebo: str = ""


class MemoryRecalled(Payload, kind="memory.recalled"):
    """Memories of earlier runs were looked for, once; what came of it holds for the whole run.

    Attributes:
        use: As `memory.use` said.
        query: The signature of the error, or the beginning of the task.
        embedder: Who made the vectors; empty where only words were compared.
        found: Memories like it, the likeliest first.
        factors: Operator of the search -> how much likelier its changes are taken for, from what mended them.
        fault: Why nothing could be recalled.
    """

    use: str
    query: str = ""
    embedder: str = ""
    found: tuple[RecalledMemory, ...] = ()
    factors: Mapping[str, float] = field(default_factory=dict)
    fault: str = ""

    @property
    def prompt_texts(self) -> tuple[str, ...]:
        """What prompts say of earlier runs."""
        return tuple(one.text for one in self.found if one.text)


class MemoryStored(Payload, kind="memory.kept"):
    """What the run taught was stored, after its end.

    Attributes:
        failures: How many were new or came up again.
        patterns: The same.
        lessons: The same.
        fault: Why it could not be stored; the run is none the worse for it.
    """

    failures: int = 0
    patterns: int = 0
    lessons: int = 0
    fault: str = ""
