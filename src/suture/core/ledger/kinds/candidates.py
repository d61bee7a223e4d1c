"""What is decided, which candidates come of it, and how they fare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from suture.core.ledger.event import Payload
from suture.core.records import Evidence, Move, Origin


class MovesDecided(Payload, kind="decided"):
    """The next moves, before they are made.

    Attributes:
        decision: Its number, from 1; 0 in ledgers that do not number them.
        round: The round, from 0.
        moves: What comes next, at least one; a single `stop` ends the run.
        best: Hash of the best candidate then.
    """

    decision: int = 0
    round: int = 0
    moves: tuple[Move, ...]
    best: str | None = None

    def __post_init__(self) -> None:
        """Refuse a decision on nothing.

        Raises:
            ValueError: There is no move.
        """
        if not self.moves:
            raise ValueError("a decision has at least one move")


class MoveFailed(Payload, kind="move.failed"):
    """A move brought no candidate.

    Attributes:
        kind: Class of the error, of `suture.errors`.
        message: Its message.
    """

    error_type: str
    message: str


class CandidateProposed(Payload, kind="candidate.proposed"):
    """There is a candidate, and nobody has checked it yet.

    Attributes:
        candidate: Its hash.
        blob: Blob of the candidate.
        origin: How it came to be.
        parent: Hash of the candidate that it was made from.
        label: What it is, for people.
        shown: Files that its writer had seen.
        files: Files that it writes.
        call: Hash of the model call that brought it.
        warnings: What makes a repair without a model doubtful.
        agreement: In [0, 1], the share of the other plausible repairs that behave like it.
        rivals: How many other repairs pass and answer otherwise, or are about as likely and not known to do
            the same.
        apart: Some of those, in words.
        share: In (0, 1], its part of the scores of itself and those rivals; null where nothing was searched.
        surplus: Files that the reply holds besides, and that are no part of the candidate: nobody asked for
            them, or no candidate may write them.
    """

    candidate: str
    blob: str
    origin: Origin
    parent: str | None = None
    label: str = ""
    shown_files: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    call: str = ""
    warnings: tuple[str, ...] = ()
    agreement: float | None = None
    rivals: int | None = None
    rival_descriptions: tuple[str, ...] = ()
    score_share: float | None = None
    surplus_files: tuple[str, ...] = ()


class CandidateChecked(Payload, kind="candidate.checked"):
    """The trusted checks were run on a candidate.

    Attributes:
        candidate: Its hash.
        label: What it is, for people.
        passed: Checks that decide and pass.
        failed: Checks that decide and do not pass.
        evidence: The kind of evidence.
        verdict: Blob of the verdict.
        seconds: Wall-clock seconds of the run of the checks.
        runs: How often they were run: a pass of a test command is run once more.
        unreached: Those among `failed` that were not run to their end: the run of the checks ended before.
    """

    candidate: str
    label: str = ""
    passed: int
    failed: int
    evidence: Evidence = "exit_status"
    verdict: str
    seconds: float = 0.0
    runs: int = 1
    unreached: int = 0


class CandidateRefused(Payload, kind="candidate.refused"):
    """The safety scan did not let a candidate run.

    Attributes:
        candidate: Its hash.
        reasons: What it newly does, a line each: the file, the line, the rule and the code.
    """

    candidate: str
    reasons: tuple[str, ...]


class PackagesInstalled(Payload, kind="packages.installed"):
    """The packages that a candidate asks for were fetched and laid ready; nothing of them was run.

    Attributes:
        packages: Each with its version, those among them that others require.
    """

    packages: tuple[str, ...]


class CandidateRegressed(Payload, kind="candidate.regressed"):
    """A candidate breaks what worked before.

    Attributes:
        candidate: Its hash.
        checks: Ids of checks that passed before, at most 50.
    """

    candidate: str
    checks: tuple[str, ...]


class CandidateUnconfirmed(Payload, kind="candidate.unconfirmed"):
    """A candidate passed once, and not once more.

    Attributes:
        candidate: Its hash.
        checks: Ids of checks that passed only the first time, at most 50.
    """

    candidate: str
    checks: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class DifferingCall:
    """A call that candidates answer differently.

    Attributes:
        call: The call, as source.
        answers: Candidate hash -> its answer, as source or in words.
    """

    call: str
    answers: Mapping[str, str]


class CandidatesCompared(Payload, kind="candidates.compared"):
    """Candidates that the trusted checks cannot tell apart were run on other inputs.

    Attributes:
        candidates: Their hashes.
        preferred: Hash of the one that most behave like; null where none is preferred.
        reason: Why, in a line.
        calls: Inputs that were tried.
        differ: Calls that they answer differently.
    """

    candidates: tuple[str, ...]
    preferred: str | None
    reason: str
    calls: int
    differ: tuple[DifferingCall, ...]
