"""The facts that the policy decides by: every attempt as numbers, and the order of preference among them."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from suture.core.records import (
    Counterexample,
    FaultCause,
    Origin,
    Reason,
    Strategy,
    TaskKind,
    Verdict,
    content_hash,
)
from suture.loop.tuning import NUDGE_ROUNDS, ROUNDS_WITHOUT_NEW_CODE, SAME_FAILURE_ROUNDS

ProposalFault = Literal["", "malformed", "unchanged", "no_answer", "budget", "model"]
"""Why a move produced no candidate: an unusable reply, the code as it was, a reply without an answer, no budget, or no
model; empty if it produced one."""


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """The result of one move: a candidate, which has a verdict once it is judged, or a fault.

    Attributes:
        candidate: The content hash of the candidate; empty if the move produced none.
        round: The round that proposed it; -1 (`SEARCH_ROUND`) for the user's own code and for what the search found.
        start: The round of the fresh start that its lineage began with.
        depth: The number of repairs between that start and the candidate.
        label: A short name for people.
        blob: The blob of the candidate in the run folder.
        refusal: For the fault `budget`, the limit that allowed no call, as the reason of an ending.
        verdict: The blob of the verdict; empty while the candidate waits for its checks.
        passed: Number of deciding checks that passed: those whose trust reaches the threshold.
        failed: Number of deciding checks that failed.
        regressed: Number of deciding checks that passed before the run and fail now.
        signature: A hash of the failures, equal for two candidates that fail in the same way.
        rejected: Whether a person rejected it, whatever the checks say.
        fingerprint: A hash of the code without comments and layout; empty if it was not computed.
        sent_back: Whether a critic objects to it although every deciding check passed.
        confidence: The confidence of the diagnosis of its failure, in [0, 1]; 1 if there is none.
        advised_strategy: The repair strategy that the diagnosis recommends.
        rank: Its rank among candidates that the deciding checks cannot distinguish, by a tournament or by a
            model's choice; higher is better. `None` if nothing ranked it.
        changed_lines: Lines that a repair adds to and removes from the user's code; 0 for new code.
        blocked: Whether the safety scan did not let it run. It is reported, and never delivered.
    """

    candidate: str
    origin: Literal[Origin, ""]
    round: int
    start: int
    depth: int = 0
    label: str = ""
    blob: str = ""
    fault: ProposalFault = ""
    fault_message: str = ""
    refusal: Reason | None = None
    verdict: str = ""
    passed: int = 0
    failed: int = 0
    regressed: int = 0
    signature: str = ""
    rejected: bool = False
    fingerprint: str = ""
    sent_back: bool = False
    confidence: float = 1.0
    advised_strategy: Strategy | None = None
    rank: int | None = None
    changed_lines: int = 0
    blocked: bool = False

    @property
    def solved(self) -> bool:
        """Return whether every deciding check passed, there was one, and no person rejected the candidate."""
        return self.passed > 0 and self.failed == 0 and self.regressed == 0 and not self.rejected


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The facts about a run that the policy decides by.

    Attributes:
        round: The round to decide on, from 0.
        attempts: Every judged candidate in the order of proposal. A `heal` run's first is the user's own
            code.
        samples_asked: Samples requested so far.
        repairs_asked: Repairs requested so far.
        attempts_left: Attempts left in the budget; `None` for no limit.
        checks: The number of deciding checks; 0 means that nothing can be trusted.
        faults: The faults of the last round, if it produced no candidate at all.
        last_refusal: `Attempt.refusal` of the last move of that round.
        can_search: Whether there is code to search for a repair without a model, and no search has run yet.
        has_searched: Whether a search for a repair without a model has run.
        cause: Why no change of the code could make the tests pass; `None` if a change may.
        is_investigated: Whether flaky tests were investigated.
        may_repair_flaky: Whether a model is asked to repair them, because the code may be their cause.
        rejected_last: Whether a person rejected the last decision.
        has_untrusted_tests: Whether there are generated tests that may earn trust from more candidates.
        has_model: Whether there is a model to ask. A run without one has only its search.
        can_escalate: Whether the user named a stronger model that has not taken over yet.
        escalated: The round in which that stronger model took over; 0 if it has not.
        program_turns: Turns that a program of the user's may take in place of a model; 0 if there is none.
        has_statement: Whether the user says what is wanted, besides passing tests.
        agents_asked: Turns of a model with tools so far.
        can_use_tools: Whether the coder's model is known to work with tools.
        is_capable: Whether the coder's model holds a conversation over a whole project.
        is_escalation_capable: Whether the stronger model does, if there is one.
        asks_for_examples: Whether a person can still be asked which results of new code are right.
        asks_at_once: Whether that happens before the model is asked for another version.
    """

    kind: TaskKind
    round: int
    attempts: tuple[Attempt, ...] = ()
    samples_asked: int = 0
    repairs_asked: int = 0
    attempts_left: int | None = None
    checks: int = 1
    faults: tuple[ProposalFault, ...] = ()
    last_fault_message: str = ""
    last_refusal: Reason | None = None
    can_search: bool = False
    has_searched: bool = False
    cause: FaultCause | None = None
    cause_detail: str = ""
    is_investigated: bool = False
    may_repair_flaky: bool = False
    rejected_last: bool = False
    attempts_used: int = 0
    has_untrusted_tests: bool = False
    has_model: bool = True
    can_escalate: bool = False
    escalated: int = 0
    program_turns: int = 0
    has_statement: bool = False
    agents_asked: int = 0
    can_use_tools: bool = False
    is_capable: bool = False
    is_escalation_capable: bool = False
    asks_for_examples: bool = False
    asks_at_once: bool = False

    @property
    def best(self) -> Attempt | None:
        """Return the best candidate under the trusted order."""
        return find_best(self.attempts)


def find_best(attempts: Sequence[Attempt]) -> Attempt | None:
    """Return the best candidate: solved, then no regression, most checks passed, fewest failed.

    Among equals, a candidate that no critic objects to comes first, then the winner of a tournament or the choice
    of a model, then of those that solve the task the smallest change, then the earliest. A candidate that breaks
    what worked loses even to the code that it started from. A candidate that a person rejected, or that was not
    allowed to run, loses to all others.
    """
    if not attempts:
        return None

    def preference(attempt: Attempt) -> tuple[bool | int, ...]:
        return (
            not attempt.rejected,
            not attempt.blocked,
            attempt.solved,
            -attempt.regressed,
            attempt.passed,
            -attempt.failed,
            not attempt.sent_back,
            attempt.rank or 0,
            -attempt.changed_lines if attempt.solved else 0,
            -attempts.index(attempt),  # the earliest has the smallest index
        )

    return max(attempts, key=preference)


def failure_signature(verdict: Verdict, threshold: float) -> str:
    """Return a hash of which deciding checks failed and how, without messages and line numbers.

    Args:
        threshold: Trust below which a check does not decide.
    """
    failed = verdict.failed  # The property computes the set on each access.
    failures = [
        (outcome.check_id, outcome.status, _failure_kind(outcome.counterexample))
        for outcome in verdict.outcomes
        if outcome.check_id in failed and outcome.trust >= threshold
    ]
    return content_hash(sorted(failures))


def _failure_kind(fact: Counterexample | None) -> str:
    return "" if fact is None else fact.code or fact.exception_type


Stagnation = Literal["no", "nudge", "stuck"]
"""Whether a run continues as it is, changes its approach once, or ends."""


NODES_WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def detect_stagnation(attempts: Sequence[Attempt], rounds: int, since: int = 0) -> Stagnation:
    """Return whether a run goes in circles: no new code, or new code that fails like the code before it.

    Args:
        attempts: The judged candidates in the order of proposal; a repeated one counts in its first round.
        rounds: The number of rounds that have ended.
        since: The first round of the present model; earlier rounds do not count.
    """
    counted_rounds = rounds - since
    without_new_code = min(count_rounds_without_new_code(attempts, rounds), counted_rounds)
    same_failure = min(count_rounds_with_same_failure(attempts, rounds), counted_rounds)
    if without_new_code >= ROUNDS_WITHOUT_NEW_CODE or same_failure > SAME_FAILURE_ROUNDS:
        return "stuck"
    # Equality, so that the same failure changes the approach once and not in each later round.
    return "nudge" if without_new_code or same_failure == NUDGE_ROUNDS else "no"


def count_rounds_without_new_code(attempts: Sequence[Attempt], rounds: int) -> int:
    """Return how many of the last rounds produced only known code, ignoring layout and comments."""
    first_rounds: dict[str, int] = {}
    for attempt in attempts:
        first_rounds.setdefault(attempt.fingerprint or attempt.candidate, attempt.round)
    newest_code_round = max(first_rounds.values(), default=-1)
    return rounds - 1 - newest_code_round


def count_rounds_with_same_failure(attempts: Sequence[Attempt], rounds: int) -> int:
    """Return how many rounds in a row, up to the last, made no progress and failed only in known ways."""
    for number in range(rounds - 1, 0, -1):
        current = [attempt for attempt in attempts if attempt.round == number]
        earlier = [attempt for attempt in attempts if attempt.round < number]
        earlier_signatures = {attempt.signature for attempt in earlier}
        made_progress = _max_passed(current) > _max_passed(earlier)
        if made_progress or any(attempt.signature not in earlier_signatures for attempt in current):
            return rounds - 1 - number
    return max(0, rounds - 1)


def _max_passed(attempts: Sequence[Attempt]) -> int:
    return max((attempt.passed for attempt in attempts), default=0)


def count_rounds_without_gain(attempts: Sequence[Attempt], rounds: int) -> int:
    """Return how many rounds have ended since the one that first passed the most checks."""
    max_passed = _max_passed(attempts)
    best_rounds = (attempt.round for attempt in attempts if attempt.passed == max_passed)
    return rounds - 1 - min(best_rounds, default=-1)


def code_fingerprint(files: Mapping[str, str]) -> str:
    """Return a hash of the code alone: without the comments, layout and docstrings of Python files."""
    return content_hash(
        {path: _without_prose(text) if path.endswith(".py") else text for path, text in files.items()}
    )


def _without_prose(text: str) -> str:
    """Return the syntax tree of Python code as a string, without docstrings; other source unchanged."""
    try:
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, NODES_WITH_DOCSTRING) and ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:] or [ast.Pass()]
        return ast.dump(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text
