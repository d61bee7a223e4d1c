"""Events of the memory across runs: what is recalled from other runs, and what is stored of this one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from suture.core.ledger.event import Payload

Arm = Literal["shown", "withheld", "placebo"]
"""The arm of a randomised experiment that a memory was assigned to, which measures whether memories help.

The text of the memory is `shown` to the model, it is `withheld`, or a `placebo` text is shown in its place."""


@dataclass(frozen=True, kw_only=True)
class RecalledMemory:
    """A memory of an earlier run that is similar to the present task.

    Attributes:
        key: Key of the memory in the store.
        table: Kind of memory: a failure, a pattern or a lesson.
        arm: The arm of the experiment that it was assigned to.
        text: Text that prompts show: its own or the placebo's, by its arm; empty if it is withheld.
        score: Rank by the searches; higher is better.
        operators: Mutation operators that made its repair; empty if a model made it.
        placebo: Key of the placebo text; empty in the other arms.
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
        fault: Why nothing could be recalled; empty if nothing went wrong.
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
        return tuple(memory.text for memory in self.found if memory.text)


class MemoryStored(Payload, kind="memory.stored"):
    """What the run taught was stored after its end.

    Attributes:
        failures: Number of failures that are new or occurred again.
        patterns: Number of patterns that are new or occurred again.
        lessons: Number of lessons that are new or occurred again.
        fault: Why nothing could be stored; empty if nothing went wrong. The result of the run stays as it is.
    """

    failures: int = 0
    patterns: int = 0
    lessons: int = 0
    fault: str = ""
