"""Render a judgement for pipelines: SARIF, JUnit XML, Markdown, and GitHub's annotations of lines."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import groupby, islice
from typing import Any
from xml.etree import ElementTree

from suture.core.records import content_hash
from suture.core.records.finding_text import render_finding, render_place
from suture.core.records.judgement import ChangeFinding, FindingCode, FindingSeverity, Judgement
from suture.interfaces.ci.markdown_summary import code_span
from suture.interfaces.ci.report_formats import (
    make_junit_case,
    render_junit_suites,
    render_sarif_log,
    sarif_location,
    sarif_text,
    xml_text,
)
from suture.interfaces.ci.tuning import MAX_ANNOTATIONS, MAX_RESULTS, MAX_SENTENCE_CHARS, MAX_SUMMARY_FINDINGS
from suture.interfaces.narrative.judgement_text import (
    leads_with_finding,
    list_facts,
    render_headline,
    render_verdict,
)
from suture.interfaces.narrative.plain_text import disarm_commands, escape_unprintable

RULES: Mapping[FindingCode, str] = {
    "test_newly_fails": "A test that passed without the change fails with it.",
    "tests_do_not_run": "The tests no longer run with the change.",
    "failing_test_weakened": "A failing test asks for less or for something else, and its old version still fails.",
    "broken_test_weakened": "A test asks for less, and its old version passed before and fails now.",
    "passing_test_weakened": "A test asks for less; its old version still passes.",
    "test_removed_with_code": "A test is removed together with code that it uses.",
    "expectation_follows_code": "A test expects what the code without the change returns.",
    "expectation_changed": "A test expects something else.",
    "test_not_run_any_more": "A test no longer runs, although its source is as it was.",
    "test_hook_added": "A new hook can change which tests run or how they end.",
    "test_support_changed": "A helper, a fixture or data of the tests has changed.",
    "test_proves_nothing": "A new test passes without the change too.",
    "asserts_nothing": "A new test asserts nothing.",
    "assert_not_reached": "A test passes without the assertion at which it failed before.",
    "configuration_changed": "A file has changed that decides which tests run, or what their failure stops.",
    "capability": "New code uses something with which code can pass its tests although it is wrong.",
    "memorises_examples": "New code serves the examples of the tests only.",
    "games_tests": "New code has a sign of gaming its tests.",
    "unsafe_code": "A safety rule covers new code.",
    "new_dependency": "The change requires a package that was not required before.",
    "secret": "A file holds what looks like a secret.",
    "no_test_guards_change": "No test fails without the change.",
    "lines_not_run": "No test runs these changed lines.",
    "mistakes_not_noticed": "Deliberate mistakes in the changed lines pass the tests.",
    "flaky": "A test ended differently in two runs on the same files.",
    "large_change": "The change is hard to review.",
}
"""Code of a finding -> what it means, for the list of rules in SARIF."""
JUDGE_MARK = "<!-- suture-judge -->"
"""The hidden first line of a judgement in Markdown, by which a pipeline finds its earlier comment."""
NOT_COMPARABLE = "not_comparable"
"""The rule under which SARIF names a change that could not be judged."""
LEVELS: Mapping[FindingSeverity, str] = {"reject": "error", "remark": "warning", "note": "note"}
ANNOTATIONS: Mapping[FindingSeverity, str] = {"reject": "error", "remark": "warning", "note": "notice"}


def render_judgement_sarif(judgement: Judgement) -> str:
    """Return the findings as a SARIF log; each range of changed lines that no test runs is a result."""
    results = [
        _sarif_result(judgement, part, end_line)
        for finding in judgement.findings
        for part, end_line in _split_lines(finding)
    ]
    rules: dict[str, str] = {code: text for code, text in RULES.items()}
    if judgement.outcome == "not_comparable":
        rules[NOT_COMPARABLE] = "The change could not be judged."
        results.append(
            {
                "ruleId": NOT_COMPARABLE,
                "level": "error",
                "message": {"text": sarif_text(render_headline(judgement))},
                "locations": [sarif_location(*_find_place(judgement))],
            }
        )
    return render_sarif_log(rules, results[:MAX_RESULTS], category="suture/judge/")


def _split_lines(finding: ChangeFinding) -> Iterator[tuple[ChangeFinding, int | None]]:
    """Yield a finding with its last line; one about lines that no test runs as one finding for each range."""
    if finding.code != "lines_not_run":
        yield finding, None
        return
    lines = [int(name) for name in finding.names]
    # Consecutive lines have the same difference to their position.
    for _, group in groupby(enumerate(lines), key=lambda item: item[1] - item[0]):
        part = [line for _, line in group]
        yield replace(finding, line=part[0], names=tuple(map(str, part)), count=len(part)), part[-1]


def _sarif_result(judgement: Judgement, finding: ChangeFinding, end_line: int | None) -> dict[str, Any]:
    path, line = _find_place(judgement, finding)
    identity = [finding.code, path, finding.test, finding.detail, *finding.names]
    return {
        "ruleId": finding.code,
        "level": LEVELS[finding.severity],
        "message": {"text": sarif_text(render_finding(finding))},
        # Code scanning refuses results without a place.
        "locations": [sarif_location(path, line, end_line)],
        "partialFingerprints": {"suture/finding": content_hash(identity)},
    }


def _find_place(judgement: Judgement, finding: ChangeFinding | None = None) -> tuple[str, int]:
    """Return the file and line of a finding, in the repository.

    A finding about a test is in the test's file, and one about the whole change in its first file.
    """
    folder = judgement.state.folder
    if finding is not None and finding.path:
        return folder + finding.path, max(finding.line, 1)
    owner = finding.test.partition("::")[0] if finding is not None else ""
    if posixpath.splitext(owner)[1]:
        return folder + owner, 1
    return folder + next(iter(judgement.files), "."), 1


def render_judgement_junit(judgement: Judgement) -> str:
    """Return JUnit XML with the tests with the change, each finding, and the verdict as one more test.

    Findings that reject the change are failures; the others pass, and their sentence is their output.
    """
    verdict = ElementTree.Element(
        "testcase", classname="suture.judge", name="verdict", time=f"{judgement.seconds:.3f}"
    )
    if not judgement.ok:
        kind = "failure" if judgement.outcome == "rejected" else "error"
        message = xml_text(render_headline(judgement))
        ElementTree.SubElement(verdict, kind, message=message, type=judgement.outcome)
    return render_junit_suites(
        {
            "tests": list(_junit_tests(judgement)),
            "findings": [_junit_finding(judgement, finding) for finding in judgement.findings[:MAX_RESULTS]],
            "judge": [verdict],
        }
    )


def _junit_tests(judgement: Judgement) -> Iterator[ElementTree.Element]:
    tests = judgement.tests
    failing = ((tests.newly_failing, "passes without the change"), (tests.still_failing, "fails anyway"))
    yield from map(make_junit_case, tests.passed)
    for names, message in failing:
        for name in names:
            case = make_junit_case(name)
            ElementTree.SubElement(case, "failure", message=message, type="failed")
            yield case
    for name in tests.skipped:
        case = make_junit_case(name)
        ElementTree.SubElement(case, "skipped", message="ran without the change")
        yield case


def _junit_finding(judgement: Judgement, finding: ChangeFinding) -> ElementTree.Element:
    sentence = xml_text(f"{render_place(finding)}{render_finding(finding)}")
    path, line = _find_place(judgement, finding)
    case = ElementTree.Element(
        "testcase",
        classname=f"suture.judge.{finding.code}",
        name=sentence,
        file=xml_text(path),
        line=str(line),
        time="0",
    )
    if finding.severity == "reject":
        ElementTree.SubElement(case, "failure", message=sentence, type=finding.code)
    else:
        ElementTree.SubElement(case, "system-out").text = f"{finding.severity}: {sentence}"
    return case


def render_markdown(judgement: Judgement) -> str:
    """Return a judgement as Markdown, for a comment on a pull request.

    Names in it come from the project, so every sentence is quoted as code.
    """
    leads = leads_with_finding(judgement)
    if leads:  # each finding is shown once
        first = judgement.findings[0]
        headline = f"**{render_verdict(judgement)}:** {_quote_finding(first)} (`{first.code}`)"
    else:
        verdict, _, rest = render_headline(judgement).partition(": ")
        headline = f"**{verdict}:** {_quote(rest)}" if rest else f"**{render_verdict(judgement)}**"
    facts = [f"- {label}: {_quote(text)}" for label, text in list_facts(judgement)]
    findings = [
        f"- {finding.severity} `{finding.code}` {_quote_finding(finding)}"
        for finding in judgement.findings[leads:MAX_SUMMARY_FINDINGS]
    ]
    more = len(judgement.findings) - len(findings) - leads
    if more:
        findings.append(f"- {more:,} more with `suture judge --explain`")
    parts = (headline, "\n".join(facts), "\n".join(findings))
    return f"{JUDGE_MARK}\n" + "\n\n".join(part for part in parts if part) + "\n"


def _quote_finding(finding: ChangeFinding) -> str:
    return _quote(render_place(finding) + render_finding(finding))


def _quote(text: str) -> str:
    return code_span(text, MAX_SENTENCE_CHARS)


def render_annotations(judgement: Judgement) -> list[str]:
    """Return the findings as commands with which GitHub shows them next to the lines of a pull request."""
    lines: list[str] = []
    for severity, command in ANNOTATIONS.items():
        findings = (finding for finding in judgement.findings if finding.severity == severity)
        for finding in islice(findings, MAX_ANNOTATIONS):
            path, line = _find_place(judgement, finding)
            place = f"file={_escape_property(path)},line={line},title={_escape_property(f'suture {finding.code}')}"
            lines.append(f"::{command} {place}::{_escape_message(render_finding(finding))}")
    if judgement.outcome == "not_comparable":
        lines.append(f"::error title=suture::{_escape_message(render_headline(judgement))}")
    return lines


def _escape_message(text: str) -> str:
    text = disarm_commands(escape_unprintable(text))
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_message(text).replace(":", "%3A").replace(",", "%2C")
