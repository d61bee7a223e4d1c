"""Render a report in two standard formats: SARIF 2.1.0 (OASIS) for code scanning, JUnit XML for dashboards."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from suture.core.records import CheckOutcome, Counterexample, content_hash
from suture.interfaces.ci.heal_report import HealReport
from suture.interfaces.ci.line_edits import LineEdit
from suture.interfaces.ci.tuning import MAX_RESULTS, MAX_TEXT_CHARS
from suture.interfaces.narrative.plain_text import escape_unprintable

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
RULES = {"failing-test": "A test fails on this code.", "verified-fix": "A change that makes every test pass."}
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render_sarif(report: HealReport) -> str:
    """Return the report as a SARIF log."""
    outcomes = report.verdict.outcomes if report.verdict else ()
    failing_ids = set(report.failing)
    failing = [outcome for outcome in outcomes if outcome.check_id in failing_ids]
    results = [_failing_test_result(outcome) for outcome in failing[:MAX_RESULTS]]
    if report.outcome == "healed" and report.edits:
        results.append(_fix_result(report))
    return render_sarif_log(RULES, results, category="suture/ci/" if report.commit else "")


def render_sarif_log(rules: Mapping[str, str], results: Sequence[Mapping[str, Any]], *, category: str) -> str:
    """Return results as a SARIF log of one run.

    Args:
        rules: Id -> what the rule says.
        category: Distinguishes this log from others of the same commit; it ends with a slash, as SARIF has it.
            Empty for none.
    """
    driver = {
        "name": "Suture",
        "version": version("suture"),
        "rules": [{"id": rule, "shortDescription": {"text": text}} for rule, text in rules.items()],
    }
    run: dict[str, Any] = {"tool": {"driver": driver}, "results": results, "columnKind": "unicodeCodePoints"}
    if category:
        run["automationDetails"] = {"id": category}
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _failing_test_result(outcome: CheckOutcome) -> dict[str, Any]:
    fact = outcome.counterexample
    failure = _failure_text(fact) if fact else outcome.status
    path = fact.file if fact and fact.file else outcome.check_id.partition("::")[0]
    line = fact.line if fact and fact.file and fact.line else 1  # a location needs a line
    return {
        "ruleId": "failing-test",
        "level": "error",
        "message": {"text": sarif_text(f"{outcome.check_id}: {failure}")},
        "locations": [sarif_location(path, line)],
        "partialFingerprints": {"suture/test": content_hash(outcome.check_id)},
    }


def _fix_result(report: HealReport) -> dict[str, Any]:
    first_edit = report.edits[0]
    return {
        "ruleId": "verified-fix",
        "level": "note",
        "message": {"text": f"A change that makes {len(report.failing)} failing tests pass."},
        "locations": [sarif_location(first_edit.path, first_edit.start)],
        "fixes": [
            {
                "description": {"text": "Suture's verified change"},
                "artifactChanges": list(_artifact_changes(report.edits)),
            }
        ],
        "partialFingerprints": {"suture/fix": content_hash(report.diff)},
    }


def _artifact_changes(edits: tuple[LineEdit, ...]) -> Iterator[dict[str, Any]]:
    for path in dict.fromkeys(edit.path for edit in edits):
        replacements = [
            {
                # Whole lines: the region ends at the start of the line after the last one.
                "deletedRegion": {
                    "startLine": edit.start,
                    "startColumn": 1,
                    "endLine": edit.end + 1,
                    "endColumn": 1,
                },
                "insertedContent": {"text": "".join(f"{sarif_text(line)}\n" for line in edit.new)},
            }
            for edit in edits
            if edit.path == path
        ]
        yield {"artifactLocation": _artifact_location(path), "replacements": replacements}


def sarif_location(path: str, line: int, end_line: int | None = None) -> dict[str, Any]:
    """Return the place of a result, in the form of SARIF."""
    region = {"startLine": line} if end_line is None else {"startLine": line, "endLine": end_line}
    return {"physicalLocation": {"artifactLocation": _artifact_location(path), "region": region}}


def _artifact_location(path: str) -> dict[str, str]:
    return {"uri": quote(path, errors="replace"), "uriBaseId": "%SRCROOT%"}


def sarif_text(text: str) -> str:
    """Return a string cut to a limited length, without unprintable characters."""
    return escape_unprintable(text)[:MAX_TEXT_CHARS]


def _failure_text(fact: Counterexample) -> str:
    return fact.exception or f"{fact.call}: expected {fact.expected}, got {fact.actual}"


def render_junit(report: HealReport) -> str:
    """Return the tests on the unchanged code as JUnit XML, with the heal itself as an additional test case.

    The heal passes if it healed or had nothing to do, fails if it found no fix, and is skipped if a gate
    refused.
    """
    outcomes = report.verdict.outcomes if report.verdict else ()
    return render_junit_suites({"tests": list(map(_junit_case, outcomes)), "heal": [_heal_case(report)]})


def render_junit_suites(suites: Mapping[str, Sequence[ElementTree.Element]]) -> str:
    """Return test cases as JUnit XML, name of a suite -> its cases."""
    root = ElementTree.Element("testsuites", name="suture")
    root.extend(_junit_suite(name, cases) for name, cases in suites.items())
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _junit_suite(name: str, cases: Sequence[ElementTree.Element]) -> ElementTree.Element:
    kinds = [case[0].tag if len(case) else "" for case in cases]
    suite = ElementTree.Element(
        "testsuite",
        name=name,
        tests=str(len(cases)),
        failures=str(kinds.count("failure")),
        errors=str(kinds.count("error")),
        skipped=str(kinds.count("skipped")),
        time="0",  # expected by readers of JUnit XML; a verdict has no times of single tests
    )
    suite.extend(cases)
    return suite


def make_junit_case(check_id: str) -> ElementTree.Element:
    """Return the test case of a test by its id; it passes as long as nothing is added to it."""
    path, _, name = check_id.partition("::")
    return ElementTree.Element(
        "testcase",
        classname=xml_text(path.removesuffix(".py").replace("/", ".")),
        name=xml_text(name or path),
        time="0",
    )


def _junit_case(outcome: CheckOutcome) -> ElementTree.Element:
    case = make_junit_case(outcome.check_id)
    if outcome.status == "skipped":
        ElementTree.SubElement(case, "skipped")
    elif not outcome.passed:
        fact = outcome.counterexample
        failure = _failure_text(fact) if fact else ""
        kind = "failure" if outcome.status == "failed" else "error"
        ElementTree.SubElement(case, kind, message=xml_text(failure or outcome.status), type=outcome.status)
    return case


def _heal_case(report: HealReport) -> ElementTree.Element:
    case = ElementTree.Element("testcase", classname="suture.ci", name="heal", time=f"{report.seconds:.3f}")
    if report.outcome == "refused":
        ElementTree.SubElement(case, "skipped", message=xml_text(f"{report.name}: {report.detail}"))
    elif report.exit_code:
        ElementTree.SubElement(
            case, "failure", message=xml_text(f"{report.name}: {report.detail}"), type=report.outcome
        )
    return case


def xml_text(text: str) -> str:
    """Return a string cut to a limited length, with only characters that XML can hold."""
    return NOT_XML.sub("?", escape_unprintable(text))[:MAX_TEXT_CHARS]
