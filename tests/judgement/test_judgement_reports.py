"""A judgement in the formats of pipelines, with names that try to break out of them."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args
from xml.etree import ElementTree

import pytest

from suture.core.records.judgement import (
    ChangeFinding,
    ComparedTests,
    FindingCode,
    GuardedLines,
    JudgedState,
    Judgement,
)
from suture.core.settings import Settings
from suture.errors import UsageError
from suture.interfaces.ci.judgement_reports import (
    RULES,
    render_annotations,
    render_judgement_junit,
    render_judgement_sarif,
    render_markdown,
)
from suture.interfaces.ci.report_files import write_report_file, write_step_outputs
from suture.interfaces.ci.test_result_statement import render_statement

HOSTILE = "a`b|c\n::error::@everyone <b>\x1b[31m##[add-mask]x, 5%:"
SHA256 = "ab" * 32
REJECTED = Judgement(
    outcome="rejected",
    base="main (1a2b3c4)",
    command=("python", "-m", "pytest"),
    files=("cart code.py", "test_cart.py"),
    findings=(
        ChangeFinding(code="test_newly_fails", severity="reject", test="test_cart.py::test_one"),
        ChangeFinding(code="capability", severity="reject", path="cart code.py", line=7, names=(HOSTILE,)),
        ChangeFinding(code="no_test_guards_change", severity="remark", count=4),
        ChangeFinding(
            code="lines_not_run", severity="note", path="cart code.py", line=3,
            names=("3", "4", "9"), count=3, total=4,
        ),
    ),
    tests=ComparedTests(
        passed=("test_cart.py::test_two", "test_cart.py::test_flaky"),
        newly_failing=("test_cart.py::test_one",),
        still_failing=("test_cart.py::test_old",),
        skipped=("test_cart.py::test_off",),
        flaky=("test_cart.py::test_flaky",),
    ),
    guards=GuardedLines(changed=4, not_run={"cart code.py": (3, 4, 9)}),
    evidence="report",
    state=JudgedState(
        base_commit="1" * 40, commit="2" * 40, tree=SHA256, folder="shop/", files={"cart code.py": SHA256}
    ),
)  # fmt: skip
ACCEPTED = replace(
    REJECTED,
    outcome="accepted",
    findings=(),
    tests=ComparedTests(passed=("test_cart.py::test_two",), fixed=("test_cart.py::test_two",)),
)
NOT_COMPARABLE = Judgement(outcome="not_comparable", reason="no_tests", detail=HOSTILE, files=("cart.py",))


def read_sarif_results(judgement: Judgement) -> list[dict[str, Any]]:
    (run,) = json.loads(render_judgement_sarif(judgement))["runs"]
    known = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert {result["ruleId"] for result in run["results"]} <= known
    return list(run["results"])


def test_every_finding_has_a_rule() -> None:
    assert RULES.keys() == set(get_args(FindingCode))


def test_sarif_has_each_finding_at_its_place_and_each_range_of_lines_that_no_test_runs() -> None:
    places = []
    for result in read_sarif_results(REJECTED):
        (location,) = result["locations"]
        physical = location["physicalLocation"]
        region = physical["region"]
        lines = (region["startLine"], region.get("endLine"))
        places.append((result["ruleId"], result["level"], physical["artifactLocation"]["uri"], *lines))
    assert places == [
        ("test_newly_fails", "error", "shop/test_cart.py", 1, None),
        ("capability", "error", "shop/cart%20code.py", 7, None),
        ("no_test_guards_change", "warning", "shop/cart%20code.py", 1, None),
        ("lines_not_run", "note", "shop/cart%20code.py", 3, 4),
        ("lines_not_run", "note", "shop/cart%20code.py", 9, 9),
    ]
    assert "\x1b" not in render_judgement_sarif(REJECTED)


def test_sarif_of_a_change_that_cannot_be_compared_is_not_empty() -> None:
    (result,) = read_sarif_results(NOT_COMPARABLE)
    assert (result["ruleId"], result["level"]) == ("not_comparable", "error")
    assert "no test was reported" in result["message"]["text"]


def test_junit_counts_tests_and_rejecting_findings_as_failures() -> None:
    root = ElementTree.fromstring(render_judgement_junit(REJECTED).encode())
    counts = {
        suite.get("name"): (suite.get("tests"), suite.get("failures"), suite.get("skipped")) for suite in root
    }
    assert counts == {"tests": ("5", "2", "1"), "findings": ("4", "2", "0"), "judge": ("1", "1", "0")}
    (case,) = root.findall(".//testcase[@classname='suture.judge.capability']")
    assert (case.get("file"), case.get("line")) == ("shop/cart code.py", "7")


@pytest.mark.parametrize(("judgement", "kind"), [(ACCEPTED, None), (NOT_COMPARABLE, "error")])
def test_the_verdict_is_a_test_of_its_own(judgement: Judgement, kind: str | None) -> None:
    root = ElementTree.fromstring(render_judgement_junit(judgement).encode())
    (case,) = root.findall(".//testcase[@name='verdict']")
    assert [child.tag for child in case] == ([kind] if kind else [])


def test_markdown_quotes_everything_that_comes_from_the_project() -> None:
    text = render_markdown(REJECTED)
    assert text.startswith(
        "<!-- suture-judge -->\n**Rejected:** `test_cart.py::test_one fails with the change"
    )
    assert "\x1b" not in text
    outside_of_code = re.sub(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", text)
    assert "@everyone" in text
    assert "@everyone" not in outside_of_code
    assert "<b>" not in outside_of_code
    assert not re.search(r"^::", text, re.MULTILINE)
    assert "`main (1a2b3c4)`" not in text  # the base is part of a fact
    assert "- Guard: `the tests run 1 of 4 changed statements`" in text


def test_markdown_shows_each_finding_once() -> None:
    text = render_markdown(REJECTED)
    assert [text.count(f"`{finding.code}`") for finding in REJECTED.findings] == [1] * len(REJECTED.findings)


def test_annotations_are_single_commands_whatever_the_names_are() -> None:
    lines = render_annotations(REJECTED)
    assert lines[0] == (
        "::error file=shop/test_cart.py,line=1,title=suture test_newly_fails::"
        "test_cart.py::test_one fails with the change and passed without it"
    )
    assert [line.split(" ")[0] for line in lines] == ["::error", "::error", "::warning", "::notice"]
    assert not any("\n" in line or "##[" in line or "\x1b" in line for line in lines)
    assert "%0A::error::@everyone" in lines[1]
    assert ", 5%25:" in lines[1]
    many = replace(REJECTED, findings=REJECTED.findings[:1] * 30)
    assert len(render_annotations(many)) == 10
    (line,) = render_annotations(NOT_COMPARABLE)
    assert line.startswith("::error title=suture::Not comparable: ")


def test_a_path_cannot_add_properties_to_an_annotation() -> None:
    finding = ChangeFinding(code="secret", severity="reject", path="a,line=1::x%.py", line=2)
    (line,) = render_annotations(replace(REJECTED, findings=(finding,)))
    assert line.startswith("::error file=shop/a%2Cline=1%3A%3Ax%25.py,line=2,title=")


def read_statement(judgement: Judgement, environ: dict[str, str] | None = None) -> dict[str, Any]:
    statement: dict[str, Any] = json.loads(render_statement(judgement, Settings(), environ or {}))
    return statement


def test_the_statement_has_the_form_of_in_toto_and_of_its_predicate() -> None:
    statement = read_statement(REJECTED)
    assert statement.keys() == {"_type", "subject", "predicateType", "predicate"}
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    names = [subject["name"] for subject in statement["subject"]]
    assert names == ["commit", "shop/", "shop/cart code.py"]
    digits = {"gitCommit": 40, "dirHash": 64, "sha256": 64}
    for subject in statement["subject"]:
        ((algorithm, digest),) = subject["digest"].items()
        assert re.fullmatch(rf"[0-9a-f]{{{digits[algorithm]}}}", digest)
    predicate = statement["predicate"]
    lists = {"configuration", "passedTests", "warnedTests", "failedTests"}
    assert predicate.keys() == {"result", *lists}
    assert all(isinstance(predicate[name], list) for name in lists)
    # Each descriptor of a resource needs one of these fields, and contents should have less than 1 KB.
    assert all({"uri", "digest", "content"} & entry.keys() for entry in predicate["configuration"])
    content = base64.b64decode(predicate["configuration"][0]["content"])
    assert len(content) < 1000
    assert json.loads(content)["command"] == ["python", "-m", "pytest"]


def test_the_statement_names_the_certificate_by_its_digest() -> None:
    configuration = read_statement(replace(REJECTED, certificate_sha256=SHA256))["predicate"]["configuration"]
    assert {"name": "certificate", "digest": {"sha256": SHA256}} in configuration


def test_the_statement_says_which_tests_pass_and_fail() -> None:
    predicate = read_statement(REJECTED)["predicate"]
    assert predicate["result"] == "FAILED"
    assert predicate["passedTests"] == ["test_cart.py::test_two"]
    assert predicate["warnedTests"] == ["test_cart.py::test_flaky"]
    assert predicate["failedTests"] == ["test_cart.py::test_old", "test_cart.py::test_one"]
    annotations = predicate["configuration"][0]["annotations"]
    assert annotations["findings"] == ["capability", "no_test_guards_change", "test_newly_fails"]


@pytest.mark.parametrize(
    ("judgement", "result"),
    [
        (ACCEPTED, "PASSED"),
        (replace(ACCEPTED, outcome="accepted_with_remarks"), "WARNED"),
        (replace(ACCEPTED, tests=replace(ACCEPTED.tests, still_failing=("t::a",))), "WARNED"),
        (Judgement(outcome="accepted", reason="no_change"), "WARNED"),
        (NOT_COMPARABLE, "FAILED"),
    ],
)
def test_only_an_accepted_change_whose_tests_all_pass_is_passed(judgement: Judgement, result: str) -> None:
    assert read_statement(judgement)["predicate"]["result"] == result


def test_the_statement_links_the_job_that_made_it() -> None:
    github = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "me/shop", "GITHUB_RUN_ID": "7"}
    url = read_statement(ACCEPTED, github)["predicate"]["url"]
    assert url == "https://github.com/me/shop/actions/runs/7"


def test_a_report_follows_no_link_of_the_checkout(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    (checkout / "reports").symlink_to(tmp_path / "outside")
    (checkout / "judge.sarif").symlink_to(tmp_path / "outside" / "keys")
    for path in (checkout / "reports" / "judge.sarif", checkout / "judge.sarif"):
        with pytest.raises(UsageError, match="is a symbolic link"):
            write_report_file(path, "{}", checkout)
    write_report_file(checkout / "new" / "judge.sarif", "{}", checkout)
    assert (checkout / "new" / "judge.sarif").read_text() == "{}"
    assert not list((tmp_path / "outside").iterdir())


def test_a_step_output_cannot_add_another_one(tmp_path: Path) -> None:
    output = tmp_path / "output"
    text = "one\nverdict=accepted\nEOF"
    write_step_outputs({"verdict": "rejected", "summary": text}, "", {"GITHUB_OUTPUT": str(output)})
    lines = output.read_text().splitlines()
    assert lines[0] == "verdict=rejected"
    name, _, word = lines[1].partition("<<")
    assert (name, lines[2:-1], lines[-1]) == ("summary", text.splitlines(), word)
    assert len(word) == 32
