"""From what candidates did to a trust: dual execution agreement, and what the author is known for.

The idea that programs and tests drawn apart vouch for each other is CodeT's (arXiv 2207.10397): candidates
that pass the same set of checks agree, and a set counts with its candidates times its checks. How much each
sign is worth was fitted on recorded tests and answers (see docs/trust.md, benchmarks/trust.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from suture.judge.trust.check_matrix import CandidateRow

MOST_BY_VOICES = {0: 0.15, 1: 0.85}
"""The most trust where no candidate, or a single one, was heard: one program and one test do not agree about
a task, they may share one mistake of one model."""
INTERCEPT = 0.1
WEIGHTS = {"votes": 2.1, "sets": 1.15, "author": 0.7, "examples": 0.5}
"""Fitted: the log odds of a right check without any sign are `INTERCEPT`, and each sign adds its weight."""
SURE_LOGPROB = -0.25
"""Mean natural logarithm of a token's probability, from which on words count as sure."""
PER_NAT = 2.0
"""How far each further nat per token lowers the log odds. Not fitted: it can only lower a trust."""


@dataclass(frozen=True, kw_only=True)
class BehaviourGroups:
    """The candidates that are heard, as sets of equal behaviour.

    Attributes:
        rows: Those that pass the given checks; where none does, none.
        sets: The checks that a set passes -> its candidates times those checks.
    """

    rows: tuple[CandidateRow, ...]
    sets: Mapping[frozenset[str], int]


@dataclass(frozen=True, kw_only=True)
class TrustSignals:
    """What speaks for a check, or against it where it is negative.

    Attributes:
        votes: Log odds of the candidates that pass it to those that do not, each side with half a vote more.
        sets: In [-1, 1]: the share of the weight of behaviours that pass it, less that of the others.
        author: In [-1, 1]: the mean of `sets` over the author's other checks.
        examples: In [-1, 1]: how the author's repetitions of given checks came out.
    """

    votes: float = 0.0
    sets: float = 0.0
    author: float = 0.0
    examples: float = 0.0


def hear(rows: Sequence[CandidateRow]) -> BehaviourGroups:
    """Who is heard: viable candidates that pass anything at all; code that passes nothing is only broken."""
    heard = tuple(row for row in rows if row.viable and row.passed)
    sets: dict[frozenset[str], int] = {}
    for row in heard:
        sets[row.passed] = sets.get(row.passed, 0) + len(row.passed)
    return BehaviourGroups(rows=heard, sets=sets)


def agreement(check: str, voices: BehaviourGroups) -> tuple[float, float]:
    """Votes and sets (see `TrustSignals`) for one check."""
    ran = [row for row in voices.rows if check in row.statuses]
    passing = sum(check in row.passed for row in ran)
    votes = math.log((passing + 0.5) / (len(ran) - passing + 0.5))
    whole = sum(voices.sets.values())
    if not ran or not whole:
        return votes, 0.0
    share = sum(weight for passed, weight in voices.sets.items() if check in passed) / whole
    return votes, 2 * share - 1


def compute_uncertainty(mean_logprob: float | None) -> float:
    """How many nats per token the model was less sure than it should be; 0 where nothing is known."""
    return 0.0 if mean_logprob is None else max(0.0, SURE_LOGPROB - mean_logprob)


def compute_logit(signs: TrustSignals, unsure: float = 0.0) -> float:
    """The log odds that a check with these signs is right."""
    values = asdict(signs)
    return (
        INTERCEPT + sum((weight * values[name] for name, weight in WEIGHTS.items()), 0.0) - PER_NAT * unsure
    )


def compute_trust(signs: TrustSignals, *, heard: int, unsure: float = 0.0) -> float:
    """A trust in [0, 1].

    Args:
        signs: What speaks for the check.
        heard: Candidates that were run on it and are heard.
        unsure: See `compute_uncertainty`.
    """
    trust = 1 / (1 + math.exp(-max(-30.0, min(30.0, compute_logit(signs, unsure)))))
    return round(min(trust, MOST_BY_VOICES.get(heard, 1.0)), 4)
