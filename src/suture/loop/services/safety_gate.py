"""The safety scan of a run: what is not run, what a person allowed, what is told with a result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from suture.core.ledger import Event, RunFolder, select_events
from suture.core.ledger.kinds import ReviewAnswered, ReviewAsked
from suture.core.records import Candidate, CheckOutcome, Counterexample, Verdict, VerdictNote
from suture.project.safety import Finding, Levels, scan_change
from suture.project.workspace import text_of

MARK = "safety: "
"""What the id of a finding's check begins with; no test of a project is called so."""
MOST_TOLD = 20
"""Findings that are told one by one; the rest are counted."""
BY_A_PERSON = ("user", "edit")
Use = tuple[str, str]
"""A rule's mark and a piece of code: what a person allows, wherever it stands."""


def findings_in(candidate: Candidate, before: Mapping[str, bytes], levels: Levels) -> tuple[Finding, ...]:
    """What a candidate newly does that a rule speaks of; what a person wrote is not looked at.

    Args:
        candidate: Its files are not trusted.
        before: The project as it was.
        levels: What becomes of each rule's findings.
    """
    if candidate.origin in BY_A_PERSON:
        return ()
    then = {path: text_of(before[path]) for path in candidate.files if path in before}
    return scan_change(then, candidate.files, levels)


def use_of(finding: Finding) -> Use:
    """What a person would allow."""
    return f"{MARK}{finding.rule}", finding.code


def find_answered_uses(
    folder: RunFolder, events: Iterable[Event], *, before_round: int | None = None, allowed: bool = True
) -> frozenset[Use]:
    """The uses that a person was asked about and allowed; with `allowed` off all that they answered.

    Args:
        folder: The run's.
        events: Its ledger's.
        before_round: Questions of this round and later do not count.
        allowed: Whether only approvals count.
    """
    kept = tuple(events)
    answers = {answered.key: answered.choice for _, answered in select_events(kept, ReviewAnswered)}
    uses: set[Use] = set()
    for _, asked in select_events(kept, ReviewAsked):
        if asked.stage != "safety" or (before_round is not None and asked.round >= before_round):
            continue
        choice = answers.get(asked.key)
        if choice is not None and (choice == "approve" or not allowed):
            verdict = folder.get_record(Verdict, asked.verdict)
            uses |= {(fact.check_id, fact.call) for fact in verdict.counterexamples}
    return frozenset(uses)


def make_refusal(candidate: Candidate, findings: Iterable[Finding], *, waits: bool = False) -> Verdict:
    """The verdict on a candidate that is not run, with each finding as a fact for who writes the next.

    Args:
        candidate: The one that is refused.
        findings: Why; at least one.
        waits: Whether a person is being asked, who may still allow it.
    """
    shown = tuple(findings)[:MOST_TOLD]
    why = "a person has to allow it" if waits else "it is not run"
    outcomes = [
        CheckOutcome(
            check_id=f"{MARK}{one.rule}",
            status="error",
            counterexample=Counterexample(
                check_id=f"{MARK}{one.rule}",
                call=one.code,
                actual=f"no result, for {why}: {one.why} (rule {one.rule})",
                expected="the same by other means",
                file=one.path,
                line=one.line,
            ),
        )
        for one in shown
    ]
    return Verdict(
        candidate=candidate.hash,
        outcomes=tuple(outcomes),
        evidence="split",
        output="\n".join(f"{why}: {one.as_words()}" for one in shown),
        notes=(VerdictNote(code="scan_asks" if waits else "scan_refused"),),
    )


def is_refusal(verdict: Verdict) -> bool:
    """Whether a verdict says that its candidate was not run."""
    return any(outcome.check_id.startswith(MARK) for outcome in verdict.outcomes)


def summarise_findings(findings: Iterable[Finding]) -> tuple[str, ...]:
    """What is told with a result, a line each."""
    lines = [f"safety: {one.as_words()}" for one in findings]
    more = [f"safety: and {len(lines) - MOST_TOLD} more"] if len(lines) > MOST_TOLD else []
    return (*lines[:MOST_TOLD], *more)
