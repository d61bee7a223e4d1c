"""Sentences about a result say only what is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from project_runs import add_healed_run
from suture.core.ledger import Event, Ledger, Payload, RunFolder, find_doubt, kinds, load_result
from suture.core.ledger.event import encode_payload
from suture.core.records import CheckOutcome, Move, Reason, Spend, UnmeasuredReason, Verdict
from suture.interfaces.narrative.certificate_rendering import (
    certificate_lines,
    certificate_summary_lines,
    render_undo,
)
from suture.interfaces.narrative.event_text import UNCHANGED_CODE, render_event, render_payload
from suture.interfaces.narrative.plain_text import format_share
from suture.interfaces.narrative.result_text import applied_files, next_step_lines
from suture.interfaces.narrative.run_progress_text import (
    ProgressNarrator,
    outcome_sentence,
    render_short_result,
)
from suture.interfaces.narrative.search_text import render_search_ending
from suture.interfaces.narrative.spend_text import describe_spend, limits_without_model
from suture.interfaces.narrative.wording import render_confidence


def summarise(*, mutants: int, killed: int, is_new: bool = False) -> str:
    certificate = kinds.CertificateWritten(
        file="certificate.json",
        fixed=1,
        edits=1,
        edits_found=1,
        is_minimal=True,
        statements=2,
        covered=2,
        mutants=mutants,
        selected=8,
        killed=killed,
        confidence=0.5,
    )
    return next(certificate_summary_lines(certificate, "run", "confidence 0.50", is_new=is_new))


@pytest.mark.parametrize(
    ("mutants", "killed", "sentence"),
    [
        (0, 0, "Your tests run every changed line. Confidence 0.50."),
        (
            4,
            3,
            "Your tests run every changed line and catch 3 of 8 deliberate mistakes there. Confidence 0.50.",
        ),
    ],
)
def test_mistakes_are_counted_only_if_some_were_tried(mutants: int, killed: int, sentence: str) -> None:
    assert summarise(mutants=mutants, killed=killed) == sentence


def test_checks_of_new_code_are_not_called_the_tests_of_the_user() -> None:
    sentence = "The checks run every line and catch 3 of 8 deliberate mistakes there. Confidence 0.50."
    assert summarise(mutants=4, killed=3, is_new=True) == sentence


def test_tests_of_a_project_that_do_not_pass_are_named() -> None:
    reason = "they do not pass on the code: 1 failed"
    data = {"role": "project_tester", "tests": [], "dropped": {reason: 1}}
    event = Event(seq=1, time_s=0.0, kind="tests.written", data=data)
    assert ProgressNarrator().lines_for(event) == (
        f"The tests that the model wrote for the project are left out: {reason}",
    )


def test_a_change_that_was_applied_again_is_applied(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "runs" / add_healed_run(tmp_path, tmp_path, {}))
    applied = kinds.TreeApplied(root="/p", files=("a.py",), undo="")
    with Ledger(run.ledger_path) as ledger:
        ledger.append_all([applied, kinds.TreeUndone(root="/p")])
        assert applied_files(run) == ()
        ledger.append(applied)
    assert applied_files(run) == ("a.py",)


@pytest.mark.parametrize(
    ("files", "reason", "line"),
    [
        (("a.py",), "", "Reverted: a.py in /p"),
        (("a.py",), "the change was interrupted", "The change was interrupted. Reverted: a.py in /p"),
        ((), "the change could not be written", "The change could not be written."),
    ],
)
def test_the_reason_of_a_revert_is_a_sentence(files: tuple[str, ...], reason: str, line: str) -> None:
    assert render_undo(kinds.TreeUndone(root="/p", files=files, reason=reason)) == line


def narrate(*payloads: Payload) -> list[str]:
    narrator = ProgressNarrator()
    events = [
        Event(seq=number, time_s=0.0, kind=payload.event_kind, data=encode_payload(payload))
        for number, payload in enumerate(payloads, 1)
    ]
    return [line for event in events for line in narrator.lines_for(event)]


@pytest.mark.parametrize(
    ("passed", "lines"), [(2, []), (1, ["candidate 1, 140 tokens in 69.0 s: 1 of 2 checks passes"])]
)
def test_the_final_form_of_a_candidate_has_a_line_only_if_its_result_differs(
    passed: int, lines: list[str]
) -> None:
    label = "sample 1, greedy"
    assert narrate(
        kinds.RunStarted(kind="write"),
        kinds.ModelCalled(role="coder", call="k", prompt_tokens=100, completion_tokens=140, seconds=69.0),
        kinds.CandidateProposed(candidate="c1", blob="b", origin="sample", label=label, call="k"),
        kinds.CandidateChecked(candidate="c1", label=label, passed=2, failed=0, verdict="v"),
        kinds.CandidateProposed(candidate="c2", blob="b", origin="sample", label=label, parent="c1"),
        kinds.CandidateChecked(candidate="c2", label=label, passed=passed, failed=2 - passed, verdict="v"),
    ) == ["candidate 1, 140 tokens in 69.0 s: 2 of 2 checks pass", *lines]


def test_what_linters_report_is_counted_as_findings_and_not_as_tests() -> None:
    label = "ruff check --fix ."
    lines = narrate(
        kinds.TaskPrepared(checks=1, test_command=("ruff", "check", "."), tools=("ruff check",)),
        kinds.CandidateChecked(
            candidate=UNCHANGED_CODE, passed=2, failed=6, tool_checks=5, findings=5, verdict="v"
        ),
        kinds.CandidateChecked(
            candidate="c1", label=label, passed=7, failed=1, tool_checks=5, findings=1, verdict="v"
        ),
        kinds.CandidateChecked(
            candidate="c2", label=label, passed=6, failed=0, tool_checks=6, findings=0, verdict="v"
        ),
    )
    assert lines == [
        "Your code: 5 findings of ruff, 2 of 3 tests pass (ruff check .).",
        "ruff check --fix .: 1 finding left, 3 of 3 tests pass",
        "ruff check --fix .: no findings left",
    ]


@pytest.mark.parametrize(
    ("model", "ending", "names_option"),
    [("local:small", "time_over", True), ("none", "time_over", False), ("local:small", "all_tried", False)],
)
def test_a_search_that_a_model_cuts_short_says_how_it_may_take_longer(
    model: str, ending: kinds.SearchEnding, names_option: bool
) -> None:
    search = kinds.SearchFinished(
        candidates_tried=1557, seconds=60.1, ending=ending, time_limit="repair.seconds"
    )
    _, line = ["", *narrate(kinds.RunStarted(kind="heal", model=model), search)]
    assert ("all 1,557 edits" in line) is (ending == "all_tried")
    assert ("repair.seconds" in line) is (ending == "time_over")
    assert ("--no-model" in line) is names_option


def test_a_search_that_only_just_failed_shows_its_near_miss_and_calls_it_no_repair() -> None:
    diff = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
    near_miss = kinds.NearMiss(
        path="a.py", label="line 1: 1 becomes 2", broken_test="t.py::test_b", diff=diff
    )
    search = kinds.SearchFinished(candidates_tried=9, ending="all_tried", near_misses=(near_miss,))

    *_, tried, line = narrate(kinds.RunStarted(kind="heal", model="local:small"), search)

    assert "all 9 edits" in tried
    assert "not a repair" in line
    assert "t.py::test_b" in line
    assert "1 becomes 2" in line


def test_the_user_reads_of_their_code_and_not_of_its_hash() -> None:
    checked = kinds.CandidateChecked(candidate=UNCHANGED_CODE, label="", passed=2, failed=1, verdict="v")
    assert render_payload(checked) == "checked your code: 2 of 3 pass"


@pytest.mark.parametrize("limits", [{"attempts": 12, "tokens": 60_000, "seconds": 900}, {}])
def test_a_run_without_a_model_does_not_count_attempts_and_tokens(limits: dict[str, float | None]) -> None:
    text = describe_spend(Spend(seconds=5), limits_without_model(limits))
    assert text == ("5 of 900 s" if limits else "5 s")


@pytest.mark.parametrize(("model", "is_shown"), [("none", True), ("local:small", False)])
def test_a_language_without_a_search_is_named_before_anything_runs(model: str, is_shown: bool) -> None:
    lines = narrate(kinds.RunStarted(kind="heal", model=model, unsearched_language="Rust"))
    assert ("Suture does not search Rust code" in "".join(lines)) == is_shown


def test_repairs_that_behave_alike_are_counted_once_beside_all_repairs() -> None:
    repair = kinds.FoundRepair(label="a becomes b", file="a.py", score=1.0)
    finished = kinds.SearchFinished(
        candidates_tried=60, seconds=1.0, plausible_count=5, repairs=(repair, repair)
    )
    text = render_payload(finished) or ""
    assert "2 changes make all tests pass; 3 more edits also pass; they behave like one of these, or" in text


@pytest.mark.parametrize("unmeasured", [None, "no_tests"])
def test_nothing_is_said_about_coverage_where_no_line_was_to_run(unmeasured: UnmeasuredReason | None) -> None:
    certificate = kinds.CertificateWritten(
        file="certificate.json",
        fixed=1,
        edits=1,
        edits_found=1,
        is_minimal=True,
        statements=0,
        covered=0,
        coverage_unmeasured=unmeasured,
        mutants=0,
        killed=0,
        confidence=0.5,
    )
    assert list(certificate_summary_lines(certificate, "run", "confidence 0.50")) == ["Confidence 0.50."]


def test_a_candidate_that_is_judged_again_with_the_same_result_is_reported_once() -> None:
    checked = kinds.CandidateChecked(candidate="c1", label="candidate 1", passed=5, failed=0, verdict="v")
    failing = kinds.CandidateChecked(candidate="c1", label="candidate 1", passed=4, failed=1, verdict="w")
    written = kinds.RunStarted(kind="write", model="local:small")
    confirmed = kinds.ExamplesConfirmed(asserts=("assert f(1) == 2",))

    assert sum("5 of 5" in line for line in narrate(written, checked, confirmed, checked)) == 1
    assert len([line for line in narrate(written, checked, confirmed, failing) if "checks pass" in line]) == 2


@pytest.mark.parametrize(("limit", "is_suggested"), [(12, True), (0, False)])
def test_a_run_without_attempts_left_says_how_to_allow_more(
    tmp_path: Path, limit: int, is_suggested: bool
) -> None:
    run = RunFolder(tmp_path / "runs" / add_healed_run(tmp_path, tmp_path, {}))
    with Ledger(run.ledger_path) as ledger:
        ledger.append(kinds.RunStarted(kind="heal", model="local:small"))
    healed = load_result(run)
    assert healed is not None
    failing = CheckOutcome(check_id="t", status="failed")
    result = replace(
        healed,
        outcome="budget_exhausted",
        reason=Reason(code="attempts_used", limit=limit),
        verdict=Verdict(candidate="c", evidence="split", outcomes=(failing,)),
    )
    assert any("--attempts 24" in line for line in next_step_lines(result, run)) is is_suggested


@pytest.mark.parametrize(
    ("reason", "has_answered", "advice"),
    [
        (Reason(code="no_progress", count=3), True, "Try a larger model"),
        (Reason(code="attempts_used", limit=2), False, "budget.attempts=4"),
        (Reason(code="next_call_over_budget"), True, "budget.tokens=8000"),
        (Reason(code="budget_exceeded", fault="seconds", limit=60), False, "budget.seconds=120"),
        (Reason(code="no_model"), False, "Let a model continue"),
        (Reason(code="all_tests_skipped"), False, ""),
    ],
)
def test_the_advice_follows_from_what_ended_the_run(
    tmp_path: Path, reason: Reason, advice: str, *, has_answered: bool
) -> None:
    run = RunFolder(tmp_path / "runs" / add_healed_run(tmp_path, tmp_path, {}))
    with Ledger(run.ledger_path) as ledger:
        ledger.append(kinds.MovesDecided(decision=1, moves=(Move(kind="sample"),)))
        refused = kinds.BudgetRefused(purpose="a call", act="a", limit_kind="tokens", used=3_900, limit=4_000)
        ledger.append(refused)
        if has_answered:
            ledger.append(kinds.ModelCalled(prompt_tokens=1, completion_tokens=1))
    healed = load_result(run)
    assert healed is not None
    verdict = Verdict(
        candidate="c", evidence="split", outcomes=(CheckOutcome(check_id="t", status="failed"),)
    )
    result = replace(healed, outcome="budget_exhausted", reason=reason, verdict=verdict, diff="")

    lines = list(next_step_lines(result, run))

    assert any(advice in line for line in lines) is bool(advice)
    assert any("larger model" in line for line in lines) is ("larger model" in advice)


@pytest.mark.parametrize(
    ("time_limit", "advice", "ending"),
    [
        (
            "budget.seconds",
            "Give the search more time (next time: --seconds 120): suture fork {} --set budget.seconds=120",
            "the time for the search was over: what --seconds (budget.seconds) leaves for it",
        ),
        (
            "repair.seconds",
            "Give the search more time: suture fork {} --set repair.seconds=60",
            "the time for the search was over: repair.seconds",
        ),
    ],
)
def test_a_search_that_ran_out_of_time_names_the_setting_that_gives_it_more(
    tmp_path: Path, time_limit: Literal["repair.seconds", "budget.seconds"], advice: str, ending: str
) -> None:
    run = RunFolder(tmp_path / "runs" / add_healed_run(tmp_path, tmp_path, {}))
    search = kinds.SearchFinished(ending="time_over", time_limit=time_limit)
    with Ledger(run.ledger_path) as ledger:
        ledger.append(kinds.RunStarted(kind="heal", model="none", limits={"seconds": 60}))
        ledger.append(kinds.SearchStarted(files=(), failing=1, candidates=9, seconds=30, seed=0))
        ledger.append(search)
    healed = load_result(run)
    assert healed is not None
    result = replace(healed, outcome="not_healed", reason=Reason(code="no_model"), diff="")

    assert list(next_step_lines(result, run, "local:small"))[:2] == [
        advice.format(run.id),
        f"Let a model continue: suture fork {run.id} --model local:small",
    ]
    assert render_search_ending(search) == ending


@pytest.mark.parametrize("suggest_commands", [True, False])
def test_only_the_terminal_names_an_option_for_tests_that_cannot_pass(*, suggest_commands: bool) -> None:
    failure = kinds.NonCodeFailure(
        test="test_a.py::test_net", cause="environment", explanation="it needs a network"
    )
    payloads = (
        kinds.TaskPrepared(checks=0, test_command=("python", "-m", "pytest")),
        kinds.TriageFinished(cause=None, non_code_failures=(failure,), code_failure_count=1),
    )
    narrator = ProgressNarrator(suggest_commands=suggest_commands)
    lines = [
        line
        for seq, payload in enumerate(payloads)
        for line in narrator.lines_for(
            Event(seq=seq, time_s=0.0, kind=payload.event_kind, data=encode_payload(payload))
        )
    ]
    option = "--test 'python -m pytest" if suggest_commands else "python -m pytest"
    assert f"Leave them out: {option} --deselect test_a.py::test_net" in lines[-1]


@pytest.mark.parametrize(
    ("note", "sentence"),
    [
        (
            "project_unshown",
            "Written, but nothing shows that it does what you asked: only Suture's own checks pass.",
        ),
        (
            "feature_unshown",
            "Written, but nothing shows the new feature: only that what worked before still does.",
        ),
    ],
)
def test_new_code_that_nothing_shows_to_be_right_is_not_called_done(
    tmp_path: Path, note: Literal["project_unshown", "feature_unshown"], sentence: str
) -> None:
    folder = RunFolder(tmp_path / "runs" / add_healed_run(tmp_path, tmp_path, {}))
    healed = load_result(folder)
    assert healed is not None
    outcomes = (CheckOutcome(check_id="it builds", status="passed", evidence="nonce", provenance="smoke"),)
    result = replace(
        healed,
        verdict=Verdict(candidate="a", outcomes=outcomes, evidence="nonce"),
        reason=Reason(code="checks_pass", notes=(note,)),
    )
    with Ledger(folder.ledger_path) as ledger:
        end = kinds.RunFinished(outcome="healed", reason=result.reason, result=folder.save_record(result))
        event = ledger.append(end)

    assert outcome_sentence(result, [event], heals=False) == sentence
    assert find_doubt([event]) == "unverified"
    assert render_confidence(0.78, result.reason) == "unverified"
    assert render_confidence(0.78, Reason(code="checks_pass")) == "confidence 0.78"
    assert str(render_event(replace(event, data={**event.data, "confidence": 0.78}))).endswith("; unverified")
    written = kinds.CertificateWritten(
        file="certificate.json", fixed=1, edits=1, edits_found=1, is_minimal=True, statements=1, covered=1, mutants=0,
        killed=0, confidence=0.78,
    )  # fmt: skip
    with Ledger(folder.ledger_path) as ledger:
        ledger.append(written)
    assert "Unverified." in "\n".join(render_short_result(result, folder))
    assert "Unverified." in "\n".join(certificate_lines(folder))
    assert any("add a run with its result" in line for line in next_step_lines(result, folder))


@pytest.mark.parametrize(("confidence", "doubt"), [(0.0, ""), (0.5, "unsure"), (0.9, "")])
def test_a_healed_run_with_a_low_confidence_is_doubted(tmp_path: Path, confidence: float, doubt: str) -> None:
    with Ledger(tmp_path / "events.jsonl") as ledger:
        reason = Reason(code="checks_pass")
        end = kinds.RunFinished(outcome="healed", reason=reason, confidence=confidence)
        event = ledger.append(end)

    assert find_doubt([event]) == doubt


@pytest.mark.parametrize(
    ("count", "total", "verb", "noun", "text"),
    [
        (1, 1, "pass", "test", "the only test passes"),
        (0, 1, "pass", "", "the only check does not pass"),
        (1, 1, "still fail", "check", "the only check still fails"),
        (1, 3, "fail", "test", "1 of 3 tests fails"),
        (0, 3, "pass", "test", "0 of 3 tests pass"),
        (1000, 1000, "pass", "", "1,000 of 1,000 pass"),
    ],
)
def test_a_count_of_checks_is_phrased_in_the_right_number(
    count: int, total: int, verb: str, noun: str, text: str
) -> None:
    assert format_share(count, total, verb, noun) == text
