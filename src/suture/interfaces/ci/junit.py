"""How the tests ended, as the XML that dashboards read: JUnit's, as its common readers agree on it."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from suture.core.records import CheckOutcome
from suture.interfaces.ci.report import HealReport
from suture.interfaces.narrative.lines import printable

MOST_TEXT_CHARS = 2000
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_of(report: HealReport) -> str:
    """The tests on the code as it was, and the heal itself as one test more.

    The heal passes where it healed or had nothing to do, fails where it found nothing, and is skipped where a
    gate forbade it.
    """
    outcomes = report.verdict.outcomes if report.verdict else ()
    suites = ElementTree.Element("testsuites", name="suture")
    suites.append(_suite("tests", [_case(one) for one in outcomes]))
    suites.append(_suite("heal", [_heal(report)]))
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _suite(name: str, cases: list[ElementTree.Element]) -> ElementTree.Element:
    kinds = [case[0].tag if len(case) else "" for case in cases]
    suite = ElementTree.Element(
        "testsuite",
        name=name,
        tests=str(len(cases)),
        failures=str(kinds.count("failure")),
        errors=str(kinds.count("error")),
        skipped=str(kinds.count("skipped")),
        time="0",
    )
    suite.extend(cases)
    return suite


def _case(outcome: CheckOutcome) -> ElementTree.Element:
    path, _, name = outcome.check_id.partition("::")
    case = ElementTree.Element(
        "testcase",
        classname=_text(path.removesuffix(".py").replace("/", ".")),
        name=_text(name or path),
        time="0",
    )
    if outcome.status == "skipped":
        ElementTree.SubElement(case, "skipped")
    elif not outcome.passed:
        fact = outcome.counterexample
        said = fact.exception or f"{fact.call}: expected {fact.expected}, got {fact.got}" if fact else ""
        kind = "failure" if outcome.status == "failed" else "error"
        ElementTree.SubElement(case, kind, message=_text(said or outcome.status), type=outcome.status)
    return case


def _heal(report: HealReport) -> ElementTree.Element:
    case = ElementTree.Element("testcase", classname="suture.ci", name="heal", time=f"{report.seconds:.3f}")
    if report.outcome == "refused":
        ElementTree.SubElement(case, "skipped", message=_text(f"{report.name}: {report.detail}"))
    elif report.exit_code:
        ElementTree.SubElement(
            case, "failure", message=_text(f"{report.name}: {report.detail}"), type=report.outcome
        )
    return case


def _text(text: str) -> str:
    return NOT_XML.sub("?", printable(text))[:MOST_TEXT_CHARS]
