"""What one turn of an agent works with, and what it brings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from suture.agents.calling.call_context import CallContext
from suture.agents.conversation.task_briefing import TaskBriefing
from suture.core.records import Candidate, Move
from suture.judge import Suite
from suture.models import Role
from suture.project.safety import Finding


@dataclass(frozen=True, kw_only=True)
class AgentTurn:
    """One turn of an agent.

    Attributes:
        move: The move that the turn carries out.
        files: The copy of the project when the turn begins: path -> content.
        parent_files: The files of the candidate that the copy is made from: path -> text.
        briefing: What the agent is told.
        suite: The tests that decide afterwards; the agent may run them as well.
        calls: Where model calls are paid and recorded.
        scan: Returns what the safety scan finds in a candidate.
        coder: The role that writes the code.
        max_steps: Maximum number of replies in the turn.
    """

    move: Move
    files: Mapping[str, bytes]
    parent_files: Mapping[str, str]
    briefing: TaskBriefing
    suite: Suite
    calls: CallContext
    scan: Callable[[Candidate], Sequence[Finding]]
    coder: Role
    max_steps: int

    @property
    def number(self) -> int:
        """Return the number of the turn, from 1, as the ledger counts them."""
        return self.move.index + 1

    @property
    def trust_threshold(self) -> float:
        """Return the trust below which a check does not decide."""
        return self.calls.settings.loop.trust_threshold


@dataclass(frozen=True, kw_only=True)
class AgentChange:
    """What an agent changed.

    Attributes:
        files: Path -> text.
        call: The hash of the last model call; empty if a program made the change.
    """

    files: dict[str, str]
    call: str = ""
