"""A person's own candidate: what it may write, and how it enters the run."""

from __future__ import annotations

from collections.abc import Mapping

from suture.checks import refused_files
from suture.errors import UsageError
from suture.ledger.kinds import CandidateProposed
from suture.loop.context import RunContext
from suture.loop.state import Proposal
from suture.records import Candidate

__all__ = ["edited_candidate", "proposal_of", "proposed_event"]


async def edited_candidate(
    files: Mapping[str, str], shown: Candidate | None, context: RunContext
) -> Candidate:
    """A person's files over those of the candidate they were shown.

    Raises:
        UsageError: No candidate may write one of them.
    """
    refused = refused_files(files, await context.load_suite())
    if refused:
        raise UsageError(
            f"no candidate may write {', '.join(refused)}", remedy="edit code that is not protected"
        )
    return Candidate(
        files={**(shown.files if shown else {}), **files},
        origin="edit",
        parent=shown.hash if shown and shown.files else None,
        label="edited by a person",
    )


def proposed_event(candidate: Candidate, blob: str) -> CandidateProposed:
    """What the ledger is told of a candidate that nothing more is known of; `blob` is where it is kept."""
    return CandidateProposed(
        candidate=candidate.hash,
        blob=blob,
        origin=candidate.origin,
        parent=candidate.parent,
        label=candidate.label,
        shown=(),
        files=tuple(sorted(candidate.files)),
    )


def proposal_of(candidate: Candidate, blob: str, number: int) -> Proposal:
    """It as one that waits for its checks in round `number`; it begins a lineage of its own."""
    return Proposal(
        candidate=candidate.hash,
        blob=blob,
        origin=candidate.origin,
        round=number,
        start=number,
        depth=0,
        label=candidate.label,
        fault="",
        message="",
    )
