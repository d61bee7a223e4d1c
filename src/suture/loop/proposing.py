"""How a candidate enters a run: kept, written to the ledger, and an attempt that waits for its checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from suture.core.ledger.kinds import CandidateProposed
from suture.core.records import Candidate
from suture.errors import UsageError
from suture.judge import protected_files as refused_files
from suture.loop.context import RunContext
from suture.loop.policy.progress import Attempt


@dataclass(frozen=True, kw_only=True)
class Lineage:
    """Where a candidate stands in a run.

    Attributes:
        round: The round that proposes it; -1 for what the search found.
        start: The round of the fresh start that its lineage began with.
        depth: Repairs between that start and it.
    """

    round: int
    start: int
    depth: int = 0

    @classmethod
    def beginning(cls, number: int) -> Lineage:
        """That of a candidate which is nobody's repair."""
        return cls(round=number, start=number)


@dataclass(frozen=True, kw_only=True)
class Proposed:
    """What is known of a candidate when it is proposed, beside itself.

    Attributes:
        call: The model call that brought it; empty for none.
        shown: The project's files that the model had seen.
        written: The files that were written for it; all of its files where not given.
        warnings: What is suspicious about it.
        agreement: The share of the other plausible repairs that behave like it, where that was compared.
        rivals: How many other repairs pass and answer otherwise, or are about as likely and not known to do
            the same; where there was a search.
        apart: Some of those rivals, in words.
        share: Its part of the scores of itself and those rivals; where there was a search.
        surplus: Files that the reply holds besides, and that it does not write.
    """

    call: str = ""
    shown: tuple[str, ...] = ()
    written: tuple[str, ...] | None = None
    warnings: tuple[str, ...] = ()
    agreement: float | None = None
    rivals: int | None = None
    apart: tuple[str, ...] = ()
    share: float | None = None
    surplus: tuple[str, ...] = ()


NOTHING = Proposed()


def propose_candidate(
    candidate: Candidate, lineage: Lineage, context: RunContext, known: Proposed = NOTHING
) -> Attempt:
    """Keep a candidate, write down that it is proposed, and have it wait for its checks.

    Raises:
        StorageError: The run folder cannot be written.
    """
    attempt, event = proposed_candidate(candidate, lineage, context, known)
    context.ledger.append(event)
    return attempt


def proposed_candidate(
    candidate: Candidate, lineage: Lineage, context: RunContext, known: Proposed = NOTHING
) -> tuple[Attempt, CandidateProposed]:
    """As `propose_candidate`, with the event to be written by the caller, beside others at once."""
    blob = context.keep(candidate)
    event = CandidateProposed(
        candidate=candidate.hash,
        blob=blob,
        origin=candidate.origin,
        parent=candidate.parent,
        label=candidate.label,
        call=known.call,
        shown=known.shown,
        files=tuple(sorted(candidate.files)) if known.written is None else known.written,
        warnings=known.warnings,
        agreement=known.agreement,
        rivals=known.rivals,
        apart=known.apart,
        share=known.share,
        surplus=known.surplus,
    )
    attempt = Attempt(
        candidate=candidate.hash,
        blob=blob,
        origin=candidate.origin,
        round=lineage.round,
        start=lineage.start,
        depth=lineage.depth,
        label=candidate.label,
        parent=candidate.parent or "",
    )
    return attempt, event


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
