"""Generated checks without those that need no run to be refused: repetitions, contradictions, empty ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from suture.core.records import Check, Provenance
from suture.judge.extraction.assert_checks import distinct
from suture.judge.trust.check_claims import Claim, claim_of, contradict

SAME = "a given check says the same"
CONTRADICTS = "it contradicts a given check"


@dataclass(frozen=True, kw_only=True)
class Removed:
    """A generated check that is not used, and why."""

    check: Check
    reason: str


@dataclass(frozen=True, kw_only=True)
class Sifted:
    """Generated checks that are worth a run.

    Attributes:
        checks: Each once, with ids that are unique also among the given checks.
        claims: Check id -> what it claims.
        removed: Those that are refused, each with why.
        record: Author -> its checks that repeated a given one, and those that contradicted one.
    """

    checks: tuple[Check, ...]
    claims: dict[str, Claim]
    removed: tuple[Removed, ...]
    record: dict[Provenance, tuple[int, int]]


def sift(generated: Sequence[Check], given: Sequence[Check], entry_point: str | None = None) -> Sifted:
    """Remove what repeats or contradicts the given checks, what repeats another, and what tests nothing.

    Of generated checks that contradict each other all stay: which of them is wrong is found out by running.

    Args:
        generated: Checks that a model wrote.
        given: Checks of the user and examples of the statement, which are right by definition.
        entry_point: What the checks should use; anything where it is not known.
    """
    examples = tuple(claim for check in given if (claim := claim_of(check)) is not None)
    kept: list[Check] = []
    claims: list[Claim] = []
    removed: list[Removed] = []
    record = {check.provenance: (0, 0) for check in generated}
    for check in generated:
        claim = claim_of(check)
        if claim is None:
            removed.append(Removed(check=check, reason="it cannot be read as Python"))
            continue
        reason = _unfit(claim, entry_point) or _against(claim, examples) or _repeats(claim, claims)
        if reason:
            removed.append(Removed(check=check, reason=reason))
            right, wrong = record[check.provenance]
            record[check.provenance] = (right + (reason == SAME), wrong + reason.startswith(CONTRADICTS))
        else:
            kept.append(check)
            claims.append(claim)
    named = distinct((*given, *kept))[len(distinct(given)) :]  # equal ids of different checks are told apart
    return Sifted(
        checks=named,
        claims={check.id: claim for check, claim in zip(named, claims, strict=True)},
        removed=tuple(removed),
        record=record,
    )


def _unfit(claim: Claim, entry_point: str | None) -> str:
    if entry_point is not None and entry_point not in claim.names:
        return f"it does not use {entry_point}"
    return "it holds for any code" if claim.trivial else ""


def _against(claim: Claim, examples: Sequence[Claim]) -> str:
    for example in examples:
        if claim.program == example.program:
            return SAME
        if claim.expected is None or example.expected is None or claim.call != example.call:
            continue
        if contradict(claim.expected, example.expected):
            return f"{CONTRADICTS}: {example.program.splitlines()[-1]}"
        if claim.expected == example.expected or claim.expected.kind == "truth":
            return SAME
    return ""


def _repeats(claim: Claim, known: Sequence[Claim]) -> str:
    for other in known:
        same = bool(claim.call) and claim.call == other.call and repr(claim.expected) == repr(other.expected)
        if same or claim.program == other.program:
            return f"it repeats: {other.program.splitlines()[-1]}"
    return ""
