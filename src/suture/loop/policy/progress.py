"""What the policy sees: every candidate tried so far, as numbers, and the order of preference among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from suture.core.records import Origin, Strategy, TaskKind, Verdict, content_hash

FaultKind = Literal["", "malformed", "budget", "model"]
"""Why a move brought no candidate; empty where it brought one."""


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One move's candidate and how it fared: first it waits for its checks, then it has a verdict.

    Attributes:
        candidate: Its content hash; empty where the move brought none.
        origin: How it came to be.
        round: The round that proposed it; the user's own code has -1, and so has what the search found.
        start: The round of the fresh start that its lineage began with.
        depth: Repairs between that start and it.
        parent: The candidate that it was made from; empty for none.
        label: It, for people.
        blob: Where the candidate is kept in the run folder.
        fault: What kind of fault there was, where the move brought no candidate.
        message: That fault, for people.
        verdict: The blob of its verdict; empty while it waits for its checks.
        passed: Deciding checks that passed.
        failed: Deciding checks that did not.
        regressed: Deciding checks that passed before the run and now do not.
        signature: Which checks failed, and how; equal where two candidates fail alike.
        rejected: Whether a person does not want it, whatever the checks say.
        fingerprint: A hash of its code without comments and layout; empty where nobody computed it.
        sent_back: Whether a critic does not want it, though every deciding check passed.
        confidence: Of the diagnosis of its failure, in [0, 1]; 1 where there is none.
        advised: How the diagnosis would mend it.
        rank: Its place in a tournament among candidates that the deciding checks cannot tell apart; more is
            better. `None` where there was none.
        blocked: Whether the safety scan did not let it run: it is told of, and never handed over.
    """

    candidate: str
    origin: Literal[Origin, ""]
    round: int
    start: int
    depth: int = 0
    parent: str = ""
    label: str = ""
    blob: str = ""
    fault: FaultKind = ""
    message: str = ""
    verdict: str = ""
    passed: int = 0
    failed: int = 0
    regressed: int = 0
    signature: str = ""
    rejected: bool = False
    fingerprint: str = ""
    sent_back: bool = False
    confidence: float = 1.0
    advised: Strategy | None = None
    rank: int | None = None
    blocked: bool = False

    @property
    def solved(self) -> bool:
        """Whether every deciding check passed, there was one, and nobody rejected it."""
        return self.passed > 0 and self.failed == 0 and self.regressed == 0 and not self.rejected


@dataclass(frozen=True, kw_only=True)
class Progress:
    """A run up to now.

    Attributes:
        kind: `write` or `heal`.
        round: The round to decide on, from 0.
        tried: Every candidate checked, in the order of proposal; a `heal` run's first is the user's own code.
        samples_asked: Samples asked for so far.
        repairs_asked: Repairs asked for so far.
        attempts_left: Attempts that the budget still holds; `None` for no limit.
        checks: Deciding checks there are; 0 means that nothing can be trusted.
        faults: Kinds of the faults of the last round, where it brought no candidate at all.
        last_fault: What the last of them said.
        may_search: Whether there is code to search for a repair without a model, and that was not done yet.
        not_code: Where no change of the code could make the tests pass: the reason, for people.
        declined: Whether a person rejected what was decided last.
        attempts_used: Attempts up to now.
        untrusted: Whether there are generated tests that may earn trust when more candidates are there.
        may_ask: Whether there is a model to ask; without one a run has its search, and no more.
        may_escalate: Whether the user named a stronger model, and it has not taken over yet.
        escalated: The round in which it took over; 0 where it has not.
        proposer: Turns that a program of the user's may have in place of a model; 0 where there is none.
        agents_asked: Turns that an agent has had, that program or a model with tools.
        may_work: Whether the coder's model is known to work with tools.
    """

    kind: TaskKind
    round: int
    tried: tuple[Attempt, ...] = ()
    samples_asked: int = 0
    repairs_asked: int = 0
    attempts_left: int | None = None
    checks: int = 1
    faults: tuple[str, ...] = ()
    last_fault: str = ""
    may_search: bool = False
    not_code: str = ""
    declined: bool = False
    attempts_used: int = 0
    untrusted: bool = False
    may_ask: bool = True
    may_escalate: bool = False
    escalated: int = 0
    proposer: int = 0
    agents_asked: int = 0
    may_work: bool = False

    @property
    def best(self) -> Attempt | None:
        """The best candidate under the trusted order."""
        return best_of(self.tried)


def best_of(tried: Sequence[Attempt]) -> Attempt | None:
    """The best candidate: solved, then no regression, most checks passed, fewest failed.

    Among equals, one that no critic sent back goes first, then the winner of a tournament, then the earliest.
    A candidate that breaks what worked loses even to the code it started from, and one that a person rejected
    or that was not let run to all others.
    """
    if not tried:
        return None
    return max(
        tried,
        key=lambda t: (
            *(not t.rejected, not t.blocked, t.solved, -t.regressed, t.passed, -t.failed),
            *(not t.sent_back, t.rank or 0, -tried.index(t)),
        ),
    )


def tally(verdict: Verdict, base: Verdict | None, threshold: float) -> tuple[int, int, int]:
    """Count the deciding checks: passed, failed, regressed.

    A check with less trust than `threshold` is not counted: it informs, it never decides.
    """
    deciding = [o for o in verdict.outcomes if o.trust >= threshold and o.status != "skipped"]
    passed = sum(o.passed for o in deciding)
    before = base.passed if base else frozenset()
    deciding_ids = {o.check_id for o in verdict.outcomes if o.trust >= threshold}
    regressed = len((before & deciding_ids) - verdict.passed)
    return passed, len(deciding) - passed, regressed


def failure_signature(verdict: Verdict, threshold: float) -> str:
    """A hash of which deciding checks failed and how; prose and line numbers are left out."""
    failed = verdict.failed  # it is made anew each time that it is asked for
    failures = [
        (o.check_id, o.status, o.counterexample.exception.split(":")[0] if o.counterexample else "")
        for o in verdict.outcomes
        if o.check_id in failed and o.trust >= threshold
    ]
    return content_hash(sorted(failures))
