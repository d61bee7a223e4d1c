"""Events of the memory across runs: what is recalled from other runs, and what is stored of this one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from suture.core.ledger.event import Payload


@dataclass(frozen=True, kw_only=True)
class RecalledMemory:
    """A memory of an earlier run that is similar to the present task.

    Attributes:
        key: Key of the memory in the store.
        table: Kind of memory: a failure, a pattern or a lesson.
        text: Text that prompts show; empty if it is not among the first.
        score: Similarity of the memory to the task, from -1 to 1: the dot product of their vectors.
    """

    key: str
    table: Literal["failures", "patterns", "lessons"]
    text: str = ""
    score: float = 0.0


class MemoryRecalled(Payload, kind="memory.recalled"):
    """Memories of earlier runs were looked up. This happens once, and the result holds for the whole run.

    Attributes:
        use: Value of the setting `memory.use`.
        query: Signature of the error, or the beginning of the task.
        found: Similar memories, the most similar first.
        fault: Why nothing could be recalled; empty if nothing went wrong.
    """

    use: str
    query: str = ""
    found: tuple[RecalledMemory, ...] = ()
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
