"""Records are encoded as JSON without loss, and hashed by their content."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suture.core import records
from suture.core.records import (
    Candidate,
    CapabilityUse,
    Check,
    CheckOutcome,
    CodeFrame,
    Counterexample,
    Critique,
    Diagnosis,
    EarlierVersion,
    FailingGeneratedTest,
    Move,
    Plan,
    Project,
    Reason,
    Result,
    Spend,
    Subtask,
    Task,
    TaskService,
    Verdict,
    VerdictNote,
    content_hash,
    decode_record,
    encode_record,
)

CANDIDATE = Candidate(files={"a.py": "x = 'é'\n"}, origin="repair", parent="p" * 64, label="repair of p")
COUNTEREXAMPLE = Counterexample(check_id="t::x", call="f(1)", expected="2", actual="3", file="a.py", line=7)
OUTCOME = CheckOutcome(
    check_id="t::x", status="failed", trust=0.5, evidence="nonce", counterexample=COUNTEREXAMPLE
)
VERDICT = Verdict(
    candidate="c",
    outcomes=(OUTCOME,),
    evidence="nonce",
    output="E",
    wall_s=1.5,
    notes=(VerdictNote(code="cut_off"),),
)

SERVICE = TaskService(
    command="serve", port=7001, ready="true", timeout_s=2.5, variables={"URL": "http://127.0.0.1"}
)
EARLIER = EarlierVersion(commit="0123456789ab", subject="levels", files={"a.py": "x = 1\n"})
SUBTASK = Subtask(goal="join them", needs=(1,))

FRAME = CodeFrame(file="a.py", line=7, function="f")
FAILING_TEST = FailingGeneratedTest(
    test="assert f(1) == 2", provenance="adversarial", trust=0.15, fact=COUNTEREXAMPLE
)

EXAMPLES: tuple[Any, ...] = (
    FRAME,
    FAILING_TEST,
    EARLIER,
    Critique(issues=("stops one early",), score=0.5, approved=False),
    Plan(subtasks=(Subtask(goal="sort them"), SUBTASK)),
    SUBTASK,
    Diagnosis(category="boundary", root_cause="stops one early", strategy="minimal", confidence=0.5),
    Task(
        statement="s",
        kind="heal",
        entry_point="f",
        files={"a.py": b"\xff\x00\xfb\xef", "empty": b""},
        checks=(Check(id="c", provenance="visible", source="assert f(1)", trust=0.9),),
        test_command=("python", "-m", "pytest"),
        protected=("tests/",),
    ),
    Task(statement="", earlier_versions=(EARLIER,), since="HEAD~1"),
    Task(statement="", services={"web": SERVICE, "redis": TaskService()}),
    SERVICE,
    Project(kind="web_app", name="books", scaffold=("app.py",), sample="", is_feature_untested=True),
    Check(id="c", provenance="oracle"),
    CANDIDATE,
    CapabilityUse(code="inspects_callers", path="a.py", line=3, name="sys._getframe"),
    COUNTEREXAMPLE,
    OUTCOME,
    VERDICT,
    VerdictNote(code="protected_file", subjects=("conftest.py",)),
    Reason(code="failing_checks", count=3),
    Move(kind="stop", outcome="stuck", reason=Reason(code="no_progress", count=2)),
    Move(kind="repair", parent="p", strategy="guard", temperature=0.7, index=3),
    Spend(attempts=1, tokens=3, prompt_tokens=1, completion_tokens=2, model_calls=1, seconds=0.25),
    Result(
        run_id="r",
        outcome="healed",
        reason=Reason(code="checks_pass"),
        candidate=CANDIDATE,
        verdict=VERDICT,
        evidence="split",
    ),
    Result(run_id="r", outcome="infra_error", reason=Reason(code="fault", fault="OSError", detail="dead")),
)


def encode_and_decode(record: Any) -> Any:
    return decode_record(type(record), json.loads(json.dumps(encode_record(record))))


def test_every_record_class_has_an_example() -> None:
    record_classes = {value for value in vars(records).values() if dataclasses.is_dataclass(value)}
    assert {type(example) for example in EXAMPLES} == record_classes


@pytest.mark.parametrize("record", EXAMPLES, ids=lambda record: type(record).__name__)
def test_a_record_is_encoded_without_loss(record: Any) -> None:
    assert encode_and_decode(record) == record


@given(st.dictionaries(st.text(), st.binary()))
def test_any_bytes_are_encoded_without_loss(files: dict[str, bytes]) -> None:
    task = Task(statement="s", files=files)
    assert encode_and_decode(task) == task


@pytest.mark.parametrize(
    "text", ["\udcff latin-1 bytes of a diff", "half a pair \ud83d", "\x00\x1b[31m", "\u2028"]
)
def test_lone_surrogates_are_encoded_without_loss(text: str) -> None:
    reason = Reason(code="fault", detail=text)
    result = Result(run_id="r", outcome="healed", reason=reason, diff=text)
    assert encode_and_decode(result) == result


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"kind": "dance"}, "Move.kind cannot be 'dance'"),
        ({}, "Move.kind is missing"),
        ({"kind": "sample", "index": "3"}, "Move.index"),
        ({"kind": "sample", "index": True}, "Move.index"),
        ({"kind": "sample", "temperature": "hot"}, "Move.temperature"),
    ],
)
def test_malformed_records_are_refused(data: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decode_record(Move, data)


def test_bytes_that_are_not_base64_are_refused() -> None:
    with pytest.raises(ValueError):
        decode_record(Task, {"statement": "", "files": {"a": "*"}})


def test_unknown_fields_are_ignored() -> None:
    assert decode_record(Move, {"kind": "sample", "colour": "blue"}) == Move(kind="sample")


def test_candidates_with_the_same_code_have_the_same_hash() -> None:
    same_code = dataclasses.replace(CANDIDATE, origin="sample", parent=None, label="sample 2")
    other = dataclasses.replace(CANDIDATE, files={"a.py": "x = 'e'\n"})
    assert same_code.hash == CANDIDATE.hash
    assert other.hash != CANDIDATE.hash


def test_the_hash_ignores_order_and_accepts_lone_surrogates() -> None:
    assert content_hash({"a": 1, "b": 2}) == content_hash({"b": 2, "a": 1})
    assert len(content_hash("\ud83d")) == 64


def test_a_verdict_without_checks_has_not_passed() -> None:
    skipped = CheckOutcome(check_id="s", status="skipped")
    passed = CheckOutcome(check_id="p", status="passed")

    assert not Verdict(candidate="c", outcomes=(), evidence="split").all_passed
    assert not Verdict(candidate="c", outcomes=(skipped,), evidence="split").all_passed
    assert Verdict(candidate="c", outcomes=(skipped, passed), evidence="split").all_passed
    assert not Verdict(candidate="c", outcomes=(passed, OUTCOME), evidence="split").all_passed
    assert VERDICT.counterexamples == (COUNTEREXAMPLE,)


@pytest.mark.parametrize("status", ["failed", "error", "timeout", "missing"])
def test_a_check_neither_passed_nor_skipped_has_failed(status: Any) -> None:
    verdict = Verdict(candidate="c", outcomes=(CheckOutcome(check_id="x", status=status),), evidence="split")
    assert verdict.failed == {"x"}
