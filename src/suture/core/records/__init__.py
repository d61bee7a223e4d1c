"""The records of Suture: frozen, keyword-only dataclasses of plain data.

Packages pass these to each other, and checkpoints and ledgers consist of them.
`encode_record` and `decode_record` turn a record into JSON values and back.
"""

from suture.core.codec import decode_record, encode_record
from suture.core.records.advice import (
    Critique,
    Diagnosis,
    FaultCategory,
    Plan,
    Subtask,
)
from suture.core.records.capability import CapabilityCode, CapabilityUse
from suture.core.records.reason import Reason, ReasonCode, ReasonNote, render_reason
from suture.core.records.result import (
    FailingGeneratedTest,
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
    CodeFrame,
    Counterexample,
    EarlierVersion,
    Evidence,
    ExclusionReason,
    FailureCode,
    Language,
    Origin,
    Project,
    ProjectKind,
    Provenance,
    Task,
    TaskKind,
    UnmeasuredReason,
    Verdict,
    VerdictNote,
    VerdictNoteCode,
    content_hash,
)
from suture.core.records.task_service import KNOWN_SERVICES, TaskService

__all__ = [
    "KNOWN_SERVICES",
    "Candidate",
    "CapabilityCode",
    "CapabilityUse",
    "Check",
    "CheckOutcome",
    "CheckStatus",
    "CodeFrame",
    "Counterexample",
    "Critique",
    "Diagnosis",
    "EarlierVersion",
    "Evidence",
    "ExclusionReason",
    "FailingGeneratedTest",
    "FailureCode",
    "FaultCategory",
    "FaultCause",
    "Language",
    "Move",
    "MoveKind",
    "Origin",
    "Outcome",
    "Plan",
    "Project",
    "ProjectKind",
    "Provenance",
    "Reason",
    "ReasonCode",
    "ReasonNote",
    "Result",
    "Spend",
    "Strategy",
    "Subtask",
    "Task",
    "TaskKind",
    "TaskService",
    "UnmeasuredReason",
    "Verdict",
    "VerdictNote",
    "VerdictNoteCode",
    "content_hash",
    "decode_record",
    "encode_record",
    "render_reason",
]
