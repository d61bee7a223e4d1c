"""`suture judge` on the terminal, and as the hook of a coding agent."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from judgement.conftest import RIGHT, TESTS, run_git
from suture.core.records.finding_text import render_reasons
from suture.core.records.judgement import ChangeFinding, Judgement, JudgementOutcome
from suture.interfaces.cli.app import app
from suture.interfaces.cli.repair.judge_hook import answer_hook, find_session_start, read_hook_call
from suture.project.workspace import open_repository, take_snapshot
from suture.project.workspace.project_states import find_default_tip, read_git_states

pytestmark = pytest.mark.timeout(300)
Write = Callable[[Mapping[str, str | None]], Path]
WRONG_TEST = TESTS.replace("4090", "1690")


def run_judge(root: Path, *options: str, stdin: str = "", environ: Mapping[str, str] | None = None) -> Result:
    # These tests can themselves run in a job of GitHub, whose summary is not theirs.
    variables = {"SUTURE_HOME": str(root.parent / "home"), "GITHUB_ACTIONS": "", **(environ or {})}
    return CliRunner().invoke(app, ["judge", str(root), *options], input=stdin, env=variables)


def test_the_screen_leads_with_the_verdict_and_has_at_most_25_lines(write: Write) -> None:
    result = run_judge(write({"cart.py": RIGHT}))
    lines = result.stdout.splitlines()
    assert (result.exit_code, lines[0]) == (0, "Accepted.")
    assert "  Tests     4 pass (1 fixed)" in lines
    assert "  Proof     1 fixed test fails without the change and passes with it" in lines
    assert len(lines) <= 25


@pytest.mark.heavy
def test_a_rejected_change_ends_with_1_and_names_the_place(write: Write) -> None:
    result = run_judge(write({"test_cart.py": WRONG_TEST}), "--explain")
    assert result.exit_code == 1
    assert result.stdout.startswith("Rejected.\n")
    place = "test_cart.py:10: "
    assert f"{place}test_three_mugs_cost_three_times_as_much now expects another result" in result.stdout
    assert "+ assert cart_total([('mug', 1200, 3)]) == 1690" in result.stdout
    assert "[expectation_follows_code]" in result.stdout
    assert "  Tests     4 pass (1 only with the changed tests)\n" in result.stdout
    assert "  Proof     no test fails without the change and passes with it\n" in result.stdout


@pytest.mark.heavy
def test_json_and_markdown_hold_the_same_verdict(write: Write) -> None:
    root = write({"test_cart.py": WRONG_TEST})
    values: dict[str, Any] = json.loads(run_judge(root, "--json").stdout)
    assert (values["ok"], values["outcome"]) == (False, "rejected")
    assert {finding["code"] for finding in values["findings"] if finding["severity"] == "reject"} == {
        "expectation_follows_code"
    }
    assert run_judge(root, "--markdown").stdout.startswith("<!-- suture-judge -->\n**Rejected:** `")


@pytest.mark.heavy
def test_a_hook_makes_the_agent_go_on_at_most_three_times(write: Write, tmp_path: Path) -> None:
    root = write({"test_cart.py": WRONG_TEST})
    call = json.dumps({"session_id": "s1", "cwd": str(root), "hook_event_name": "Stop"})
    answers = [json.loads(run_judge(root, "--hook", stdin=call).stdout) for _ in range(4)]
    assert [answer.get("decision") for answer in answers] == ["block", "block", "block", None]
    assert "Correct the code, not the tests" in answers[0]["reason"]
    assert "still rejects the change, after 3 rejections" in answers[3]["systemMessage"]
    write({"test_cart.py": TESTS, "cart.py": RIGHT})
    accepted = run_judge(root, "--hook", stdin=call)
    assert (accepted.exit_code, json.loads(accepted.stdout)) == (0, {})


@pytest.mark.heavy
@pytest.mark.parametrize("is_amended", [False, True])
def test_a_hook_judges_what_the_agent_has_committed(write: Write, is_amended: bool) -> None:
    root = write({"cart.py": RIGHT.replace(" * quantity", "")})
    start = json.dumps({"session_id": "s1", "cwd": str(root), "hook_event_name": "SessionStart"})
    assert json.loads(run_judge(root, "--hook", stdin=start).stdout) == {}
    write({"test_cart.py": WRONG_TEST})
    run_git(root, "commit", "-qam", "mended", *(["--amend"] if is_amended else []))
    stop = start.replace("SessionStart", "Stop")
    assert json.loads(run_judge(root, "--hook", stdin=stop).stdout)["decision"] == "block"
    assert json.loads(run_judge(root, "--hook", stdin=stop.replace("s1", "s2")).stdout) == {}


def test_a_session_that_began_on_another_branch_judges_only_its_own_branch(
    write: Write, tmp_path: Path
) -> None:
    root = write({})
    run_git(root, "branch", "-M", "main")
    run_git(root, "switch", "-qc", "feature")
    write({"feature.py": "FEATURE = 1\n"})
    commit_all(root, "feature")
    call = read_hook_call(json.dumps({"session_id": "s1", "hook_event_name": "SessionStart"}))
    since = find_session_start(call, root, tmp_path / "home")
    run_git(root, "switch", "-q", "main")
    write({"colleague.py": "COLLEAGUE = 1\n"})
    assert read_changed(root, since) == ["colleague.py"]
    commit_all(root, "committed on the default branch")
    assert read_changed(root, since) == ["colleague.py"]
    assert read_changed(root, find_default_tip(open_repository(root))) == []
    (root / "docs").mkdir()
    assert find_session_start(call, root / "docs", tmp_path / "home") == since
    run_git(root, "update-ref", "refs/remotes/origin/main", "HEAD")
    assert find_default_tip(open_repository(root)) == ""
    run_git(root, "update-ref", "-d", "refs/remotes/origin/main")
    run_git(root, "switch", "-qc", "fix")
    write({"cart.py": RIGHT})
    assert read_changed(root, find_default_tip(open_repository(root))) == ["cart.py"]


def read_changed(root: Path, since: str) -> list[str]:
    states = read_git_states(take_snapshot(root), None, since=since)
    return sorted(
        path for path in {*states.before, *states.after} if states.before.get(path) != states.after.get(path)
    )


def commit_all(root: Path, message: str) -> None:
    run_git(root, "add", "--all")
    run_git(root, "commit", "-qm", message)


@pytest.mark.heavy
def test_a_job_of_github_gets_annotations_outputs_and_report_files(write: Write, tmp_path: Path) -> None:
    root = write({"test_cart.py": WRONG_TEST})
    reports = {name: tmp_path / "reports" / name for name in ("sarif", "junit", "attest")}
    options = [part for name, path in reports.items() for part in (f"--{name}", str(path))]
    github = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
    }
    result = run_judge(root, *options, environ=github)
    assert result.exit_code == 1
    assert "::error file=test_cart.py,line=10,title=suture expectation_follows_code::" in result.stderr
    assert "::" not in result.stdout.replace("test_cart.py::", "")
    assert (tmp_path / "output").read_text().startswith("verdict=rejected\nsummary<<")
    assert (
        (tmp_path / "summary").read_text().startswith("## Suture\n\n<!-- suture-judge -->\n**Rejected:** `")
    )
    (run,) = json.loads(reports["sarif"].read_text())["runs"]
    assert run["results"][0]["ruleId"] == "expectation_follows_code"
    assert 'name="verdict"' in reports["junit"].read_text()
    assert json.loads(reports["attest"].read_text())["predicate"]["result"] == "FAILED"


def test_a_report_that_a_link_would_redirect_stops_the_command_before_any_test(shop: Path) -> None:
    (shop / "judge.sarif").symlink_to(shop.parent / "elsewhere")
    result = run_judge(shop, "--sarif", str(shop / "judge.sarif"))
    assert result.exit_code == 2
    assert "is a symbolic link" in result.stderr
    assert not (shop.parent / "elsewhere").exists()


@pytest.mark.parametrize(
    ("stdin", "message"),
    [
        ("no json", "stdin holds no JSON of a hook"),
        ('{"hook_event_name": "PreToolUse"}', "does not answer the event 'PreToolUse'"),
        ('{"hook_event_name": "Stop", "cwd": "/nowhere"}', "'/nowhere'"),
    ],
)
def test_a_fault_never_ends_a_hook_with_the_exit_code_that_holds_an_agent_up(
    shop: Path, stdin: str, message: str
) -> None:
    environ = {"SUTURE_HOME": str(shop.parent / "home")}
    result = CliRunner().invoke(app, ["judge", "--hook"], input=stdin, env=environ)
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stdout == ""


REJECTED = Judgement(outcome="rejected")


def answer(home: Path, event: str, reasons: str = "because", outcome: JudgementOutcome = "rejected") -> Any:
    call = read_hook_call(json.dumps({"session_id": "s1", "hook_event_name": event}))
    return answer_hook(Judgement(outcome=outcome), reasons, call, home)


def test_after_a_tool_the_agent_is_told_only_what_it_was_not_told_before(tmp_path: Path) -> None:
    block = {"decision": "block", "reason": "because"}
    assert answer(tmp_path, "PostToolUse") == block
    assert answer(tmp_path, "PostToolUse") == {}
    assert answer(tmp_path, "PostToolUse", "another") == {"decision": "block", "reason": "another"}
    assert answer(tmp_path, "PostToolUse", outcome="accepted") == {}
    assert answer(tmp_path, "PostToolUse", "another") == {"decision": "block", "reason": "another"}
    assert answer(tmp_path, "Stop") == block


def test_remarks_are_shown_to_the_user_when_the_agent_stops(tmp_path: Path) -> None:
    remarks = answer(tmp_path, "Stop", "compares with 4", "accepted_with_remarks")
    assert remarks == {"systemMessage": "compares with 4"}
    assert answer(tmp_path, "Stop", "compares with 4", "accepted_with_remarks") == {}
    assert answer(tmp_path, "Stop", "adds 5", "accepted_with_remarks") == {"systemMessage": "adds 5"}
    assert answer(tmp_path, "PostToolUse", "compares with 4", "accepted_with_remarks") == {}


def test_gemini_keeps_what_its_tool_returned(tmp_path: Path) -> None:
    output = {"hookEventName": "AfterTool", "additionalContext": "because"}
    assert answer(tmp_path, "AfterTool") == {"hookSpecificOutput": output}
    assert answer(tmp_path, "AfterAgent") == {"decision": "block", "reason": "because"}


def test_a_new_message_of_the_user_begins_the_count_again(tmp_path: Path) -> None:
    def stop(active: bool) -> Any:
        values = {"session_id": "s1", "hook_event_name": "Stop", "stop_hook_active": active}
        return answer_hook(REJECTED, "because", read_hook_call(json.dumps(values)), tmp_path)

    answers = [stop(active) for active in (False, True, True, True, False)]
    assert ["decision" in each for each in answers] == [True, True, True, False, True]


def test_the_reasons_for_a_rejection_leave_out_remarks_and_an_accepted_change_shows_them() -> None:
    findings = (
        ChangeFinding(code="secret", severity="reject", path="a.py"),
        ChangeFinding(code="large_change", severity="remark", count=900),
    )
    rejected = render_reasons(Judgement(outcome="rejected", findings=findings), 5)
    accepted = render_reasons(Judgement(outcome="accepted_with_remarks", findings=findings[1:]), 5)
    assert ("a.py" in rejected, "900" in rejected) == (True, False)
    assert accepted.startswith("Suture accepts the change, with remarks:\n- 900 changed lines")
