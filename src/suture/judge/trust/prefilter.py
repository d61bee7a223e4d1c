"""Generated checks without those that need no run to be refused: repetitions, contradictions, empty ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from suture.core.records import Check, Provenance
from suture.judge.extraction.assert_checks import deduplicate_checks
from suture.judge.trust.check_claims import Claim, contradict, parse_claim

SAME = "a given check says the same"
CONTRADICTS = "it contradicts a given check"


@dataclass(frozen=True, kw_only=True)
class RejectedCheck:
    """A generated check that is not used, and why."""

    check: Check
    reason: str


@dataclass(frozen=True, kw_only=True)
class FilteredChecks:
    """Generated checks that are worth a run.

    Attributes:
        checks: Each once, with ids that are unique also among the given checks.
        claims: Check id -> what it claims.
        removed: Those that are refused, each with why.
        record: Author -> its checks that repeated a given one, and those that contradicted one.
    """

    checks: tuple[Check, ...]
    claims: dict[str, Claim]
    removed: tuple[RejectedCheck, ...]
    record: dict[Provenance, tuple[int, int]]


def filter_checks(
    generated: Sequence[Check], given: Sequence[Check], entry_point: str | None = None
) -> FilteredChecks:
    """Remove what repeats or contradicts the given checks, what repeats another, and what tests nothing.

    Of generated checks that contradict each other all stay: which of them is wrong is found out by running.

    Args:
        generated: Checks that a model wrote.
        given: Checks of the user and examples of the statement, which are right by definition.
        entry_point: What the checks should use; anything where it is not known.
    """
    examples = tuple(claim for check in given if (claim := parse_claim(check)) is not None)
    kept: list[Check] = []
    claims: list[Claim] = []
    removed: list[RejectedCheck] = []
    record = {check.provenance: (0, 0) for check in generated}
    for check in generated:
        claim = parse_claim(check)
        if claim is None:
            removed.append(RejectedCheck(check=check, reason="it cannot be read as Python"))
            continue
        reason = _unfit(claim, entry_point) or _against(claim, examples) or _repeats(claim, claims)
        if reason:
            removed.append(RejectedCheck(check=check, reason=reason))
            right, wrong = record[check.provenance]
            record[check.provenance] = (right + (reason == SAME), wrong + reason.startswith(CONTRADICTS))
        else:
            kept.append(check)
            claims.append(claim)
    named = deduplicate_checks((*given, *kept))[
        len(deduplicate_checks(given)) :
    ]  # equal ids of different checks are told apart
    return FilteredChecks(
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
