"""What a tool answers, as structured data: from the run's ledger and folder."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from suture.api import Review
from suture.core.ledger import RunFolder, last_of, read_ledger, result_of, state_of
from suture.core.ledger.kinds import CertificateWritten
from suture.core.safe_files import read_stored
from suture.interfaces.narrative.event_text import EVIDENCE_WORDS
from suture.interfaces.narrative.story import run_as_json

MOST_DIFF_BYTES = 2**20
"""A longer one is a resource: an agent that is handed megabytes has no room left to think."""


class RunTold(BaseModel):
    """A run, as a tool tells it."""

    run: str = Field(description="Its id.")
    state: str = Field(description="`ended`, `waiting`, `running` or `stopped`.")
    outcome: str = Field(default="", description="Such as healed, nothing_to_heal, not_healed.")
    reason: str = ""
    evidence: str = Field(default="", description="What the verdict is worth.")
    diff: str = Field(default="", description="The change; nothing of yours was changed.")
    files: dict[str, str] = Field(default={}, description="New code, path to text.")
    certificate: str = Field(default="", description="The resource that proves it; check it with `verify`.")
    question: str = Field(default="", description="What it waits for an answer to.")
    spend: dict[str, Any] = {}
    steps: list[str] = Field(default=[], description="What happened, where asked for.")


class Verified(BaseModel):
    """What a replay of a certificate found out."""

    run: str
    ok: bool
    findings: list[dict[str, Any]]


def describe_run(folder: RunFolder, question: Review | None = None) -> RunTold:
    """A run as it stands.

    Raises:
        StorageError: Its folder is damaged.
    """
    plain, reading = run_as_json(folder), read_ledger(folder.ledger_path)
    result = result_of(folder)
    wrote = result is not None and result.candidate is not None and not _is_heal(folder)
    certified = last_of(reading.events, CertificateWritten) is not None
    return RunTold(
        run=folder.id,
        state=state_of(folder, reading),
        outcome=plain["outcome"] or "",
        reason=plain["reason"] or "",
        evidence=EVIDENCE_WORDS[result.verdict.evidence] if result is not None and result.verdict else "",
        diff=diff_of(folder),
        files=dict(result.candidate.files) if wrote and result is not None and result.candidate else {},
        certificate=f"suture://runs/{folder.id}/certificate" if certified else "",
        question=question.question if question is not None else "",
        spend={name: value for name, value in plain["spend"].items() if not name.startswith("by_")},
    )


def diff_of(folder: RunFolder) -> str:
    """The run's diff; empty where there is none, or too much of it."""
    path = folder.path / "result.diff"
    if not path.is_file() or path.stat().st_size > MOST_DIFF_BYTES:
        return ""
    return read_stored(path, MOST_DIFF_BYTES, "the diff", follow=False).decode("utf-8", "replace")


def _is_heal(folder: RunFolder) -> bool:
    from suture.interfaces.narrative.ending import is_heal

    return is_heal(folder)
