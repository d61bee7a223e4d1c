"""Events of the rounds: which moves are decided, which candidates are proposed, and how they fare.

In each round, the policy decides the next moves, and each move proposes candidates, which are checked. Rounds
and decisions are counted separately: a decision that proposes no candidates, such as one to search or to stop,
or one that a person rejects, begins no round.

The deciding checks, which users know as the trusted checks, are those whose trust reaches the threshold. The
other checks only inform.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from suture.core.ledger.event import Payload
from suture.core.records import Evidence, Move, Origin


class MovesDecided(Payload, kind="moves.decided"):
    """The policy chose the next moves. None of them has been made yet.

    Attributes:
        decision: Number of the decision, from 1; also counts decisions that begin no round.
        round: Number of the round, from 0.
        moves: The moves, at least one; a single `stop` ends the run.
        best: Hash of the best candidate at this point.
    """

    decision: int = 0
    round: int = 0
    moves: tuple[Move, ...]
    best: str | None = None

    def __post_init__(self) -> None:
        """Check that there is at least one move.

        Raises:
            ValueError: There is no move.
        """
        if not self.moves:
            raise ValueError("a decision has at least one move")


class MoveFailed(Payload, kind="move.failed"):
    """A move produced no candidate.

    Attributes:
        error_type: Class of the error in `suture.errors`.
        message: Message of the error.
    """

    error_type: str
    message: str


class CandidateProposed(Payload, kind="candidate.proposed"):
    """There is a new candidate. It has not been checked yet.

    Attributes:
        candidate: Hash of the candidate's content, by which other events name it.
        blob: Hash of the blob that holds the whole candidate.
        origin: How the candidate was produced.
        parent: Hash of the candidate that it was derived from.
        label: Short description for people.
        shown_files: Files that its author had seen.
        files: Files that it writes.
        call: Hash of the model call that produced it; empty if no model did.
        warnings: Reasons to doubt a repair that the search found, in words.
        agreement: Share of the other plausible repairs that behave like it, in [0, 1].
        rivals: Number of other repairs that pass too and are reasons for doubt. Such a repair behaves
            differently; or it is about as likely, and nobody knows whether it behaves the same.
        rival_descriptions: Some of these rivals, in words.
        score_share: Its score divided by the total score of itself and its rivals, in (0, 1]; null if it does
            not come from the search.
        surplus_files: Files in the reply that are not part of the candidate, because nobody asked for them or
            no candidate may write them.
        unsafe_fixes: Commands of linters that made it, also with fixes that may change what the code does.
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
    unsafe_fixes: tuple[str, ...] = ()


class CandidateChecked(Payload, kind="candidate.checked"):
    """The checks ran on a candidate.

    Attributes:
        candidate: Hash of the candidate.
        label: Short description for people.
        passed: Number of deciding checks that pass.
        failed: Number of deciding checks that do not pass.
        evidence: Kind of evidence.
        verdict: Blob of the verdict.
        seconds: Wall-clock seconds that the checks took.
        runs: How often the checks ran. A test command that passes runs a second time, to confirm it.
        unreached: Number of checks among `failed` that did not complete because the run of checks ended
            early.
        tool_checks: Number of deciding checks that are diagnostics of linters, type checkers or compilers: one
            for each diagnostic that is or was there, and one for each command that reports none.
        findings: Number of these that fail: the diagnostics that are there.
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
    tool_checks: int = 0
    findings: int = 0


class CandidateRefused(Payload, kind="candidate.refused"):
    """The safety scan blocked a candidate, so it did not run.

    Attributes:
        candidate: Hash of the candidate.
        reasons: What it newly does, one line each: file, line, rule and code.
    """

    candidate: str
    reasons: tuple[str, ...]


class PackagesInstalled(Payload, kind="packages.installed"):
    """The packages that a candidate requires were downloaded. No code of theirs ran.

    Attributes:
        packages: Name and version of each package, including the packages that others require.
    """

    packages: tuple[str, ...]


class CandidateRegressed(Payload, kind="candidate.regressed"):
    """A candidate breaks checks that passed before.

    Attributes:
        candidate: Hash of the candidate.
        checks: Ids of these checks, at most 50.
    """

    candidate: str
    checks: tuple[str, ...]


class CandidateUnconfirmed(Payload, kind="candidate.unconfirmed"):
    """A candidate passed the first run of the checks, but not the second.

    Attributes:
        candidate: Hash of the candidate.
        checks: Ids of the checks that passed only the first time, at most 50.
    """

    candidate: str
    checks: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class DifferingCall:
    """A function call that candidates answer differently.

    Attributes:
        call: The function call, as source.
        answers: Hash of a candidate -> its answer, as source or in words.
    """

    call: str
    answers: Mapping[str, str]


class CandidatesCompared(Payload, kind="candidates.compared"):
    """Candidates that the deciding checks cannot distinguish were run on other inputs.

    Attributes:
        candidates: Hashes of the candidates.
        preferred: Hash of the candidate that most others behave like; null if none is preferred.
        reason: Why it is preferred, in one line.
        calls: Number of function calls that the candidates were run on, each with other arguments.
        differ: Calls that the candidates answer differently.
    """

    candidates: tuple[str, ...]
    preferred: str | None
    reason: str
    calls: int
    differ: tuple[DifferingCall, ...]
