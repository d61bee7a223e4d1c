"""Store the candidates and verdicts of a run as blobs, and record how each candidate was proposed."""

from __future__ import annotations

from dataclasses import dataclass

from suture.core.ledger import Ledger, RunFolder, select_events
from suture.core.ledger.kinds import CandidateProposed
from suture.core.records import Candidate, Verdict
from suture.loop.policy.attempts import Attempt
from suture.loop.state import LoopState, judged_attempts

SEARCH_ROUND = -1
"""The round of the user's own code and of what the search found: they come before round 0."""


@dataclass(frozen=True, kw_only=True)
class Lineage:
    """The place of a candidate in a run.

    Attributes:
        round: The round that proposes it; -1 for what the search found.
        start: The round of the fresh start that its lineage began with.
        depth: The number of repairs between that start and the candidate.
    """

    round: int
    start: int
    depth: int = 0

    @classmethod
    def beginning(cls, round_: int) -> Lineage:
        """Return the place of a candidate that does not repair another one."""
        return cls(round=round_, start=round_)


@dataclass(frozen=True, kw_only=True)
class ProposalFacts:
    """What is known of a candidate when it is proposed, besides its files.

    Attributes:
        call: The model call that brought it; empty if there was none.
        shown: The project's files that the model saw.
        written: The files that were written for it; `None` for all of its files.
        warnings: What is suspicious about it.
        agreement: The share of the other plausible repairs that behave like it, where they were compared.
        rivals: After a search, the number of other repairs that pass and behave differently, or are about as
            likely and not known to behave the same.
        rival_descriptions: Some of those rivals as text.
        score_share: After a search, its part of the scores of itself and those rivals.
        surplus: Files in the reply that the candidate does not write.
    """

    call: str = ""
    shown: tuple[str, ...] = ()
    written: tuple[str, ...] | None = None
    warnings: tuple[str, ...] = ()
    agreement: float | None = None
    rivals: int | None = None
    rival_descriptions: tuple[str, ...] = ()
    score_share: float | None = None
    surplus: tuple[str, ...] = ()


NO_FACTS = ProposalFacts()


class CandidateStore:
    """The candidates of a run.

    Args:
        folder: The run folder, which holds the blobs.
        ledger: The run's ledger, which says how each candidate was proposed.
    """

    def __init__(self, folder: RunFolder, ledger: Ledger) -> None:
        self._folder = folder
        self._ledger = ledger

    def save(self, record: Candidate | Verdict) -> str:
        """Store a record, and return the hash of its blob."""
        return self._folder.save_record(record)

    def load(self, blob: str) -> Candidate:
        """Return the candidate of a blob."""
        return self._folder.load_record(Candidate, blob)

    def load_verdict(self, blob: str) -> Verdict:
        """Return the verdict of a blob."""
        return self._folder.load_record(Verdict, blob)

    def baseline_verdict(self, state: LoopState) -> Verdict | None:
        """Return the verdict on the user's own code; `None` if there is no such code."""
        first = next(iter(judged_attempts(state)), None)
        return self.load_verdict(first.verdict) if first and first.origin == "user" else None

    def propose(self, candidate: Candidate, lineage: Lineage, facts: ProposalFacts = NO_FACTS) -> Attempt:
        """Store a candidate, record its proposal, and return the attempt that waits for its checks.

        Raises:
            StorageError: The run folder cannot be written.
        """
        attempt, event = self.make_proposal(candidate, lineage, facts)
        self._ledger.append(event)
        return attempt

    def make_proposal(
        self, candidate: Candidate, lineage: Lineage, facts: ProposalFacts = NO_FACTS
    ) -> tuple[Attempt, CandidateProposed]:
        """As `propose`, but return the event, for a caller that writes several events at once."""
        blob = self.save(candidate)
        event = CandidateProposed(
            candidate=candidate.hash,
            blob=blob,
            origin=candidate.origin,
            parent=candidate.parent,
            label=candidate.label,
            call=facts.call,
            shown_files=facts.shown,
            files=tuple(sorted(candidate.files)) if facts.written is None else facts.written,
            warnings=facts.warnings,
            agreement=facts.agreement,
            rivals=facts.rivals,
            rival_descriptions=facts.rival_descriptions,
            score_share=facts.score_share,
            surplus_files=facts.surplus,
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

    def find_proposal(self, candidate: str) -> CandidateProposed | None:
        """Return how a candidate was first proposed, by the candidate's hash."""
        proposals = select_events(self._ledger.events, CandidateProposed)
        return next((proposal for _, proposal in proposals if proposal.candidate == candidate), None)

    def describe_rivals(self, candidate: Candidate) -> tuple[str, ...]:
        """Return the rivals that the tests do not distinguish from a candidate, as text.

        A candidate that was minimised has the rivals of the one that it was made from.
        """
        proposal = self.find_proposal(candidate.hash)
        if proposal is None or proposal.rivals is None:
            proposal = self.find_proposal(candidate.parent or "") or proposal
        return proposal.rival_descriptions if proposal else ()
