"""The nouns of Suture: frozen, keyword-only, plain data.

Everything that crosses a room, a checkpoint or the ledger is one of these, or built of these. `to_plain` and
`from_plain` turn a record into JSON values and back.
"""

from suture.core.codec import from_plain, to_plain
from suture.core.records.advice import (
    CodeReview,
    Concern,
    ConcernKind,
    Critique,
    Diagnosis,
    FaultCategory,
    Lesson,
    Plan,
    Severity,
    Subtask,
)
from suture.core.records.result import (
    FaultCause,
    Move,
    MoveKind,
    Outcome,
    Result,
    Spend,
    Strategy,
)
from suture.core.records.task import (
    Candidate,
    Check,
    CheckOutcome,
    CheckStatus,
    Counterexample,
    Earlier,
    Evidence,
    Language,
    Origin,
    Project,
    ProjectKind,
    Provenance,
    Task,
    TaskKind,
    Verdict,
    content_hash,
)

__all__ = [
    "Candidate",
    "Check",
    "CheckOutcome",
    "CheckStatus",
    "CodeReview",
    "Concern",
    "ConcernKind",
    "Counterexample",
    "Critique",
    "Diagnosis",
    "Earlier",
    "Evidence",
    "FaultCategory",
    "FaultCause",
    "Language",
    "Lesson",
    "Move",
    "MoveKind",
    "Origin",
    "Outcome",
    "Plan",
    "Project",
    "ProjectKind",
    "Provenance",
    "Result",
    "Severity",
    "Spend",
    "Strategy",
    "Subtask",
    "Task",
    "TaskKind",
    "Verdict",
    "content_hash",
    "from_plain",
    "to_plain",
]
