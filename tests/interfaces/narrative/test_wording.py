"""Every code that people read has a text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_args
from unittest.mock import MagicMock

import pytest

from suture.core.ledger.event import CATALOGUE, Payload
from suture.core.ledger.kinds import BudgetRefused, BudgetReserved, BudgetSettled, ReviewStage
from suture.core.records import (
    Evidence,
    MoveKind,
    Outcome,
    Reason,
    ReasonCode,
    VerdictNote,
    VerdictNoteCode,
    render_reason,
)
from suture.interfaces.ci.delivery_gates import REFUSAL_TEXTS, RefusalReason
from suture.interfaces.narrative import wording
from suture.interfaces.narrative.event_text import render_payload
from suture.interfaces.narrative.exit_codes import EXIT_CODES

TABLES: dict[str, tuple[Mapping[Any, object], Any]] = {
    "outcomes": (wording.OUTCOME_TEXTS, Outcome),
    "exit codes": (EXIT_CODES, Outcome),
    "evidence": (wording.EVIDENCE_TEXTS, Evidence),
    "moves": (wording.MOVE_TEXTS, MoveKind),
    "review stages": (wording.REVIEW_STAGE_TEXTS, ReviewStage),
    "review questions": (wording.REVIEW_QUESTION_TEXTS, ReviewStage),
    "notes on a verdict": (wording.VERDICT_NOTE_TEXTS, VerdictNoteCode),
    "refusals in CI": (REFUSAL_TEXTS, RefusalReason),
}


@pytest.mark.parametrize("name", TABLES)
def test_every_code_has_a_text(name: str) -> None:
    table, codes = TABLES[name]
    assert set(table) == set(get_args(codes))


@pytest.mark.parametrize("code", get_args(ReasonCode))
def test_every_reason_has_a_text_unless_its_text_is_the_detail(code: ReasonCode) -> None:
    assert render_reason(Reason(code=code, detail="a detail"))


def test_every_kind_of_event_is_rendered_except_bookkeeping() -> None:
    bookkeeping = {BudgetReserved, BudgetRefused, BudgetSettled}
    silent = {kind for kind in CATALOGUE.values() if not has_wording(kind)} - bookkeeping
    assert {kind.__name__ for kind in silent} <= GENERIC_EVENTS


def has_wording(kind: type[Payload]) -> bool:
    """Return whether an event of a kind is rendered as text."""
    payload = object.__new__(kind)
    for field in fields(kind):
        object.__setattr__(payload, field.name, MagicMock())
    try:
        return render_payload(payload) is not None
    except (LookupError, TypeError, ValueError):  # the kind has a text, which needs real values
        return True


GENERIC_EVENTS = {"AdviceGiven", "PromptShrunk", "SearchSkipped"}
"""Events that are shown by their kind and data."""


@pytest.mark.parametrize("evidence", get_args(Evidence))
def test_the_terminal_names_no_page_of_a_checkout_that_its_user_may_not_have(evidence: Evidence) -> None:
    assert "docs/" not in wording.render_judge(evidence, has_diff=True)


def test_a_diff_is_to_be_read_only_where_there_is_one_and_where_it_can_deceive() -> None:
    assert wording.describe_evidence("nonce", has_diff=True).endswith("so read the diff")
    assert "diff" not in wording.describe_evidence("nonce", has_diff=False)
    assert "diff" not in wording.describe_evidence("split", has_diff=True)


@pytest.mark.parametrize("evidence", get_args(Evidence))
def test_the_page_and_other_programs_are_told_no_file_that_they_may_not_have(evidence: Evidence) -> None:
    assert "docs/" not in wording.EVIDENCE_TEXTS[evidence]


def test_a_note_that_says_no_more_than_the_evidence_is_left_out() -> None:
    notes = [
        VerdictNote(code="shared_process"),
        VerdictNote(code="signed_report", subjects=("node --test",)),
        VerdictNote(code="cut_off"),
    ]
    assert wording.render_verdict_notes(notes) == [wording.VERDICT_NOTE_TEXTS["cut_off"]]
