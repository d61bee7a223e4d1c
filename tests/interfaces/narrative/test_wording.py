"""Every code of a closed set that people read has a text."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

import suture
from suture.core.ledger.event import CATALOGUE
from suture.core.ledger.kinds import BudgetRefused, BudgetReserved, BudgetSettled, ReviewStage
from suture.core.records import Evidence, MoveKind, Outcome, Reason, ReasonCode, render_reason
from suture.interfaces.ci.delivery_gates import REFUSAL_TEXTS, RefusalReason
from suture.interfaces.narrative import wording
from suture.interfaces.narrative.event_text import RENDERERS
from suture.interfaces.narrative.exit_codes import EXIT_CODES

TABLES = {
    "outcomes": (wording.OUTCOME_TEXTS, Outcome),
    "exit codes": (EXIT_CODES, Outcome),
    "evidence": (wording.EVIDENCE_TEXTS, Evidence),
    "moves": (wording.MOVE_TEXTS, MoveKind),
    "review stages": (wording.REVIEW_STAGE_TEXTS, ReviewStage),
    "review questions": (wording.REVIEW_QUESTION_TEXTS, ReviewStage),
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
    rendered = set(RENDERERS)
    silent = {kind for kind in CATALOGUE.values() if kind not in rendered | bookkeeping}
    assert {kind.__name__ for kind in silent} <= GENERIC_EVENTS


GENERIC_EVENTS = {"AdviceGiven", "PromptShrunk", "SearchSkipped"}
"""Events that are shown by their kind and data."""


def tables_of_texts() -> list[tuple[str, str, object]]:
    """Every module-level `dict[SomeCode, str]` named `*_TEXTS` in the package."""
    root = Path(suture.__file__).parent
    found = []
    for path in sorted(root.rglob("*.py")):
        text = path.read_text("utf-8")
        if "_TEXTS: " not in text:
            continue
        module = ".".join(("suture", *path.relative_to(root).with_suffix("").parts))
        for node in ast.parse(text).body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                if node.target.id.endswith("_TEXTS"):
                    found.append((module, node.target.id, node))
    return found


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, name, _ in tables_of_texts()])
def test_a_table_of_texts_covers_its_closed_set(module: str, name: str) -> None:
    loaded = importlib.import_module(module)
    namespace = {**vars(importlib.import_module("suture.core.records")), **vars(loaded)}
    for extra in ("suture.core.ledger.kinds", "suture.judge"):
        namespace = {**vars(importlib.import_module(extra)), **namespace}
    try:
        annotation = get_type_hints(loaded, globalns=namespace)[name]
    except NameError as missing:
        pytest.skip(f"its codes are imported for type checkers alone: {missing}")
    codes = get_args(get_args(annotation)[0])
    if codes:
        assert set(codes) <= set(getattr(loaded, name))
