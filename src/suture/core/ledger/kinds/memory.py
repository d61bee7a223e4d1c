"""Events of the memory across runs: what is recalled from other runs, and what is stored of this one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from suture.core.ledger.event import Payload

Arm = Literal["shown", "withheld", "placebo"]
"""What the random assignment did with a memory: used it, withheld it, or replaced it by other text."""


@dataclass(frozen=True, kw_only=True)
class RecalledMemory:
    """A memory that was found.

    Attributes:
        key: Key of the memory in the store.
        table: Kind of memory: a failure, a pattern or a lesson.
        arm: What was done with it.
        text: Text for prompts, which is the placebo's for that arm; empty if it is withheld.
        score: Rank by the searches; higher is better.
        operators: Operators that repaired it, if no model did.
        placebo: Key of the placebo text.
    """

    key: str
    table: Literal["failures", "patterns", "lessons"]
    arm: Arm
    text: str = ""
    score: float = 0.0
    operators: tuple[str, ...] = ()
    placebo: str = ""


class MemoryRecalled(Payload, kind="memory.recalled"):
    """Memories of earlier runs were looked up. This happens once, and the result holds for the whole run.

    Attributes:
        use: Value of the setting `memory.use`.
        query: Signature of the error, or the beginning of the task.
        embedder: Embedder that made the vectors; empty if only words were compared.
        found: Similar memories, the most similar first.
        factors: Operator of the search -> factor by which its changes become likelier.
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
        """The texts that prompts show of earlier runs."""
        return tuple(one.text for one in self.found if one.text)


class MemoryStored(Payload, kind="memory.stored"):
    """What the run taught was stored after its end.

    Attributes:
        failures: Number of failures that are new or occurred again.
        patterns: The same for patterns.
        lessons: The same for lessons.
        fault: Why nothing could be stored. The run does not suffer from it.
    """

    failures: int = 0
    patterns: int = 0
    lessons: int = 0
    fault: str = ""
