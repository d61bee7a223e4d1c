"""Words for the closed sets of codes that run stories contain.

Every table maps each code of a `Literal` alias to the text that people read. A test walks all codes, so a
code without words is found before a user meets it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the help page imports this module, and the event types are dozens
    from suture.core.ledger.kinds import ReviewStage
    from suture.core.records import Evidence, MoveKind, Outcome

OUTCOME_TEXTS: dict[Outcome, str] = {
    "healed": "Healed",
    "nothing_to_heal": "Nothing to heal",
    "not_healed": "Not healed",
    "stuck": "Gave up (stuck)",
    "not_a_code_fault": "Not the code's fault",
    "budget_exhausted": "Stopped at the limit (budget_exhausted)",
    "waiting": "Waiting for you",
    "infra_error": "Broke off (infra_error)",
    "cancelled": "Cancelled",
}
EVIDENCE_TEXTS: dict[Evidence, str] = {
    "split": "a judge that never loads the code under test",
    "nonce": "the test runner's report, signed with a secret of this run",
    "report": "the test runner's report and exit status, so code that prints such a report passes too",
    "exit_status": "the exit status alone, so code that ends the command with 0 passes too",
}
"""What each kind of evidence is worth (see docs/verdicts.md)."""
MOVE_TEXTS: dict[MoveKind, str] = {
    "mutate": "small edits without a model",
    "sample": "fresh code",
    "repair": "repair",
    "agent": "an agent",
    "stop": "stop",
}
REVIEW_STAGE_TEXTS: dict[ReviewStage, str] = {
    "search": "small edits without a model",
    "samples": "fresh candidates",
    "repairs": "repairs",
    "hand_over": "the delivery",
    "distinguish": "choosing between repairs that differ",
    "test": "trusting a test that a model wrote",
    "safety": "running code that the safety scan reports",
}
"""What a run asks a person about at each stage, as in "waits for your answer before ..."."""
