"""The exit code of each outcome of a run, and of each verdict on a change."""

from __future__ import annotations

from suture.core.records import Outcome
from suture.core.records.judgement import JudgementOutcome

EXIT_CODES: dict[Outcome, int] = {
    "healed": 0,
    "nothing_to_heal": 0,
    "not_healed": 1,
    "stuck": 1,
    "not_a_code_fault": 1,
    "budget_exhausted": 4,
    "waiting": 5,
    "infra_error": 6,
    "cancelled": 130,
}
"""Usage errors exit with 2 and missing prerequisites with 3 (see `suture.errors`)."""
JUDGEMENT_EXIT_CODES: dict[JudgementOutcome, int] = {
    "accepted": 0,
    "accepted_with_remarks": 0,
    "rejected": 1,
    "not_comparable": 6,
}
"""Verdict -> exit code of `suture judge`."""
