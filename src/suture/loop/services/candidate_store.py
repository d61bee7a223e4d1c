"""Store the candidates and verdicts of a run as blobs, and record how each candidate was proposed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from suture.core.ledger import Ledger, RunFolder, last_payload, select_events
from suture.core.ledger.kinds import CandidateProposed, RepairChosen, SearchFinished
from suture.core.records import Candidate, Verdict
from suture.loop.policy.attempts import Attempt
from suture.loop.state import LoopState, judged_attempts
from suture.loop.tuning import MAX_REMEMBERED_VERDICTS

SEARCH_ROUND = -1
"""The round of the user's own code and of what the search found: they come before round 0."""


@dataclass(frozen=True, kw_only=True)
class Lineage:
    """The place of a candidate in a run.

    Attributes:
        round: The round that proposed it, or `SEARCH_ROUND`.
        start: The round of the fresh start that its chain of repairs began with.
        depth: The number of repairs between that start and the candidate.
    """

    round: int
    start: int
    depth: int = 0

    @classmethod
    def beginning(cls, round_: int) -> Lineage:
        """Return the place of a candidate that does not repair another one."""
        return cls(round=round_, start=round_)


@dataclass(frozen=True, eq=False)
class CandidateStore:
    """The candidates of a run: their blobs in the run folder, and their proposals in the ledger."""

    _folder: RunFolder
    _ledger: Ledger
    _verdicts: dict[str, Verdict] = field(default_factory=dict)
    """Blob -> verdict, for the verdicts that were used last. Reading one of a large suite takes a second."""

    def save(self, record: Candidate | Verdict) -> str:
        """Store a record, and return the hash of its blob."""
        saved = next((blob for blob, verdict in self._verdicts.items() if verdict is record), "")
        blob = saved or self._folder.save_record(record)
        if isinstance(record, Verdict):
            self._remember(blob, record)
        return blob

    def _remember(self, blob: str, verdict: Verdict) -> None:
        self._verdicts.pop(blob, None)
        self._verdicts[blob] = verdict
        if len(self._verdicts) > MAX_REMEMBERED_VERDICTS:
            del self._verdicts[next(iter(self._verdicts))]

    def load(self, blob: str) -> Candidate:
        """Return the candidate of a blob."""
        return self._folder.load_record(Candidate, blob)

    def load_verdict(self, blob: str) -> Verdict:
        """Return the verdict of a blob."""
        verdict = self._verdicts.get(blob) or self._folder.load_record(Verdict, blob)
        self._remember(blob, verdict)
        return verdict

    def baseline_verdict(self, state: LoopState) -> Verdict | None:
        """Return the verdict on the user's own code; `None` if there is no such code."""
        first = next(iter(judged_attempts(state)), None)
        return self.load_verdict(first.verdict) if first and first.origin == "user" else None

    def make_proposal(self, candidate: Candidate) -> CandidateProposed:
        """Store a candidate, and return the event that proposes it; the caller may add further facts."""
        return CandidateProposed(
            candidate=candidate.hash,
            blob=self.save(candidate),
            origin=candidate.origin,
            parent=candidate.parent,
            label=candidate.label,
            files=tuple(sorted(candidate.files)),
        )

    def propose(self, proposal: CandidateProposed, lineage: Lineage) -> Attempt:
        """Record a proposal, and return the attempt that waits for its checks."""
        self._ledger.append(proposal)
        return make_attempt(proposal, lineage)

    def find_proposal(self, candidate: str) -> CandidateProposed | None:
        """Return how a candidate was first proposed, by the candidate's hash."""
        proposals = select_events(self._ledger.events, CandidateProposed)
        return next((proposal for _, proposal in proposals if proposal.candidate == candidate), None)

    def find_choice(self, candidate: Candidate) -> RepairChosen | None:
        """Return the choice that made a candidate the result, although it has rivals; `None` if there is none.

        A candidate that was minimised counts as the one that it was made from.
        """
        choices = select_events(self._ledger.events, RepairChosen)
        names = (candidate.hash, candidate.parent)
        # A person chooses before the candidate is checked, so `passed` says nothing then.
        return next(
            (
                choice
                for _, choice in choices
                if choice.candidate in names and (choice.passed or choice.by == "person")
            ),
            None,
        )

    def count_rivals(self, proposal: CandidateProposed | None) -> tuple[int | None, float | None]:
        """Return `(rivals, share of the scores)` of a proposal for its confidence.

        Both are `None` if they are not known. They are ignored where a model has chosen between the rivals: the value
        of its choice is not measured, so the candidate counts as a change that a model wrote.
        """
        if proposal is None:
            return None, None
        choices = select_events(self._ledger.events, RepairChosen)
        if any(choice.passed and choice.candidate == proposal.candidate for _, choice in choices):
            return None, None
        return proposal.rivals, proposal.score_share

    def describe_rivals(self, candidate: Candidate) -> tuple[str, ...]:
        """Return the rivals that the tests do not distinguish from a candidate, as text.

        A candidate that was minimised has the rivals of the one that it was made from, except its equal.
        """
        proposal = self.find_search_proposal(candidate)
        return proposal.rival_descriptions if proposal else ()

    def find_search_proposal(self, candidate: Candidate) -> CandidateProposed | None:
        """Return how the search proposed a candidate, or the one that it was minimised from.

        A rival that the minimised candidate equals is left out.
        """
        proposal = self.find_proposal(candidate.hash)
        if proposal is None or proposal.rivals is None:
            proposal = self.find_proposal(candidate.parent or "") or proposal
        return self.without_equal_rival(proposal, candidate)

    def without_equal_rival(
        self, proposal: CandidateProposed | None, minimised: Candidate
    ) -> CandidateProposed | None:
        """Return a proposal without the rival that has the same files as what minimisation left of the proposal."""
        search = last_payload(self._ledger.events, SearchFinished)
        repairs = search.repairs if search is not None else ()
        equal = next((repair for repair in repairs if repair.candidate == minimised.hash), None)
        if proposal is None or equal is None or proposal.candidate == minimised.hash:
            return proposal
        labels = list(proposal.rival_descriptions)
        if not proposal.rivals or equal.label not in labels:
            return proposal
        labels.remove(equal.label)  # only one of them: two repairs may have the same label
        score = next((repair.score for repair in repairs if repair.candidate == proposal.candidate), 0.0)
        share = proposal.score_share
        if score and share:
            # The recorded numbers are rounded, so the difference may be less than the score.
            share = round(score / max(score, score / share - equal.score), 4)
        return replace(
            proposal, rivals=proposal.rivals - 1, rival_descriptions=tuple(labels), score_share=share
        )


def make_attempt(proposal: CandidateProposed, lineage: Lineage) -> Attempt:
    """Return the attempt that a proposal begins."""
    return Attempt(
        candidate=proposal.candidate,
        blob=proposal.blob,
        origin=proposal.origin,
        round=lineage.round,
        start=lineage.start,
        depth=lineage.depth,
        label=proposal.label,
    )
