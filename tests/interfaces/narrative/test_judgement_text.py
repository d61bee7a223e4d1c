"""The screen of a judgement: counts in which each test is once, what proves the change, and each finding once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suture.core.records import CheckStatus
from suture.core.records.finding_text import render_finding, render_sign
from suture.core.records.judgement import (
    ChangeFinding,
    ComparedTests,
    FindingCode,
    GuardedLines,
    Judgement,
)
from suture.interfaces.narrative.judgement_text import judgement_as_json, list_facts, render_judgement

BEFORE: dict[str, CheckStatus] = {
    "t.py::test_old": "passed",
    "t.py::test_fixed": "failed",
    "t.py::test_edited": "failed",
    "t.py::test_table": "error",
}
FIXED = ("t.py::test_fixed", "t.py::test_table[1]")
NEW = ("t.py::test_new", "t.py::test_spare")
WEAKENED = ChangeFinding(
    code="failing_test_weakened", severity="reject", path="t.py", line=9, test="test_edited", before="a == 1"
)
HONEST = Judgement(
    outcome="accepted",
    tests=ComparedTests(
        passed=("t.py::test_old", *FIXED, *NEW), fixed=FIXED, proving=(NEW[0], FIXED[0]), unproving=NEW[1:]
    ),
    evidence="nonce",
    runs={"before": BEFORE},
)
CHEATING = replace(
    HONEST,
    outcome="rejected",
    findings=(WEAKENED, ChangeFinding(code="no_test_guards_change", severity="remark")),
    tests=ComparedTests(passed=("t.py::test_edited", *FIXED), fixed=FIXED, removed=("t.py::test_old",)),
)


def test_the_new_tests_of_a_change_are_counted_beside_those_that_it_fixes() -> None:
    facts = dict(list_facts(HONEST))
    assert facts["Tests"] == "5 pass (2 fixed, 2 new)"
    assert facts["Proof"] == "2 fixed tests and 1 new test fail without the change and pass with it"
    assert "\n            t.py::test_new\n" in render_judgement(HONEST, explain=True)


def test_deliberate_mistakes_that_the_tests_miss_are_named() -> None:
    guards = GuardedLines(changed=1, mistakes=2, noticed=1, missed=("cart.py, line 12: < becomes <=",))
    judgement = replace(HONEST, guards=guards)
    line = "\n            not noticed: cart.py, line 12: < becomes <="
    assert "notice 1 of 2 deliberate mistakes" in render_judgement(judgement)
    assert line in render_judgement(judgement, explain=True)
    assert line not in render_judgement(judgement)


def test_a_rejected_change_is_told_what_it_fixes_and_what_passes_only_by_its_tests() -> None:
    facts = dict(list_facts(CHEATING))
    assert facts["Tests"] == "3 pass (2 fixed, 1 only with the changed tests), 1 removed"
    assert facts["Proof"] == "2 fixed tests fail without the change and pass with it"


@pytest.mark.parametrize("code", ["memorises_examples", "capability", "test_hook_added"])
def test_nothing_is_called_fixed_or_proof_where_the_rejected_code_may_game_the_tests(
    code: FindingCode,
) -> None:
    finding = ChangeFinding(code=code, severity="reject", path="code.py", line=2, names=("total",))
    facts = dict(list_facts(replace(HONEST, outcome="rejected", findings=(finding,))))
    assert facts["Tests"] == "5 pass (2 newly passing, 2 new)"
    assert facts["Proof"].startswith("none: ")


def test_a_change_that_no_test_needs_has_no_proof_although_a_test_fails_without_it() -> None:
    tests = ComparedTests(passed=("t.py::test_old",), still_failing=("t.py::test_fixed",))
    facts = dict(list_facts(replace(HONEST, tests=tests)))
    assert facts["Tests"] == "1 pass, 1 still failing"
    assert facts["Proof"] == "no test fails without the change and passes with it"


def test_an_accepted_change_that_leaves_tests_failing_is_not_simply_called_accepted() -> None:
    tests = ComparedTests(passed=("t.py::test_old",), still_failing=("t.py::test_fixed", "t.py::test_edited"))
    accepted = replace(HONEST, tests=tests)
    remark = ChangeFinding(code="no_test_guards_change", severity="remark")
    remarked = replace(accepted, outcome="accepted_with_remarks", findings=(remark,))

    for judgement in (accepted, remarked):
        assert "but 2 tests still fail" in render_judgement(judgement).splitlines()[0]
        answer = judgement_as_json(judgement)
        assert "but 2 tests still fail" in answer["verdict"]
        assert len(answer["tests"]["still_failing"]) == 2
    assert "still fail" not in render_judgement(replace(accepted, outcome="rejected")).splitlines()[0]


@pytest.mark.parametrize("explain", [False, True])
def test_each_finding_is_on_the_screen_once_and_with_its_place(explain: bool) -> None:
    screen = render_judgement(CHEATING, explain=explain)
    sentence = f"t.py:9: {render_finding(WEAKENED)}"
    assert screen.count("test_edited is changed") == 1
    assert screen.count("nothing shows that it is needed") == 1
    assert screen.startswith("Rejected.\n" if explain else f"Rejected: {sentence}\n")
    assert ("[failing_test_weakened]\n            - a == 1" in screen) is explain


def test_a_sign_of_another_version_is_shown_as_it_is_recorded() -> None:
    assert render_sign("x{y}", "names", 1, 2, " (line 2)") == "x{y} (line 2)"


def test_the_headline_of_remarks_begins_with_what_is_fixed_and_names_the_file() -> None:
    hooks = ChangeFinding(
        code="configuration_changed", severity="remark", path=".claude/settings.json", detail="agent_hooks"
    )
    judgement = replace(HONEST, outcome="accepted_with_remarks", findings=(hooks,))
    headline = judgement_as_json(judgement)["headline"]
    assert headline == (
        f"Accepted ({len(FIXED)} fixed), with remarks: .claude/settings.json: this file holds the hooks of a coding "
        "agent: check that the gate is still there"
    )
