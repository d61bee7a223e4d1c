"""Ask a person about what candidates newly do, before any of them runs."""

from __future__ import annotations

from collections.abc import Iterable

from suture.core.ledger.kinds import ReviewAsked
from suture.core.records import content_hash
from suture.loop.context import RunContext
from suture.loop.policy.attempts import Attempt
from suture.loop.services.safety_gate import make_refusal, rule_use
from suture.loop.state import LoopState
from suture.project.safety import Finding


def find_safety_question(
    waiting: Iterable[Attempt], state: LoopState, context: RunContext
) -> ReviewAsked | None:
    """Return one question about all findings that a person has to allow; `None` if there are none.

    An answer from an earlier round holds for the same use of a rule. Candidates that the scan blocks are not
    asked about.
    """
    answered_uses = context.safety.answered_uses(before_round=state["round"])
    questionable: list[tuple[Attempt, Finding]] = []
    for attempt in waiting:
        findings = context.safety.scan(context.candidates.load(attempt.blob))
        if not any(finding.level == "block" for finding in findings):
            questionable += [
                (attempt, finding)
                for finding in findings
                if finding.level == "ask" and rule_use(finding) not in answered_uses
            ]
    if not questionable:
        return None
    attempt, _ = questionable[0]
    uses = list(dict.fromkeys(rule_use(finding) for _, finding in questionable))
    candidate = context.candidates.load(attempt.blob)
    verdict = make_refusal(candidate, [finding for _, finding in questionable], awaits_answer=True)
    return ReviewAsked(
        key=content_hash({"stage": "safety", "round": state["round"], "uses": uses}),
        stage="safety",
        decision=state["decisions"],
        round=state["round"],
        candidate=attempt.candidate,
        blob=attempt.blob,
        verdict=context.candidates.save(verdict),
    )
